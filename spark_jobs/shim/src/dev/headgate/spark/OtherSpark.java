package dev.headgate.spark;

import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;

/**
 * A Spark that this jar was not made for. Nothing of ours can be added to its sessions, so no query of them can be governed ({@link LateJar}).
 *
 * <p>One that names our extension asks for it, and what its queries ask for by options cannot be seen: it ends with a sentence, unless
 * somebody has said that it may go on without.
 */
final class OtherSpark {
  private static final String OLDEST = "4.0";

  private OtherSpark() {}

  /**
   * Whether this is one.
   *
   * @throws UnsupportedOperationException if the session is to end
   */
  static boolean isHere() {
    String problem = problem();
    if (problem == null) {
      return false;
    }
    SparkConf conf = SparkEnv.get().conf();
    boolean isNamed = conf.get("spark.sql.extensions", "").contains(Extensions.class.getName());
    if (isNamed && conf.getBoolean(PlannerProcess.ENABLED, true) && !conf.get(OnFailure.PROPERTY, "").equals(OnFailure.CONTINUE)) {
      throw new UnsupportedOperationException(
          "Headgate cannot govern this session: " + problem + "; with " + OnFailure.PROPERTY + "=" + OnFailure.CONTINUE + " it goes on without");
    }
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
        : "its jar is for Spark " + OLDEST + " or newer, and this is " + version + "; take the jar off this session, or run a newer Spark";
  }
}
