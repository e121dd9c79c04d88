package dev.headgate.spark;

import java.util.Set;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;

/**
 * What the cluster says where it does not take an executor: a quota, a right that is missing, an admission policy.
 *
 * <p>Spark tries again each second, and tells nobody but its log; there is no pod that could have an event. So the log is listened to:
 * what two of its loggers say with a cause, and nothing else. Where Spark does not log by Log4j, nothing is heard.
 */
public final class ExecutorRefusals extends AbstractAppender {
  private static final String KUBERNETES = "org.apache.spark.scheduler.cluster.k8s.";

  /** The second one speaks for the first in Spark 4.0 and 4.1. */
  private static final Set<String> LOGGERS =
      Set.of(KUBERNETES + "ExecutorPodsAllocator", KUBERNETES + "ExecutorPodsSnapshotsStoreImpl");

  private static volatile String last = "";
  private static boolean listens;

  private ExecutorRefusals() {
    super("headgate-executor-refusals", null, null, true, Property.EMPTY_ARRAY);
  }

  /** Listens from now on; asked again, it changes nothing. */
  public static synchronized void listen() {
    if (listens) {
      return;
    }
    var context = (LoggerContext) LogManager.getContext(false);
    var appender = new ExecutorRefusals();
    appender.start();
    context.getConfiguration().getRootLogger().addAppender(appender, Level.WARN, null);
    listens = true;
  }

  /** What was said last, after its time in milliseconds of Unix time and a blank; empty where nothing was. */
  public static String last() {
    return last;
  }

  @Override
  public void append(LogEvent event) {
    if (event.getThrown() == null || !LOGGERS.contains(event.getLoggerName())) {
      return;
    }
    Throwable cause = event.getThrown();
    while (cause.getCause() != null && cause.getCause() != cause && cause.getCause().getMessage() != null) {
      cause = cause.getCause();
    }
    last = event.getTimeMillis() + " " + (cause.getMessage() == null ? cause.toString() : cause.getMessage());
  }
}
