package dev.headgate.spark;

import java.lang.reflect.Method;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Stands before one stream and turns the planner's answers into the end offset of the next batch.
 *
 * <p>Spark plans a batch by asking each stream for {@code latestOffset(start, limit)}; that call is the one whose answer changes.
 * The planner is asked first, the stream after: a held stream costs no I/O. All of it happens on the query's own thread, so that
 * the stream is touched by no other.
 *
 * <p>{@code Trigger.AvailableNow}: a planning without a batch ends such a query, so a failed planner is asked again within the
 * trigger.
 */
final class Gate implements Governed.Handler {
  private static final Logger LOG = LoggerFactory.getLogger(Gate.class);
  private static final long RETRY_MILLIS = 500;

  final GatedStream source;
  final RunningQuery query;
  private final Thread thread = Thread.currentThread();
  private final long handle;
  private final String descriptor;
  private final Patience patience;
  private final Triggers triggers;

  private SparkDataStream standIn;
  private Planner announcedTo;
  private Offset position;
  private boolean begun;
  private boolean held;
  private boolean live; // in real-time mode, in the batch that is being planned
  private Offset surveyed;
  private Offset lastSurveyed;

  private Gate(
      RunningQuery query, SparkDataStream stream, Supplier<? extends SparkDataStream> another, Origin origin, String location) {
    this.query = query;
    this.triggers = query.triggers;
    this.handle = Shim.open(this);
    String name = "source " + stream + " of " + thread.getName();
    this.source = new GatedStream(stream, another, new Outage(name, handle, query));
    this.descriptor = origin.describe(handle, RunningQuery.named(query.query), location, stream, source.limits, source.isV1());
    query.protection.reads(origin.options());
    this.patience = new Patience(query, name, this::problemOf);
  }

  /**
   * Creates a stream and puts a gate before it; called on the query's thread.
   *
   * @param location of the source's own files in the checkpoint
   */
  static <S extends SparkDataStream> Object before(Supplier<S> streams, Origin origin, String location) {
    SparkDataStream stream = streams.get();
    SourceClasses.of(stream);
    RunningQuery query = RunningQuery.ofThisThread();
    if (query == null) {
      LOG.warn("Headgate does not know the query that {} belongs to, which therefore runs ungoverned", stream);
      return stream;
    }
    Gate gate = new Gate(query, stream, streams, origin, location);
    Object standIn = StandIn.of(stream, gate, SupportsTriggerAvailableNow.class);
    gate.standIn = (SparkDataStream) standIn;
    if (standIn == stream) {
      Shim.close(gate.handle);
      return stream;
    }
    try {
      PlannerProcess.await(query);
      query.awaitPredecessor();
      Planner planner = Shim.planner();
      if (planner != null) {
        gate.isOpenedBy(planner); // early, so that a planner knows all sources of a query before it is asked for one
      }
    } catch (InterruptedException e) {
      gate.thread.interrupt(); // the query is being stopped, and sees to it itself
    }
    return standIn;
  }

  @Override
  public Object call(Method method, Object[] arguments) throws Throwable {
    switch (method.getName()) {
      case "latestOffset" -> {
        if (arguments.length == 2) {
          return latestOffset((Offset) arguments[0], (ReadLimit) arguments[1]);
        }
      }
      case "getDefaultReadLimit" -> {
        if (Shim.planner() != null) {
          awaitFence();
          query.handsOverTrigger();
        }
      }
      case "reportLatestOffset" -> {
        if (held) {
          return source.known();
        }
      }
      case "stop" -> close();
      default -> {}
    }
    return source.call(method, arguments);
  }

  /** Whether the query that this stream belongs to is gone, also where it failed before it could stop its streams. */
  boolean isOrphan() {
    return !thread.isAlive();
  }

  /** Whether the stream has something else than at its last survey, with more than {@code most} unread (-1: any); or is out of reach. */
  boolean hasNews(long most) {
    Offset latest = canBeSurveyed() ? source.latest(position, ReadLimit.allAvailable()) : lastSurveyed;
    return !Objects.equals(latest, lastSurveyed)
        && (most < 0 || latest == null || Offsets.between(position.json(), latest.json()) > most);
  }

