package dev.headgate.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.Option;
import scala.Some;
import scala.runtime.AbstractFunction1;

/**
 * Has single batches of a running query run in Spark's real-time mode, and the others as micro-batches.
 *
 * <p>Whether a batch is one of real-time mode, Spark looks up while it runs it: in the trigger of the query's execution, and in
 * the duration that the relations of its plan carry (read in the bytecode of {@code MicroBatchExecution}, {@code StreamExecution},
 * {@code DataSourceV2Strategy} and {@code IncrementalExecution} of 4.3; in no other class). So both are changed between two
 * batches, inside one run: the job's handle, its listeners and the run's id stay what they are, and no state is opened anew. All
 * that Spark checks when such a query is started is checked here at the change.
 *
 * <p>What it checks later, while it plans or schedules the batch, fails the batch. Such a batch, and any other that fails in
 * real-time mode, is followed by what a restart would do in its place: the run takes up its own checkpoint again, and goes on in
 * micro-batches. Nothing of the failed batch is in the logs by then, or it is repeated as it was planned. Where another driver has
 * written there, the query fails as it would in micro-batches.
 *
 * <p>One per query, and all of it on the query's own thread.
 */
final class RealTime {
  private static final Logger LOG = LoggerFactory.getLogger(RealTime.class);
  static final String STREAMING = "org.apache.spark.sql.execution.streaming.";
  private static final String STATE = "spark.sql.streaming.stateStore.";
  private static final String PROVIDER = STATE + "providerClass";
  private static final String ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider";
  static final String FORMAT = STATE + "checkpointFormatVersion";
  private static final String OTHER_WRITER = "CONCURRENT_STREAM_LOG_UPDATE"; // so called in 4.0 to 4.3

  /**
   * Of a batch with a shuffle, which needs a slot for each task of its stages: other jobs had tasks outstanding when it was submitted
   * (read in the bytecode of {@code DAGScheduler.rejectUnadmittablePipelinedGroup}, 4.3: free are all slots less those tasks).
   */
  private static final String NO_FREE_SLOTS = "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT";
  private static final String ADAPTIVE = "spark.sql.adaptive.enabled";
  static final String SORTS = "spark.sql.execution.sortBeforeRepartition";

  /** As {@code StreamExecution.setSparkSessionConfigsForRealTimeMode} of 4.3 has them, each where the job has not set it. */
  private static final Map<String, String> OF_STATE =
      Map.of(
          PROVIDER, ROCKS_DB,
          STATE + "rocksdb.changelogCheckpointing.enabled", "true",
          FORMAT, "2");

  private final StreamingQuery query;
  final Execution execution;
  private final RealTimeChecks checks;

  /** The trigger that the job has given the query. */
  final Object ownTrigger;

  private final Map<String, Option<String>> before = new LinkedHashMap<>();
  private LogicalPlan ownPlan;
  private long millis;
  private Refusal refusal;

  /**
   * @param why a sentence
   * @param passes whether it may be over in seconds, without a change of the query: slots that others hold
   */
  record Refusal(String why, boolean passes) {}

  RealTime(StreamingQuery query) {
    this.query = query;
    this.execution = new Execution(query);
    this.checks = new RealTimeChecks(execution);
    this.ownTrigger = execution.call("trigger");
  }

  boolean isOn() {
    return ownPlan != null;
  }

  /** Why it was not entered, or had to be left, since that was last told; null: nothing happened. */
  Refusal refusal() {
    return refusal;
  }

  /** The planner knows of the refusal. */
  void refusalIsTold() {
    refusal = null;
  }

  /**
   * Of a query that has never run: its state is to have the form that real-time mode needs, unless the job has a store of its own,
   * or a sink that real-time mode never writes to.
   *
   * <p>Spark's provider that is not RocksDB's throws where it is given format 2, when it makes its first store.
   */
  void prepareState() {
    var conf = execution.session().conf();
    if (RealTimeChecks.isPossibleWithState() && checks.problemOfSink() == null && conf.get(PROVIDER, ROCKS_DB).equals(ROCKS_DB)) {
      OF_STATE.forEach((key, value) -> {
        if (!conf.contains(key)) {
          conf.set(key, value);
        }
      });
    }
  }

  /**
   * The batch that is being planned is to run in real-time mode, for so long.
   *
   * @param starts where each stream would begin, by stream; a stream that is not there begins where it says
   * @return whether it will
   */
  boolean enter(long duration, Map<SparkDataStream, Offset> starts) {
    try {
      if (isOn() && duration != millis) {
        leave();
      }
      String why = isOn() ? null : checks.whyNot(duration);
      boolean passes = why == null;
      if (passes) {
        why = checks.tooFewSlots(starts);
      }
      if (why == null) {
        if (!isOn()) {
          swap(duration);
        }
        return true;
      }
      refuse(why, passes);
    } catch (InvocationTargetException e) {
      refuse("Spark says: " + e.getCause().getMessage(), false);
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.warn("Headgate cannot have {} run in real-time mode", query.id(), e);
      refuse("Headgate does not know real-time mode as this version of Spark has it: " + e, false);
    }
    return false;
  }

  private void refuse(String why, boolean passes) {
    leave();
    checks.release();
    refusal = new Refusal(why, passes);
  }

