package dev.headgate.spark;

import org.apache.spark.sql.sources.DataSourceRegister;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says that this jar has come to a session that was there before it, by {@code ADD JAR} or as an artifact of Connect, and so governs nothing.
 *
 * <p>Extensions are loaded when a session is made, so none of ours runs then. But whatever is registered as a source is asked for its name
 * each time that Spark looks for one (read in the bytecode of {@code DataSource.lookupDataSource}, 4.0.5 and 4.3.0).
 */
public final class LateJar implements DataSourceRegister {
  private static final Logger LOG = LoggerFactory.getLogger(LateJar.class);
  private static final String LATE =
      "its jar came after the session had begun; give it by --jars, spark.jars or in Spark's jars folder, and start anew";
  private static boolean told;

  @Override
  public synchronized String shortName() {
    if (!Extensions.areInPlace() && !told) {
      told = true;
      String problem = OtherSpark.problem();
      LOG.warn("Headgate governs no query here: {}", problem == null ? LATE : problem);
    }
    return "headgate-late-jar"; // nobody reads by it
  }
}