  /** Whether the stream had nothing unread at some time after that one; it is asked, if that changes nothing in it. */
  boolean wasReadSince(long nanos) {
    if (!live && !source.wasReadSince(nanos) && canBeSurveyed()) {
      source.latest(position, ReadLimit.allAvailable());
    }
    return live || source.wasReadSince(nanos); // in real-time mode Spark has looked itself
  }

  /** Not by another query's thread, nor before its position is known; and a V1 source, when asked, takes note of what it found. */
  private boolean canBeSurveyed() {
    return position != null && !source.isV1() && thread == Thread.currentThread();
  }

  private Offset latestOffset(Offset start, ReadLimit limit) throws InterruptedException {
    begun |= source.hasBegun(start);
    held = live = false;
    position = start;
    triggers.asks(handle);
    Offset end = planned(start, limit);
    if (!live) {
      query.realTime.leave();
    }
    position = end != null ? end : start;
    return end;
  }

  private Offset planned(Offset start, ReadLimit own) throws InterruptedException {
    boolean isRefused = false;
    for (Planner planner; (planner = query.planner()) != null; ) {
      if (query.lease != null && query.lease.holds(triggers.number())) {
        return hold(start);
      }
      query.lease = null;
      Lease.Moment asked = Lease.Moment.now();
      Answer answer = answered(planner, start);
      if (answer == null && !source.isAvailableNow()) {
        return hold(start);
      }
      if (answer != null && answer.is("lease")) {
        query.lease = new Lease(asked, answer, triggers.number());
        return hold(start);
      }
      if (answer != null && answer.is("realtime")) {
        live = query.realTime.enter(answer.millis(), positions());
        if (live) {
          triggers.passed(handle);
          return start;
        }
        if (isRefused) {
          return hold(start);
        }
        isRefused = true;
        continue; // the planner is told why, and plans a micro-batch
      }
      if (answer != null && !answer.is("wait")) {
        Offset end = carriedOut(answer, start, own);
        if (!held || answer.is("none")) {
          triggers.passed(handle);
        }
        return end;
      }
      Shim.awaitRecall(asked.recalls(), answer == null ? RETRY_MILLIS : Math.max(1, answer.millis()));
    }
    PlannerProcess.requireIfWanted(query);
    return query.trigger.isDue(triggers.number()) ? source.latest(start, own) : hold(start);
  }

  /** The planner's last word on this planning, or null if it failed. */
  private Answer answered(Planner planner, Offset start) throws InterruptedException {
    surveyed = null;
    if (!areOpenedBy(planner)) {
      return null;
    }
    String trigger = triggers.told();
    Answer answer = patience.ask(() -> query.admit(planner, handle, trigger, start == null ? null : start.json()));
    if (answer != null && answer.is("survey")) {
      Map<String, String> latest = survey(answer.handles());
      answer = patience.ask(() -> planner.plan(handle, trigger, latest));
    }
    if (answer != null) {
      patience.served();
      query.trigger.isPlanned();
    }
    return answer;
  }

  /** Whether all streams of this query are: a planner that knows some of them would plan for a query that there is not. */
  private boolean areOpenedBy(Planner planner) throws InterruptedException {
    var own = Shim.gates().stream().filter(gate -> gate.thread == thread).sorted(Comparator.comparingLong(gate -> gate.handle));
    for (Gate gate : own.toList()) {
      if (!gate.isOpenedBy(planner)) {
        return false;
      }
    }
    return true;
  }

  /** A planner that knows where the stream goes on may have it surveyed before Spark asks it for the first time. */
  private boolean isOpenedBy(Planner planner) throws InterruptedException {
    if (planner != announcedTo) {
      announcedTo = null;
      Answer answer = patience.ask(() -> query.opened(planner, handle, descriptor));
      if (answer == null) {
        return false;
      }
      if (answer.is("refuse")) {
        throw new PlannerException(answer.rest());
      }
      if (answer.is("prepare")) {
        query.realTime.prepareState();
      }
      if (answer.is("resume") && position == null && !source.isV1()) {
        position = source.parsed(answer.rest());
      }
      announcedTo = planner;
    }
    return true;
  }

