package dev.headgate.spark;

import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Speaks where the session has no extension of ours, and nothing is governed: this jar has come after it, by {@code ADD JAR} or as an
 * artifact of Connect, or it is {@link OtherSpark}.
 *
 * <p>Extensions are loaded when a session is made, so none of ours runs then. But whatever is registered as a source is asked for its name
 * each time that Spark looks for one, on the thread that wants it (read in the bytecode of {@code DataSource.lookupDataSource}, 3.5.6, 4.0.5
 * and 4.3.0). There a stream ends that would not have what protects it. A batch job asks as well, and nothing of ours is meant for it. The
 * options of the source cannot be seen there.
 */
public final class LateJar implements DataSourceRegister {
  private static final Logger LOG = LoggerFactory.getLogger(LateJar.class);
  private static final String LATE =
      "its jar came after the session had begun; give it by --jars, spark.jars or in Spark's jars folder, and start anew";
  private static boolean told;

  @Override
  public synchronized String shortName() {
    if (!Extensions.areInPlace()) {
      String problem = OtherSpark.problem();
      String reason = problem == null ? LATE : problem;
      String end = isForAStream() ? whyAStreamEnds(SparkEnv.get().conf(), Map.copyOf(SQLConf.get().settings())) : null;
      if (end != null) { // of a kind that PySpark shows as one sentence
        throw new UnsupportedOperationException("Headgate cannot govern this query: " + reason + "; " + end);
      }
      if (!told) {
        told = true;
        LOG.warn("Headgate governs no query here: {}", reason);
      }
    }
    return "headgate-late-jar"; // nobody reads by it
  }

  /** A stream's reader or writer has Spark look for the source; what is looked for says nothing of that. */
  private static boolean isForAStream() {
    return StackWalker.getInstance().walk(
        frames -> frames.map(StackWalker.StackFrame::getClassName).anyMatch(name -> name.endsWith(".DataStreamReader") || name.endsWith(".DataStreamWriter")));
  }

  /** Why a stream ends in a driver, and a session, with these properties; null: it runs on as it would without Headgate. */
  public static String whyAStreamEnds(SparkConf conf, Map<String, String> properties) {
    return conf.getBoolean(PlannerProcess.ENABLED, true)
        ? OnFailure.in(conf, conf.contains(PlannerProcess.ADDRESS)).whyItEnds(document -> Protection.isSaidIn(properties, document))
        : null;
  }
}
