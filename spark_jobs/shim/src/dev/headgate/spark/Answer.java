package dev.headgate.spark;

import java.util.Set;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;

/** What a planner has said, taken apart. */
record Answer(String verb, String rest) {
  static final Set<String> TO_OPENED = Set.of("ok", "refuse");
  static final Set<String> TO_ADMIT = Set.of("hold", "all", "rows", "files", "bytes", "offset", "survey", "wait", "fail");
  static final Set<String> TO_PLAN = Set.of("hold", "all", "rows", "files", "bytes", "offset", "wait", "fail");
  private static final Set<String> ALONE = Set.of("ok", "hold", "all");

  /** Returns the answer, or null if it is none of those that are understood here. */
  static Answer parse(String text, Set<String> understood) {
    int colon = text.indexOf(':');
    Answer answer = new Answer(colon < 0 ? text : text.substring(0, colon), colon < 0 ? null : text.substring(colon + 1));
    boolean wellFormed = understood.contains(answer.verb) && (colon < 0) == ALONE.contains(answer.verb);
    try {
      return wellFormed && (answer.limit() != null || answer.millis() >= 0) ? answer : null;
    } catch (NumberFormatException | ArithmeticException e) {
      return null;
    }
  }

  boolean is(String word) {
    return verb.equals(word);
  }

  /** The read limit that the answer names, or null if it names none. */
  ReadLimit limit() {
    return switch (verb) {
      case "rows" -> ReadLimit.maxRows(number());
      case "files" -> ReadLimit.maxFiles(Math.toIntExact(number()));
      case "bytes" -> ReadLimit.maxBytes(number());
      default -> null;
    };
  }

  /** How long the planner asks to be left alone; 0 if it does not. */
  long millis() {
    return is("wait") ? number() : 0;
  }

  private long number() {
    long number = Long.parseLong(rest);
    if (number < 0) {
      throw new NumberFormatException(rest);
    }
    return number;
  }
}