  /** Waits until the checkpoint is this run's, or has no fence. */
  private void awaitFence() throws InterruptedException {
    boolean waited = false;
    while (!query.isFenceKnown()) {
      Planner planner = query.planner();
      if (planner == null) {
        return;
      }
      Answer answer = areOpenedBy(planner) ? patience.ask(() -> planner.fence(query.runId())) : null;
      if (answer != null) {
        patience.served();
        waited |= answer.is("wait");
        if (waited && answer.is("held")) {
          Shim.gates().stream().filter(gate -> gate.query == query).forEach(gate -> gate.source.reopen());
        }
      }
      Thread.sleep(answer == null ? RETRY_MILLIS : query.isFenced(answer));
    }
  }

  /** Why an answer cannot be carried out, or null. */
  private String problemOf(Answer answer) {
    if (!answer.is("offset")) {
      return null;
    }
    if (source.isV1()) {
      return "unknown answer \"offset:" + answer.rest() + "\" for a source of the V1 kind";
    }
    String back = position == null ? null : Offsets.retreat(position.json(), answer.rest(), lastSurveyed == null ? null : lastSurveyed.json());
    return back == null ? null : "the end that it has planned is before its start, " + back + ", where the stream does not end";
  }

  /** Where each stream of this query goes on, as far as that is known. */
  private Map<SparkDataStream, Offset> positions() {
    Map<SparkDataStream, Offset> found = new HashMap<>();
    for (Gate gate : Shim.gates()) {
      if (gate.query == query && gate.position != null) {
        found.put(gate.standIn, gate.position);
      }
    }
    return found;
  }

  /** Asks the named streams of this query for all they have. */
  private static Map<String, String> survey(String[] handles) {
    Map<String, String> latest = new LinkedHashMap<>();
    for (String name : handles) {
      Gate gate = Shim.gate(name);
      if (gate != null && gate.canBeSurveyed()) {
        gate.surveyed = gate.lastSurveyed = gate.source.latest(gate.position, ReadLimit.allAvailable());
        latest.put(name, gate.source.told(gate.surveyed, gate.position));
      }
    }
    return latest;
  }

  private Offset carriedOut(Answer answer, Offset start, ReadLimit own) {
    return switch (answer.verb()) {
      case "fail" -> throw new PlannerException(answer.rest());
      case "hold" -> hold(start);
      case "none" -> {
        held = true;
        yield start;
      }
      case "offset" -> source.parsed(answer.rest());
      case "all" -> own instanceof ReadAllAvailable && surveyed != null ? surveyed : ended(start, own);
      default -> ended(start, answer.limit());
    };
  }

  /** The end of a batch under the limit. */
  private Offset ended(Offset start, ReadLimit limit) {
    Offset end = source.latest(start, limit);
    return source.isOutOfReach() ? hold(start) : end;
  }

  /**
   * Holds by answering the start. Before the query's first batch, nothing is answered instead, or Spark would commit an empty
   * batch; after it the start is answered, so that the first of a source that would begin at "now" is kept in the offset log.
   */
  private Offset hold(Offset start) {
    held = true;
    return begun || Shim.gates().stream().anyMatch(gate -> gate.thread == thread && gate.begun) ? start : null;
  }

  /** The stream is stopped, or its query is gone and has left it open; called on the query's thread, or by the next query's. */
  void close() {
    Shim.close(handle);
    Planner planner = announcedTo;
    announcedTo = null;
    if (planner != null) {
      Teller.now(planner, "of the end of " + patience.stream, told -> told.closed(handle, query.failure()));
    }
    if (Shim.gates().stream().noneMatch(gate -> gate.query == query)) {
      query.ends();
      if (planner != null && thread == Thread.currentThread()) {
        planner.release();
      }
    }
  }
}
