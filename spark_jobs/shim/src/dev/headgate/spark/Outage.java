package dev.headgate.spark;

import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How long a stream bears with a source that cannot be asked what it has.
 *
 * <p>A broker that is restarted is back within a minute, and a query that fails of it reads nothing for longer than that. So a
 * source that is out of reach is held, as one whose answer is not known, while the other sources of the query go on; and after a
 * time of nothing but failure the query fails with what the source says, as it would have at once without Headgate. What does
 * not pass by itself (wrong credentials, lost records) fails at once.
 */
final class Outage {
  private static final Logger LOG = LoggerFactory.getLogger(Outage.class);

  /** What Kafka's client says may pass. It is told by its name, since a driver without Kafka does not have it. */
  private static final String RETRIABLE = "org.apache.kafka.common.errors.RetriableException";

  private final String stream;
  private boolean lasts;
  private long since;

  Outage(String stream) {
    this.stream = stream;
  }

  /** Whether the source was out of reach when it was last asked. */
  boolean lasts() {
    return lasts;
  }

  /** Notes that the source has answered. */
  void over() {
    if (lasts) {
      LOG.info("Headgate: {} answers again", stream);
    }
    lasts = false;
  }

  /**
   * Notes a failure to answer that began at a time of {@link System#nanoTime}. The first is borne however long it took, see {@link
   * Patience#failed}.
   *
   * @return whether to hold the source, rather than to fail
   */
  boolean bears(Throwable failure, long began) {
    if (!mayPass(failure)) {
      return false;
    }
    if (!lasts) {
      lasts = true;
      since = began;
      LOG.warn("Headgate holds {}, because it cannot be asked what it has: {}", stream, failure.toString());
      return true;
    }
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - since) < Shim.outageMillis();
  }

  private static boolean mayPass(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (isRetriable(cause.getClass())) {
        return true;
      }
    }
    return false;
  }

  private static boolean isRetriable(Class<?> type) {
    return type != null && (type.getName().equals(RETRIABLE) || isRetriable(type.getSuperclass()));
  }
}
