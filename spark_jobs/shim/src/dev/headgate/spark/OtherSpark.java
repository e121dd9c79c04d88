package dev.headgate.spark;

import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A Spark that this jar was not made for. Nothing of ours can be added to its sessions, so no query of them can be protected either, and
 * which of them ask for it cannot be seen: the session ends with a sentence, unless somebody has said that it may go on without.
 */
final class OtherSpark {
  private static final Logger LOG = LoggerFactory.getLogger(OtherSpark.class);
  private static final String OLDEST = "4.0";

  private OtherSpark() {}

  /**
   * Whether this is one. Says so where sessions go on without Headgate.
   *
   * @throws IllegalStateException if they are to end
   */
  static boolean isHere() {
    String problem = problem();
    if (problem == null) {
      return false;
    }
    SparkConf conf = SparkEnv.get().conf();
    if (!conf.get(OnFailure.PROPERTY, "").equals(OnFailure.CONTINUE)) {
      throw new IllegalStateException(problem + "; with " + OnFailure.PROPERTY + "=" + OnFailure.CONTINUE + " the session goes on without it");
    }
    LOG.warn("Headgate governs no query here: {}", problem);
    return true;
  }

  /** What is wrong with the Spark that is here, or null. */
  static String problem() {
    return problem(org.apache.spark.package$.MODULE$.SPARK_VERSION());
  }

  /** What is wrong with a version of Spark, or null. One that is newer than those that were tried may do. */
  public static String problem(String version) {
    return Integer.parseInt(version.substring(0, version.indexOf('.'))) >= 4
        ? null
        : "Headgate's jar is for Spark " + OLDEST + " or newer, and this is " + version + "; take the jar off this session, or run a newer Spark";
  }
}
