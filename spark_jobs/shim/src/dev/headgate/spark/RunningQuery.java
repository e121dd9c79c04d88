package dev.headgate.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The query whose thread this is: what is to be known of it, for a planner and for all of its gates.
 *
 * <p>One per query, and so one per thread: all gates of a query are called on its thread, and on no other.
 */
final class RunningQuery {
  private static final Logger LOG = LoggerFactory.getLogger(RunningQuery.class);

  private static final String QUERY_ID = "sql.streaming.queryId";

  /** What Spark Connect calls the operation that has started a query by, which its thread inherits. */
  private static final Pattern OF_CONNECT = Pattern.compile("SparkConnect_OperationTag_User_(.*)_Session_(.*)_Operation_[^,]*");

  private static final Set<String> UNPLANNED = Set.of("continuous", "realTime");
  private static final long PREDECESSOR_MILLIS = 10_000;
  private static final Map<String, RunningQuery> BY_RUN = new ConcurrentHashMap<>();
  private static final ThreadLocal<RunningQuery> OF_THIS_THREAD = new ThreadLocal<>();

  final StreamingQuery query;
  final RealTime realTime;
  private final Map<String, String> options;
  private Planner begunBy;
  Forbearance forbearance = Forbearance.NONE; // as the planner has said it last, which may be gone
  private StreamingQueryProgress told;
  private final String user;
  private final String session;
  final Protection protection;
  final OwnTrigger trigger;
  final CheckpointFiles files;
  final Triggers triggers = new Triggers();
  Lease lease; // null: none was given, or it is over
  private boolean fenceIsKnown;
  private volatile Fence fence;
  private final Map<String, String> toldProblems = new HashMap<>();
  private volatile boolean leftAlone;

  private RunningQuery(StreamingQuery query, Map<String, String> options) {
    this.query = query;
    this.options = options;
    this.protection = new Protection(query);
    this.realTime = new RealTime(query);
    this.trigger = new OwnTrigger(query, realTime);
    this.files = CheckpointFiles.of(query);
    String tags = SparkContext.getOrCreate().getLocalProperty("spark.job.tags");
    Matcher operation = OF_CONNECT.matcher(tags == null ? "" : tags);
    boolean connected = operation.find();
    user = connected ? operation.group(1) : null;
    session = connected ? operation.group(2) : null;
  }

  /** The query of this thread; null where this is not the thread of one, or Spark does not know it. */
  static RunningQuery ofThisThread() {
    RunningQuery known = OF_THIS_THREAD.get();
    if (known == null) {
      String id = SparkContext.getOrCreate().getLocalProperty(QUERY_ID);
      Option<SparkSession> session = SparkSession.getActiveSession();
      Object found = id == null || session.isEmpty() ? null : session.get().sharedState().activeStreamingQueries().get(java.util.UUID.fromString(id));
      if (found instanceof StreamingQuery query) {
        known = new RunningQuery(query, JobSettings.takenFrom(query));
        OF_THIS_THREAD.set(known);
        BY_RUN.put(known.runId(), known);
      }
    }
    return known;
  }

  /** The run with this id; null where it has no stream open. */
  static RunningQuery run(String runId) {
    return BY_RUN.get(runId);
  }

  /** The ids of the runs that have streams open and are planned. */
  static List<String> planned() {
    return BY_RUN.values().stream().filter(run -> run.query.isActive() && !run.leftAlone && isPlanned(run.realTime.ownTrigger)).map(RunningQuery::runId).toList();
  }

  private static boolean isPlanned(Object trigger) {
    return !UNPLANNED.contains(kindOf(trigger));
  }

  /** Whether the job has given a query a trigger whose tasks run without an end. */
  static boolean holdsItsSlots(StreamingQuery query) {
    return !isPlanned(new Execution(query).call("trigger"));
  }

  /** Stops it as the job itself would. */
  void stop() throws Exception {
    query.stop();
  }

  String runId() {
    return query.runId().toString();
  }

