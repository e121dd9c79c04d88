package dev.headgate.spark;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;

/** What a planner has said, taken apart. */
record Answer(String verb, String rest) {
  static final Set<String> TO_OPENED = Set.of("ok", "prepare", "resume", "refuse");
  static final Set<String> TO_FENCE = Set.of("held", "none", "wait", "refuse");
  static final Set<String> TO_ADMIT = Set.of("hold", "none", "all", "rows", "files", "bytes", "offset", "survey", "lease", "wait", "realtime", "fail");
  static final Set<String> TO_PLAN = Set.of("hold", "none", "all", "rows", "files", "bytes", "offset", "lease", "wait", "realtime", "fail");
  private static final Set<String> ALONE = Set.of("ok", "hold", "none", "all");

  /** Returns the answer, or null if it is none of those that are understood here. */
  static Answer parse(String text, Set<String> understood) {
    int colon = text.indexOf(':');
    Answer answer = new Answer(colon < 0 ? text : text.substring(0, colon), colon < 0 ? null : text.substring(colon + 1));
    boolean wellFormed = understood.contains(answer.verb) && (colon < 0) == ALONE.contains(answer.verb);
    try {
      return wellFormed && answer.hasNumbers() ? answer : null;
    } catch (NumberFormatException | ArithmeticException | ArrayIndexOutOfBoundsException e) {
      return null;
    }
  }

  private boolean hasNumbers() {
    return limit() != null || millis() >= 0 && (!is("lease") || lookMillis() >= 0 && watched() != null);
  }

  boolean is(String word) {
    return verb.equals(word);
  }

  /** The read limit that the answer names, or null if it names none. */
  ReadLimit limit() {
    return switch (verb) {
      case "rows" -> ReadLimit.maxRows(number(rest));
      case "files" -> ReadLimit.maxFiles(Math.toIntExact(number(rest)));
      case "bytes" -> ReadLimit.maxBytes(number(rest));
      default -> null;
    };
  }

  /** How long the planner asks to be left alone, or real-time mode is to last; 0 if neither. */
  long millis() {
    return is("wait") || is("realtime") ? number(rest) : is("lease") ? number(part(0)) : 0;
  }

  /** How often the streams that a lease names are looked at. */
  long lookMillis() {
    return number(part(1));
  }

  /** The handles that a survey names. */
  String[] handles() {
    return listed(rest);
  }

  /** The handles that a lease names, each with how many unread records are too many; -1: anything new is. */
  Map<String, Long> watched() {
    Map<String, Long> found = new LinkedHashMap<>();
    for (String each : listed(part(2))) {
      int at = each.indexOf('=');
      found.put(at < 0 ? each : each.substring(0, at), at < 0 ? -1 : number(each.substring(at + 1)));
    }
    return found;
  }

  private static String[] listed(String list) {
    return list.isEmpty() ? new String[0] : list.split(",");
  }

  private String part(int index) {
    return rest.split(":", 3)[index];
  }

  private static long number(String text) {
    long number = Long.parseLong(text);
    if (number < 0) {
      throw new NumberFormatException(text);
    }
    return number;
  }
}
