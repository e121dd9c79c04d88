package dev.headgate.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.Iterator;

/** Offsets as their sources write them, in JSON, compared number by number. */
public final class Offsets {
  private Offsets() {}

  /**
   * Where an end is before its start: committed, it would have records read twice.
   *
   * <p>A log may end there itself, because its last records were lost or it was created anew; then that is where it goes on.
   *
   * @param latest what the stream has said last that it has, or null
   * @return the path of the first such number with both, or null where there is none, or they cannot be compared
   */
  public static String retreat(String start, String end, String latest) {
    try {
      return retreat("", Origin.JSON.readTree(start), Origin.JSON.readTree(end), latest == null ? null : Origin.JSON.readTree(latest));
    } catch (JsonProcessingException e) {
      return null; // an offset of another form: its source says whether it can be read
    }
  }

  /** How many records lie between two offsets that count records; {@link Long#MAX_VALUE} where they cannot be compared. */
  public static long between(String start, String end) {
    try {
      return between(Origin.JSON.readTree(start), Origin.JSON.readTree(end));
    } catch (JsonProcessingException e) {
      return Long.MAX_VALUE;
    }
  }

  /** A partition without a start may begin anywhere, and counts from 0. One that ends before its start has nothing to read. */
  private static long between(JsonNode start, JsonNode end) {
    if (end.isNumber()) {
      return Math.max(0, end.longValue() - (start == null ? 0 : start.longValue()));
    }
    long count = 0;
    for (Iterator<String> names = end.fieldNames(); names.hasNext(); ) {
      String name = names.next();
      count += between(start == null ? null : start.get(name), end.get(name));
    }
    return count;
  }

  private static String retreat(String path, JsonNode start, JsonNode end, JsonNode latest) {
    if (start.isNumber() && end.isNumber()) {
      boolean isBefore = end.decimalValue().compareTo(start.decimalValue()) < 0;
      return isBefore && !end.equals(latest) ? path + " from " + start + " to " + end : null;
    }
    for (Iterator<String> names = end.fieldNames(); names.hasNext(); ) {
      String name = names.next();
      JsonNode before = start.get(name);
      JsonNode there = latest == null ? null : latest.get(name);
      String found = before == null ? null : retreat(path + "/" + name, before, end.get(name), there);
      if (found != null) {
        return found;
      }
    }
    return null;
  }
}