  /** Tells the planner of a stream of the query; of the query before, if it does not know that yet. */
  Answer opened(Planner planner, long handle, String descriptor) throws Planner.Failed, InterruptedException {
    if (planner != begunBy) {
      forbearance = Forbearance.parse(planner.begins(describe()));
      begunBy = planner;
      told = null;
      toldProblems.clear();
    }
    return planner.opened(handle, descriptor);
  }

  /**
   * JSON object of {@code id}, {@code runId}, {@code name}, {@code trigger}, {@code intervalMillis}, {@code plan},
   * {@code sources} (see {@link #occurrences}), {@code watermarkPolicy}, and what the job says of it: {@code options} of
   * {@code writeStream} that are ours, {@code properties} of its session; {@code user} and {@code session} of Spark Connect,
   * null where it was not started through it; {@code resumed}: another planner knew it before.
   */
  private String describe() {
    Map<String, Object> members = named(query);
    Object trigger = realTime.ownTrigger;
    members.put("trigger", kindOf(trigger));
    members.put("intervalMillis", trigger instanceof ProcessingTimeTrigger every ? every.intervalMs() : null);
    Object plan = new Execution(query).call("analyzedPlan");
    members.put("plan", Plans.inFull(plan));
    members.put("sources", plan instanceof LogicalPlan known ? occurrences(known) : null);
    members.put("watermarkPolicy", SQLConf.get().getConfString("spark.sql.streaming.multipleWatermarkPolicy", "min"));
    members.put("options", options);
    members.put("properties", JobSettings.ofSession());
    members.put("user", user);
    members.put("session", session);
    members.put("resumed", begunBy != null);
    return Origin.json(members);
  }

  /**
   * For each place in the plan where a stream is read, which of its sources that is, counted from 0 in the order in which Spark opens
   * them.
   *
   * <p>Spark opens a source once, however often the plan reads it, as in a union of a stream with itself; but an entry of the offset
   * log has a line for each place (read in the bytecode of {@code MicroBatchExecution.logicalPlan}: equal relations become one). What a
   * common table expression of SQL reads has one place, that of its definition: what refers to it is no source.
   */
  private static List<Integer> occurrences(LogicalPlan plan) {
    List<LogicalPlan> opened = new ArrayList<>();
    List<Integer> found = new ArrayList<>();
    for (LogicalPlan leaf : CollectionConverters.asJava(plan.collectLeaves())) {
      if (leaf.isStreaming() && !Plans.isNamed(leaf, "CTERelationRef")) {
        if (!opened.contains(leaf)) {
          opened.add(leaf);
        }
        found.add(opened.indexOf(leaf));
      }
    }
    return found;
  }

