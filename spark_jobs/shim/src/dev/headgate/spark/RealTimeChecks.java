package dev.headgate.spark;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkJobInfo;
import org.apache.spark.SparkStatusTracker;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.streaming.StreamingQuery;
import scala.Option;

/**
 * What Spark checks where a query is started in real-time mode, and what it does not: whether all of its tasks have a slot.
 *
 * <p>Read in the bytecode of {@code DataStreamWriter}, {@code StreamingQueryManager}, {@code ResolveWriteToStream} and {@code
 * MicroBatchExecution} of 4.3. What Spark checks only as it plans a batch (operators), or schedules it, is not here: see {@link RealTime}.
 */
final class RealTimeChecks {
  private static final String SPARK = org.apache.spark.package$.MODULE$.SPARK_VERSION();
  private static final String LEAST_MILLIS = "spark.sql.streaming.realTimeMode.minBatchDuration";
  private static final String ALLOWLIST = "spark.sql.streaming.realTimeMode.allowlistCheck";
  private static final String ALLOWS_V1 = "spark.sql.streaming.realTimeMode.dangerouslyAllowCheckpointV1.enabled";

  /** How many partitions state has: kept in the checkpoint (read in the bytecode of {@code IncrementalExecution}, 4.3); none before 4.1. */
  private static final String STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions";

  private static final String SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions";

  /** Slots that tasks of queries in real-time mode hold. It is its own lock: two queries must not both take the last ones. */
  private static final Map<RealTimeChecks, Integer> HOLDING = new HashMap<>();

  private final Execution execution;

  RealTimeChecks(Execution execution) {
    this.execution = execution;
  }

  /** Whether this Spark can run a query with state in real-time mode. */
  static boolean isPossibleWithState() {
    return isSparkSince(4, 3);
  }

  /** Why the query cannot run in real-time mode, with batches of so many milliseconds; null: it can, if there are slots. */
  String whyNot(long duration) throws ReflectiveOperationException {
    if (!isSparkSince(4, 1)) {
      return "Spark " + SPARK + " has no real-time mode; it takes Spark 4.1, or 4.3 where the query keeps state";
    }
    if (!execution.query().getClass().getSimpleName().equals("MicroBatchExecution")) {
      return "the query runs as " + execution.query().getClass().getSimpleName() + "; leave the option asyncProgressTrackingEnabled out";
    }
    if (!(execution.call("triggerExecutor") instanceof Governed)) {
      return "a batch that fails there would end the query, since Spark " + SPARK + " does not let what runs its triggers be replaced; leave live.mode out";
    }
    var conf = execution.session().conf();
    long least = JavaUtils.timeStringAs(conf.get(LEAST_MILLIS, "5000"), TimeUnit.MILLISECONDS);
    if (duration < least) {
      return "a batch of " + duration + " ms is shorter than the " + least + " ms that " + LEAST_MILLIS + " allows; make live.batch longer";
    }
    for (SparkDataStream stream : execution.sources()) {
      if (!ofRealTime().isInstance(stream)) {
        return "source " + stream + " cannot be read in real-time mode; Kafka's can";
      }
    }
    if (execution.sources().stream().distinct().count() < execution.sources().size()) {
      return "a source is read twice by the query; read it by two sources that differ in an option";
    }
    String problem = problemOfSink();
    if (problem != null) {
      return problem;
    }
    boolean asked = Boolean.parseBoolean(conf.get(ALLOWLIST, "true"));
    statically(RealTime.STREAMING + "runtime.RealTimeModeAllowlist", "checkAllowedSink", execution.call("sink"), asked);
    statically("org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker", "checkAdditionalRealTimeModeConstraints", execution.call("analyzedPlan"), execution.call("outputMode"));
    if (conf.contains(RealTime.SORTS) && Boolean.parseBoolean(conf.get(RealTime.SORTS))) {
      return RealTime.SORTS + " is true, and its sort would never end; leave it out";
    }
    if (keepsState() && !isPossibleWithState()) {
      return "the query keeps state, which Spark " + SPARK + " does not in real-time mode; it takes Spark 4.3";
    }
    if (keepsState() && (boolean) statically("org.apache.spark.util.Utils", "isDynamicAllocationEnabled", execution.session().sparkContext().conf())) {
      return "dynamic allocation is on (spark.dynamicAllocation.enabled), with which Spark shuffles nothing in real-time mode; turn it off";
    }
    boolean mayBeOld = !Boolean.parseBoolean(conf.get(ALLOWS_V1, "false"));
    if (mayBeOld && keepsState() && Integer.parseInt(conf.get(RealTime.FORMAT, "1")) < 2) {
      return "the checkpoint's state has format 1, with which a failed batch could lose state; start the query on a new checkpoint";
    }
    return null;
  }

