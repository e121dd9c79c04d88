package dev.headgate.spark;

import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/**
 * Stands before one stream and turns the planner's answers into the end offset of the next batch.
 *
 * <p>Spark plans a batch by asking each stream for {@code latestOffset(start, limit)}; that call is the only one whose answer
 * changes. The planner is asked first, the stream after: a held stream costs no I/O. All of it happens on the query's own
 * thread, so that the stream is touched by no other.
 *
 * <p>{@code Trigger.AvailableNow}: where the stream can freeze its end itself, it does. Where it cannot, Spark would fall back to
 * one single batch; the gate freezes the end instead, at the first planning, and not when Spark announces the trigger, since a
 * restarted Python reader does not know yet then where it stands.
 */
final class Gate implements Governed.Handler {
  private static final long RETRY_MILLIS = 500;

  private final SparkDataStream stream;
  private final ReadLimits limits;
  private final boolean v1;
  private final Thread thread = Thread.currentThread();
  private final long handle;
  private final String descriptor;
  private final Patience patience;

  private Planner announcedTo;
  private Offset initial;
  private Offset position;
  private boolean begun;
  private boolean held;
  private Offset known;
  private Offset surveyed;
  private boolean availableNow;
  private boolean freezes;
  private Offset frozen;

  private Gate(SparkDataStream stream, Supplier<? extends SparkDataStream> another, Origin origin, String location) {
    this.stream = stream;
    this.limits = new ReadLimits(stream, another);
    this.v1 = !(stream instanceof MicroBatchStream);
    this.handle = Shim.open(this);
    this.descriptor = origin.describe(handle, thread.getName(), location, stream, limits, v1);
    this.patience = new Patience("source " + stream + " of " + thread.getName());
  }

  /**
   * Creates a stream and puts a gate before it; called on the query's thread.
   *
   * @param location of the source's own files in the checkpoint
   */
  static <S extends SparkDataStream> Object before(Supplier<S> streams, Origin origin, String location) {
    SparkDataStream stream = streams.get();
    if (stream instanceof Governed) {
      return stream;
    }
    Gate gate = new Gate(stream, streams, origin, location);
    Planner planner = Shim.planner();
    try {
      if (planner != null) {
        gate.isOpenedBy(planner); // early, so that a planner knows all sources of a query before it is asked for one
      }
    } catch (InterruptedException e) {
      gate.thread.interrupt(); // the query is being stopped, and sees to it itself
    }
    return StandIn.of(stream, gate, SupportsTriggerAvailableNow.class);
  }

  @Override
  public Object call(Method method, Object[] arguments) throws Throwable {
    switch (method.getName()) {
      case "latestOffset":
        return arguments.length == 2
            ? latestOffset((Offset) arguments[0], (ReadLimit) arguments[1])
            : Governed.forward(stream, method, arguments);
      case "initialOffset":
        initial = (Offset) Governed.forward(stream, method, arguments);
        return initial;
      case "getDefaultReadLimit":
        return limits.admission() ? Governed.forward(stream, method, arguments) : ReadLimit.allAvailable();
      case "reportLatestOffset":
        return held || !limits.admission() ? known : (known = (Offset) Governed.forward(stream, method, arguments));
      case "prepareForTriggerAvailableNow":
        availableNow = true;
        freezes = !(stream instanceof SupportsTriggerAvailableNow);
        return freezes ? null : Governed.forward(stream, method, arguments);
      case "stop":
        close();
        return Governed.forward(stream, method, arguments);
      default:
        return Governed.forward(stream, method, arguments);
    }
  }

  /** Whether the query that this stream belongs to is gone, also where it failed before it could stop its streams. */
  boolean isOrphan() {
    return !thread.isAlive();
  }

  private Offset latestOffset(Offset start, ReadLimit limit) throws InterruptedException {
    Planner planner = Shim.planner();
    begun |= v1 ? start != null : start != initial;
    surveyed = null;
    held = false;
    Offset end = planner == null ? latest(start, limit) : planned(planner, start, limit);
    position = end != null ? end : start;
    return end;
  }