  /** Which query this is. */
  static Map<String, Object> named(StreamingQuery query) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("id", query.id().toString());
    members.put("runId", query.runId().toString());
    members.put("name", query.name());
    return members;
  }

  /** What {@link Planner#noticed} is told of a query that Spark has just started; null where it is gone already. */
  static String noticed(SparkSession session, java.util.UUID id) {
    Object found = session.sharedState().activeStreamingQueries().get(id);
    if (!(found instanceof StreamingQuery query)) {
      return null;
    }
    Object trigger = new Execution(query).call("trigger");
    Map<String, Object> members = named(query);
    members.put("unplanned", isPlanned(trigger) ? null : kindOf(trigger));
    return Origin.json(members);
  }

  /** As the argument of PySpark's {@code trigger} is called. */
  private static String kindOf(Object trigger) {
    String name = trigger.getClass().getSimpleName().replaceAll("Trigger\\$?$", "");
    return name.equals("OneTime") ? "once" : name.substring(0, 1).toLowerCase(java.util.Locale.ROOT) + name.substring(1);
  }

  /** No planner is asked about it any more. */
  boolean isLeftAlone() {
    return leftAlone;
  }

  /** Has it run on as it would without Headgate. */
  void isToBeLeftAlone(String why) {
    leftAlone = true;
    LOG.warn("{} The query goes on as it would without Headgate, at its own trigger ({})", why, OnFailure.PROPERTY);
  }

  /**
   * Asks whether a stream may be read, and tells what has happened since the planner was last told: what could not be done to the query
   * before, and with the question what Spark has reported.
   */
  Answer admit(Planner planner, long handle, String number, String start) throws Planner.Failed, InterruptedException {
    RealTime.Refusal refusal = realTime.refusal();
    if (refusal != null) {
      planner.refused(runId(), refusal); // may fail, and is told again then
      realTime.refusalIsTold();
    }
    tell(planner, "fence", fence == null ? null : fence.problem());
    tell(planner, "trigger", trigger.problem());
    StreamingQueryProgress last = query.lastProgress();
    if (last == null) {
      Progress.keepLast(query.sparkSession());
    }
    String news = last == null || last == told ? null : Progress.of(last, new Execution(query).session());
    Answer answer = planner.admit(handle, number, start, runId(), news);
    told = last;
    return answer;
  }

  private void tell(Planner planner, String what, String problem) throws Planner.Failed, InterruptedException {
    if (problem != null && !problem.equals(toldProblems.get(what))) {
      planner.lacks(runId(), what, problem);
      toldProblems.put(what, problem);
    }
  }

  /**
   * JSON object of {@code failure}, what the query has failed of, and {@code causes}, a line each; null where it has not.
   *
   * <p>Spark sets it before it stops the streams.
   */
  String failure() {
    Option<StreamingQueryException> exception = query.exception();
    if (exception.isEmpty()) {
      return null;
    }
    return Origin.json(Map.of("failure", exception.get().toString(), "causes", Outage.text(exception.get().getCause())));
  }

  /** Whether it is known by which file it holds its checkpoint, or that it has no fence. */
  boolean isFenceKnown() {
    return fenceIsKnown;
  }

  /**
   * Does what {@link Planner#fence} has answered; returns after how many milliseconds to ask again, if it has not said more.
   *
   * <p>Spark asks for a default limit when all streams are opened, and reads the logs of the checkpoint only then (read in the bytecode
   * of {@code MicroBatchExecution}, 4.0.5 and 4.3.0), but for what {@link Fence} has it look up again, so nothing has been read that
   * another driver might still change.
   */
  long isFenced(Answer answer) {
    if (answer.is("wait")) {
      return Math.max(1, answer.millis());
    }
    if (answer.is("refuse")) {
      throw new PlannerException(answer.rest());
    }
    fenceIsKnown = true;
    if (answer.is("held")) {
      String name = query.name() != null ? query.name() : query.id().toString();
      fence = Fence.around(query, name, answer.rest(), files);
    }
    return 0;
  }

  /** Spark asks a stream for its default limit. */
  void handsOverTrigger() {
    if (trigger.handOver()) {
      AllAvailable.install(this);
    }
  }

  /**
   * Whom it asks now; null: nobody.
   *
   * <p>Ends a query that cannot go on, also where it is held and has nothing to do: as its next job would fail, if its context was
   * stopped; and if another driver has its checkpoint. It would look as if it were at work, and keep that checkpoint.
   */
  Planner planner() {
    query.sparkSession().sparkContext().assertNotStopped();
    if (fence != null) {
      fence.requireNotShutOut();
    }
    return leftAlone ? null : Shim.planner();
  }

  /** Waits, within bounds, for the same query of a context that was stopped: it ends by itself, and has the checkpoint until then. */
  void awaitPredecessor() throws InterruptedException {
    for (RunningQuery other : BY_RUN.values()) {
      if (other.query.id().equals(query.id()) && other.query.sparkSession().sparkContext().isStopped()) {
        try {
          other.query.awaitTermination(PREDECESSOR_MILLIS);
        } catch (StreamingQueryException e) {
          LOG.debug("{} has ended with its context", other.query.name(), e);
        }
      }
    }
  }

  /** Its last stream is closed. */
  void ends() {
    realTime.ends();
    if (fence != null) {
      fence.leave();
      fence = null;
    }
    files.close();
    BY_RUN.remove(runId());
    if (OF_THIS_THREAD.get() == this) {
      OF_THIS_THREAD.remove();
    }
  }
}
