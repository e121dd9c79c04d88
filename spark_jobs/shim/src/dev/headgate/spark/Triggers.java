package dev.headgate.spark;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * The triggers of one query, counted, and which answer of a planner has reached Spark in which.
 *
 * <p>Spark does not say that a trigger begins. It asks every stream of the query once per trigger, in an order that is its own: that
 * of a Scala map, which from five entries on goes by the hash of an object and is another in each run. So a trigger begins with a
 * question to a stream that has been asked in the one before. What is asked again within a trigger is asked here, and not by Spark:
 * it counts as one question.
 *
 * <p>A planner cannot know what became of its answer: it may have come too late, and its stream was held. So it is told.
 */
final class Triggers {
  private final Set<Long> asked = new HashSet<>();
  private final Map<Long, Long> passed = new TreeMap<>();
  private long number;
  private long questions;

  /** Spark asks a stream. */
  void asks(long handle) {
    if (asked.isEmpty() || asked.contains(handle)) {
      number++;
      asked.clear();
    }
    asked.add(handle);
  }

  /** Spark was answered as the planner had said, and may read of a stream. */
  void passed(long handle) {
    passed.put(handle, number);
  }

  /** Which trigger this is. */
  long number() {
    return number;
  }

  /** What a planner is told with each question, see {@link Planner#admit}. */
  String told() {
    var listed = passed.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue());
    return number + "." + ++questions + listed.collect(Collectors.joining(",", ":", ""));
  }
}
