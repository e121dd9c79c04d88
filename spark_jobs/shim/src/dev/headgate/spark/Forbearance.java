package dev.headgate.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.util.Set;

/**
 * What a planner says of sources that do not answer, when their query begins. The shim goes by it without asking again: a planner may
 * be gone just when a broker is.
 *
 * @param bears names of exceptions that may pass: a source that throws one of them, or one that is derived from it, is held
 * @param bearsOnceAnswered names of those that may pass, too, of a source that has answered before
 * @param outageMillis how long it is; then its query fails
 * @param silenceMillis how long a source may be asked before the planner is told that it is silent
 */
record Forbearance(Set<String> bears, Set<String> bearsOnceAnswered, long outageMillis, long silenceMillis) {
  /** As long as no planner has said anything: what a source throws comes out. */
  static final Forbearance NONE = new Forbearance(Set.of(), Set.of(), 0, Long.MAX_VALUE);

  static Forbearance parse(String text) throws Planner.Failed {
    try {
      return text == null ? NONE : Origin.JSON.readValue(text, Forbearance.class);
    } catch (JsonProcessingException e) {
      throw new Planner.Failed("unknown answer \"" + text + "\"");
    }
  }

  boolean bears(Throwable failure, boolean hasAnswered) {
    for (Class<?> type = failure.getClass(); type != null; type = type.getSuperclass()) {
      if (bears.contains(type.getName()) || hasAnswered && bearsOnceAnswered.contains(type.getName())) {
        return true;
      }
    }
    return false;
  }
}
