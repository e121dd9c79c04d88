package dev.headgate.spark;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The trigger that the job gave to its query: how often Spark asks its streams.
 *
 * <p>It becomes the planner's affair, and Spark asks ten times a second: when a stream is first asked for its default limit, another
 * executor of triggers is put in the place of Spark's (read in the bytecode of {@code MicroBatchExecution.logicalPlan}, 4.0 to 4.3). Where
 * that cannot be done, the job's own trigger stays: a stream is asked less often, and nothing is lost.
 */
final class OwnTrigger {
  private static final Logger LOG = LoggerFactory.getLogger(OwnTrigger.class);

  /** How often the planner is asked; also the shortest interval that a query can have. */
  private static final long BASE_MILLIS = 100;

  private final StreamingQuery query;
  private final RealTime realTime;
  private boolean asked;
  private String problem;
  private long ownMillis; // the job's own interval, where its trigger was shortened
  private long nextMillis; // when the job's own trigger asks next; 0: at once, as a query begins
  private long decidedIn = -1;
  private boolean due;

  OwnTrigger(StreamingQuery query, RealTime realTime) {
    this.query = query;
    this.realTime = realTime;
  }

  /**
   * Spark asks a stream for its default limit: has all of them asked from now on as often as the planner needs it.
   *
   * @return whether this is the first time, of a trigger that asks again and again
   */
  boolean handOver() {
    if (asked || !(realTime.ownTrigger instanceof ProcessingTimeTrigger own)) {
      return false;
    }
    asked = true;
    try {
      boolean isLong = own.intervalMs() == 0 || own.intervalMs() > BASE_MILLIS;
      replaceExecutor(isLong);
      ownMillis = isLong ? own.intervalMs() : 0;
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.warn("Headgate cannot shorten the trigger of {}; it is governed at its own, and reacts no faster", Thread.currentThread().getName(), e);
      problem = "Spark " + SparkContext.getOrCreate().version() + " does not let its trigger be shortened (" + e + "): it is governed at its own, every "
          + own.intervalMs() + " ms, and reacts no faster; give the query a shorter trigger in the job";
    }
    return true;
  }

  /** Why the job's own trigger has stayed, with the remedy; null: it has not. */
  String problem() {
    return problem;
  }

  /** A planner has decided: what the job's own trigger would have asked for until now is done with. */
  void isPlanned() {
    if (ownMillis != 0) {
      nextMillis = after(System.currentTimeMillis());
    }
  }

  /**
   * Whether the job's own trigger would ask in this one, where no planner is there to say when; for all streams of a trigger alike.
   *
   * <p>A trigger cannot be made long again while it runs. The grid is Spark's own: that of the wall clock.
   */
  boolean isDue(long trigger) {
    if (ownMillis == 0) {
      return true;
    }
    if (trigger != decidedIn) {
      decidedIn = trigger;
      long now = System.currentTimeMillis();
      due = now >= nextMillis;
      if (due) {
        nextMillis = after(now);
      }
    }
    return due;
  }

  private long after(long now) {
    return now / ownMillis * ownMillis + ownMillis;
  }

  /** Has batches that fail in real-time mode mended, and, where the trigger is long, streams asked more often. */
  private void replaceExecutor(boolean isLong) throws ReflectiveOperationException {
    Object executor = new Execution(query).call("triggerExecutor");
    String name = executor.getClass().getName();
    if (isLong) {
      Constructor<?> made = Arrays.stream(executor.getClass().getConstructors()).filter(c -> c.getParameterCount() == 2).findFirst().orElseThrow();
      executor = made.newInstance(new ProcessingTimeTrigger(BASE_MILLIS), new Execution(query).call("triggerClock"));
    }
    Execution.method(query.getClass(), "triggerExecutor_$eq").invoke(query, realTime.mending(executor));
    quieten(name);
  }

  /** It warns of each trigger that takes longer than its interval: under the short one, of every batch. */
  private static void quieten(String logger) {
    try {
      Configurator.setLevel(logger, Level.ERROR);
    } catch (LinkageError e) {
      LOG.debug("Spark's warnings of long triggers stay on", e);
    }
  }
}