  /** The batch that is being planned is a micro-batch. */
  void leave() {
    if (!isOn()) {
      return;
    }
    checks.release();
    try {
      execution.set("logicalPlan", ownPlan);
      execution.set("trigger", ownTrigger);
      ownPlan = null;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Headgate cannot end the real-time mode of " + query.id(), e);
    }
    before.forEach((key, value) -> {
      if (value.isEmpty()) {
        execution.session().conf().unset(key);
      } else {
        execution.session().conf().set(key, value.get());
      }
    });
    before.clear();
    execution.sources().forEach(this::isInMicroBatches);
  }

  /**
   * Kafka's stream keeps that it was prepared, and nothing of Spark takes it back: it would ask its broker for the latest offsets at
   * each report (read in the bytecode of {@code KafkaMicroBatchStream}, 4.1.1 and 4.2.0: that is all the field is for).
   */
  private void isInMicroBatches(SparkDataStream stream) {
    Object real = stream;
    while (real instanceof Governed standIn) {
      real = standIn.delegate;
    }
    try {
      Execution.setIfThere(real, "inRealTimeMode", false);
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.debug("{} stays in real-time mode as far as its metrics go", real, e);
    }
  }

  /** The query is over, maybe in the midst of a batch: its tasks hold no slots any more. */
  void ends() {
    checks.release();
  }

  private void swap(long duration) throws ReflectiveOperationException {
    ownPlan = (LogicalPlan) execution.call("logicalPlan"); // from here on it is to be undone
    millis = duration;
    for (SparkDataStream stream : execution.sources()) {
      RealTimeChecks.ofRealTime("prepareForRealTimeMode").invoke(stream);
    }
    execution.set("logicalPlan", reading(ownPlan, duration));
    execution.set("trigger", Class.forName(STREAMING + "RealTimeTrigger").getConstructor(long.class).newInstance(duration));
    put(ADAPTIVE);
    put(SORTS);
  }

  private void put(String key) {
    var conf = execution.session().conf();
    before.put(key, conf.contains(key) ? conf.getOption(key) : Option.empty());
    conf.set(key, "false");
  }

  /** The plan with relations that real-time mode reads for so long. */
  private static LogicalPlan reading(LogicalPlan plan, long duration) {
    return Plans.with(
        plan,
        node -> Plans.isNamed(node, "StreamingDataSourceV2ScanRelation"),
        node -> with(node, "relation", with((LogicalPlan) node.productElement(0), "realTimeModeDuration", Some.apply(duration))));
  }

  private static LogicalPlan with(LogicalPlan node, String name, Object value) {
    return node.makeCopy(Plans.elements(node, (each, element) -> each.equals(name) ? value : element));
  }

  // a batch that fails ---------------------------------------------------------------------------------

  /** An executor of triggers in which a batch of real-time mode that fails does not fail the query. */
  Object mending(Object executor) {
    return StandIn.of(
        executor,
        (method, arguments) -> {
          if (method.getName().equals("execute")) {
            @SuppressWarnings("unchecked")
            var batch = (Function1<Object, Object>) arguments[0];
            arguments = new Object[] {new Mended(batch, executor)};
          }
          return Governed.forward(executor, method, arguments);
        });
  }

  private final class Mended extends AbstractFunction1<Object, Object> {
    private final Function1<Object, Object> batch;
    private final Object executor;

    Mended(Function1<Object, Object> batch, Object executor) {
      this.batch = batch;
      this.executor = executor;
    }

    @Override
    public Object apply(Object context) {
      try {
        return batch.apply(context);
      } catch (Throwable e) {
        if (!isOn() || !(e instanceof Exception) || !query.isActive() || Thread.currentThread().isInterrupted() || isFinal(e)) {
          throw Governed.<RuntimeException>asThrown(e);
        }
        boolean passes = has(e, NO_FREE_SLOTS);
        LOG.warn("A batch of {} has failed in real-time mode; it goes on in micro-batches, from its last commit", query.id(), passes ? null : e);
        refuse("Spark says: " + e.getMessage(), passes);
        takeUpCheckpoint(e);
        return true;
      }
    }

    /** Whether a restart would be wrong: another driver writes to the checkpoint, or the planner has said that the query is to end. */
    private static boolean isFinal(Throwable failure) {
      for (Throwable e = failure; e != null; e = e.getCause()) {
        if (FencedException.is(e) || e instanceof PlannerException) {
          return true;
        }
      }
      return has(failure, OTHER_WRITER);
    }

    private static boolean has(Throwable failure, String condition) {
      for (Throwable e = failure; e != null; e = e.getCause()) {
        if (e instanceof SparkThrowable known && condition.equals(known.getCondition())) {
          return true;
        }
      }
      return false;
    }

    private void takeUpCheckpoint(Throwable failure) {
      try {
        execution.session().sparkContext().cancelJobGroup(query.runId().toString());
        execution.looksAgainWhereItsLogEnds();
        Method initialize = query.getClass().getDeclaredMethod("initializeExecution", SparkSession.class);
        initialize.setAccessible(true);
        Object context = initialize.invoke(query, execution.session());
        Execution.method(executor.getClass(), "setNextBatch").invoke(executor, context);
      } catch (ReflectiveOperationException | RuntimeException e) {
        failure.addSuppressed(e);
        throw Governed.<RuntimeException>asThrown(failure);
      }
    }
  }
}