  /** Why nothing can be written to its sink row by row; null: as far as its class tells, it can. */
  String problemOfSink() {
    Object sink = execution.call("sink");
    return sink instanceof SupportsWrite ? null : "its sink (" + sink.getClass().getSimpleName() + ") takes whole batches; write to Kafka, or by foreach";
  }

  /** Tasks hold their slots until the batch ends: those that get none read nothing, and so do other queries. */
  String tooFewSlots(Map<SparkDataStream, Offset> starts) throws ReflectiveOperationException {
    int needed = tasks(starts);
    SparkContext context = execution.session().sparkContext();
    int every = context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile());
    List<StreamingQuery> others = new ArrayList<>();
    execution.session().sharedState().activeStreamingQueries().values().forEach(other -> others.add((StreamingQuery) other));
    others.remove(execution.query());
    int kept;
    int free;
    synchronized (HOLDING) {
      HOLDING.remove(this);
      HOLDING.keySet().forEach(switched -> others.remove(switched.execution.query()));
      int taken = others.stream().filter(RunningQuery::holdsItsSlots).mapToInt(other -> tasksOf(context, other)).sum();
      kept = others.stream().allMatch(RunningQuery::holdsItsSlots) ? 0 : 1;
      free = Math.max(0, every - kept - taken - HOLDING.values().stream().mapToInt(Integer::intValue).sum());
      if (needed <= free) {
        HOLDING.put(this, needed);
        return null;
      }
    }
    return "it needs " + needed + " task slots all the time, and " + free + " of " + every + " are free for it"
        + (kept > 0 ? " (one is kept for other queries of the driver)" : "") + "; add executors, or have fewer partitions";
  }

  /** Of a query that the job itself has given such a trigger: the tasks of its last batch, all of which run at once; one, where it has none yet. */
  private static int tasksOf(SparkContext context, StreamingQuery query) {
    SparkStatusTracker tracker = context.statusTracker();
    int last = Arrays.stream(tracker.getJobIdsForGroup(query.runId().toString())).max().orElse(-1);
    Option<SparkJobInfo> job = tracker.getJobInfo(last);
    IntStream stages = job.isEmpty() ? IntStream.empty() : Arrays.stream(job.get().stageIds());
    return Math.max(1, stages.mapToObj(tracker::getStageInfo).mapToInt(stage -> stage.isEmpty() ? 0 : stage.get().numTasks()).sum());
  }

  /** It holds no slots any more. */
  void release() {
    synchronized (HOLDING) {
      HOLDING.remove(this);
    }
  }

  private int tasks(Map<SparkDataStream, Offset> starts) throws ReflectiveOperationException {
    var conf = execution.session().conf();
    int tasks = keepsState() ? Integer.parseInt(conf.get(STATE_PARTITIONS, conf.get(SHUFFLE_PARTITIONS))) : 0;
    for (SparkDataStream stream : execution.sources()) {
      Offset start = starts.get(stream);
      Object[] partitions = (Object[]) ofRealTime("planInputPartitions").invoke(stream, start != null ? start : stream.initialOffset());
      tasks += partitions.length;
    }
    return tasks;
  }

  private boolean keepsState() throws ReflectiveOperationException {
    // In 4.1 it is called containsStatefulOperator$1.
    Optional<Method> tells = Arrays.stream(execution.query().getClass().getDeclaredMethods()).filter(m -> m.getName().startsWith("containsStatefulOperator")).findFirst();
    if (tells.isEmpty()) {
      return false; // Spark refuses what it cannot run when it plans the batch
    }
    tells.get().setAccessible(true);
    return (boolean) tells.get().invoke(execution.query(), execution.call("analyzedPlan"));
  }

  private static Class<?> ofRealTime() throws ReflectiveOperationException {
    return Class.forName("org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode");
  }

  static Method ofRealTime(String name) throws ReflectiveOperationException {
    return Execution.method(ofRealTime(), name);
  }

  private static Object statically(String type, String name, Object... arguments) throws ReflectiveOperationException {
    return Execution.method(Class.forName(type), name).invoke(null, arguments);
  }

  private static boolean isSparkSince(int major, int minor) {
    String[] parts = SPARK.split("[.-]");
    int own = Integer.parseInt(parts[0]);
    return own > major || own == major && Integer.parseInt(parts[1]) >= minor;
  }
}
