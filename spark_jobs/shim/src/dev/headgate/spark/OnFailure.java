package dev.headgate.spark;

import java.util.function.Predicate;
import org.apache.spark.SparkConf;

/**
 * What becomes of queries that nobody can plan. It is here because there is no planner to ask when one is.
 *
 * @param said {@code continue} or {@code fail}; null: those end that {@link Protection} tells of, and the others run on. Under {@code
 *     headgate-run}, whose script is to be governed, it is {@code fail} where nothing is said
 * @param document the file of the control document, or null
 */
record OnFailure(String said, String document) {
  static final String PROPERTY = PlannerProcess.PROPERTIES + "onFailure";
  private static final String DOCUMENT = PlannerProcess.PROPERTIES + "control";
  private static final String FAIL = "fail";
  static final String CONTINUE = "continue";

  /** What holds in a driver; a word that is neither counts as {@code fail}. */
  static OnFailure in(SparkConf conf, boolean isToBeGoverned) {
    String said = conf.get(PROPERTY, isToBeGoverned ? FAIL : null);
    return new OnFailure(said == null || said.equals(CONTINUE) ? said : FAIL, conf.get(DOCUMENT, null));
  }

  /** What is wrong with the word that is said, or null. */
  static String problemIn(SparkConf conf) {
    String said = conf.get(PROPERTY, CONTINUE);
    return said.equals(CONTINUE) || said.equals(FAIL)
        ? null
        : PROPERTY + " is \"" + said + "\"; write " + CONTINUE + " or " + FAIL + ", or leave it out";
  }

  /** Why a query ends; null: it runs on as it would without Headgate. Whether something protects it may be said in the document. */
  String whyItEnds(Predicate<String> isProtected) {
    if (FAIL.equals(said)) {
      return "it ends, as " + PROPERTY + "=" + FAIL + " wants it";
    }
    return CONTINUE.equals(said) || !isProtected.test(document)
        ? null
        : "it ends, since nobody would keep its rate limit, alignment, `after` or pause; with " + PROPERTY + "=" + CONTINUE + " it runs without";
  }

  /** What becomes of all of them. */
  String inWords() {
    return FAIL.equals(said)
        ? "queries end"
        : (CONTINUE.equals(said) ? "queries run" : "those with a rate limit, an alignment, `after` or a pause end, the others run")
            + " as they would without it, each at its own trigger";
  }
}
