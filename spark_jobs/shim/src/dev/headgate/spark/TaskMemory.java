package dev.headgate.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.spark.SparkContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryProgressEvent;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/**
 * What the tasks of each batch took of their memory, which no progress report tells.
 *
 * <p>A batch is known by the properties that Spark gives to its jobs, and it is complete once its progress has come over the same
 * bus, behind the ends of its tasks. The bus is asynchronous, so that may be after the next batch was planned.
 */
public final class TaskMemory extends SparkListener {
  private static final String QUERY = "sql.streaming.queryId";
  private static final String BATCH = "streaming.sql.batchId";
  private static final int BATCHES_KEPT = 16;
  private static final int QUERIES_KEPT = 256;

  private static final Map<String, TreeMap<Long, Sum>> QUERIES =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, TreeMap<Long, Sum>> eldest) {
          return size() > QUERIES_KEPT;
        }
      };

  private static final class Sum {
    long memorySpilled;
    long diskSpilled;
    long peaks;
    long largestPeak;
    boolean complete;
  }

  private final Map<Integer, Sum> stages = new HashMap<>();

  private TaskMemory() {}

  /** Begins to count what tasks of this context take. */
  public static void watch(SparkContext context) {
    context.addSparkListener(new TaskMemory());
  }

  /**
   * Hands out, once, the complete batches of a query as a JSON array of arrays: batch id, bytes spilled as they were in memory and
   * as they are on disk, the tasks' peaks of execution memory in all, and the largest of them.
   */
  public static String take(String query) {
    List<long[]> taken = new ArrayList<>();
    synchronized (QUERIES) {
      QUERIES.getOrDefault(query, new TreeMap<>()).entrySet().removeIf(
          batch -> {
            Sum sum = batch.getValue();
            if (sum.complete) {
              taken.add(new long[] {batch.getKey(), sum.memorySpilled, sum.diskSpilled, sum.peaks, sum.largestPeak});
            }
            return sum.complete;
          });
    }
    return Origin.json(taken);
  }

  /** Forgets a query: a batch that one run of it left unfinished is counted from the beginning by the next. */
  public static void forget(String query) {
    synchronized (QUERIES) {
      QUERIES.remove(query);
    }
  }

  @Override
  public void onStageSubmitted(SparkListenerStageSubmitted event) {
    Properties properties = event.properties();
    String query = properties == null ? null : properties.getProperty(QUERY);
    String batch = properties == null ? null : properties.getProperty(BATCH);
    if (query != null && batch != null) {
      synchronized (QUERIES) {
        stages.put(event.stageInfo().stageId(), batch(query, Long.parseLong(batch)));
      }
    }
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd event) {
    Sum sum = stages.get(event.stageId());
    TaskMetrics task = event.taskMetrics();
    if (sum == null || task == null) {
      return;
    }
    synchronized (QUERIES) {
      sum.memorySpilled += task.memoryBytesSpilled();
      sum.diskSpilled += task.diskBytesSpilled();
      sum.peaks += task.peakExecutionMemory();
      sum.largestPeak = Math.max(sum.largestPeak, task.peakExecutionMemory());
    }
  }

  @Override
  public void onStageCompleted(SparkListenerStageCompleted event) {
    stages.remove(event.stageInfo().stageId());
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    if (event instanceof QueryProgressEvent) {
      StreamingQueryProgress progress = ((QueryProgressEvent) event).progress();
      synchronized (QUERIES) {
        Sum sum = QUERIES.getOrDefault(progress.id().toString(), new TreeMap<>()).get(progress.batchId());
        if (sum != null) {
          sum.complete = true;
        }
      }
    }
  }

  /** The sum of a batch; of a query whose batches nobody takes the oldest is let go. */
  private static Sum batch(String query, long batch) {
    TreeMap<Long, Sum> batches = QUERIES.computeIfAbsent(query, id -> new TreeMap<>());
    Sum sum = batches.computeIfAbsent(batch, id -> new Sum());
    if (batches.size() > BATCHES_KEPT) {
      batches.pollFirstEntry();
    }
    return sum;
  }
}