  private Offset latest(Offset start, ReadLimit limit) {
    if (!freezes) {
      return known(limits.latest(start, limit));
    }
    if (frozen == null) {
      frozen = known(limits.latest(start, ReadLimit.allAvailable()));
    }
    return frozen;
  }

  private Offset known(Offset latest) {
    known = latest;
    return latest;
  }

  private boolean isOpenedBy(Planner planner) throws InterruptedException {
    if (planner == announcedTo) {
      return true;
    }
    String answer = patience.ask(() -> planner.opened(handle, descriptor));
    if (answer != null && answer.startsWith("refuse:")) {
      throw new PlannerException(answer.substring("refuse:".length()));
    }
    if (answer != null && !answer.equals("ok")) {
      patience.failed("unknown answer \"" + answer + "\"");
      return false;
    }
    announcedTo = answer == null ? null : planner;
    return answer != null;
  }

  /**
   * Asks until there is an answer to carry out. Mostly the first one is: only where a trigger without a batch would end the query
   * is it better to stay in this one, while a planner asks for time or has failed.
   */
  private Offset planned(Planner planner, Offset start, ReadLimit limit) throws InterruptedException {
    for (; ; ) {
      String answer = answer(planner, start);
      if (answer != null && answer.startsWith("wait:")) {
        Thread.sleep(Long.parseLong(answer.substring("wait:".length())));
      } else if (answer == null && availableNow) {
        Thread.sleep(RETRY_MILLIS);
      } else {
        return answer == null ? hold(start) : carriedOut(answer, start, limit);
      }
    }
  }

  private String answer(Planner planner, Offset start) throws InterruptedException {
    if (!isOpenedBy(planner)) {
      return null;
    }
    String json = start == null ? null : start.json();
    String answer = patience.ask(() -> planner.admit(handle, json));
    if (answer == null || !answer.startsWith("survey:")) {
      return answer;
    }
    String latest = survey(answer.substring("survey:".length()).split(","), start);
    return patience.ask(() -> planner.plan(handle, json, latest));
  }

  /** Asks the named streams of this query for all they have. */
  private String survey(String[] handles, Offset start) {
    Map<String, String> latest = new LinkedHashMap<>();
    for (String name : handles) {
      Gate gate = Shim.gate(name);
      Offset from = gate == this ? start : gate == null ? null : gate.position;
      if (from != null && !gate.v1 && gate.thread == thread) {
        gate.surveyed = gate.latest(from, ReadLimit.allAvailable());
        latest.put(name, gate.surveyed == null ? null : gate.surveyed.json());
      }
    }
    return Origin.json(latest);
  }

  private Offset carriedOut(String answer, Offset start, ReadLimit own) {
    int colon = answer.indexOf(':');
    String verb = colon < 0 ? answer : answer.substring(0, colon);
    String rest = answer.substring(colon + 1);
    if (verb.equals("fail")) {
      throw new PlannerException(rest);
    }
    ReadLimit limit = answer.equals("all") ? own : ReadLimits.parse(verb, rest);
    boolean offset = verb.equals("offset") && !v1;
    if (limit == null && !offset && !answer.equals("hold")) {
      patience.failed("unknown answer \"" + answer + "\"" + (v1 ? " for a source of the V1 kind" : ""));
      return hold(start);
    }
    patience.served();
    if (offset) {
      return ((MicroBatchStream) stream).deserializeOffset(rest);
    }
    if (limit instanceof ReadAllAvailable && surveyed != null) {
      return surveyed;
    }
    return limit == null ? hold(start) : latest(start, limit);
  }

  /**
   * Holds by answering the start. Before the query's first batch, nothing is answered instead, or Spark would commit an empty
   * batch; after it the start is answered, so that the first of a source that would begin at "now" is kept in the offset log.
   */
  private Offset hold(Offset start) {
    held = true;
    return Shim.gates().stream().anyMatch(gate -> gate.thread == thread && gate.begun) ? start : null;
  }

  private void close() {
    Shim.close(handle);
    Planner planner = announcedTo;
    if (planner != null) {
      patience.end(() -> planner.closed(handle));
    }
  }
}
