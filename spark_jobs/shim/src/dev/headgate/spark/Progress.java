package dev.headgate.spark;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.streaming.StateOperatorProgress;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/** What is read of a query's progress, without the offsets of all its partitions, which make it a hundred times as long. */
final class Progress {
  private static final String COUNTS_ROWS = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows";

  private static final String REPORTS_KEPT = "spark.sql.streaming.numRecentProgressUpdates";

  private Progress() {}

  /**
   * Has Spark keep the last report of a query, by which a planner learns that a batch has ended.
   *
   * <p>Spark keeps one less than its session says, so none where it says 1, and fails each batch where it says 0 (read in the bytecode of
   * {@code ProgressReporter.addNewProgress}, 4.0.5 and 4.3.0).
   */
  static void keepLast(org.apache.spark.sql.SparkSession session) {
    if (Integer.parseInt(session.conf().get(REPORTS_KEPT).strip()) < 2) {
      session.conf().set(REPORTS_KEPT, "2");
    }
  }

  /**
   * JSON object of {@code batchId}, {@code durationMs}, {@code eventTime}, and the rows of each state operator and source; no rows of an
   * operator whose store does not count them, for which Spark says 0.
   */
  static String of(StreamingQueryProgress progress, SparkSession session) {
    boolean counts = Boolean.parseBoolean(session.conf().get(COUNTS_ROWS, "true"));
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("batchId", progress.batchId());
    members.put("durationMs", progress.durationMs());
    members.put("eventTime", progress.eventTime());
    var operators = Stream.of(progress.stateOperators());
    members.put("stateOperators", operators.map(each -> counts || !isRocksDb(each) ? Map.of("numRowsTotal", each.numRowsTotal()) : Map.of()).toList());
    members.put("sources", Stream.of(progress.sources()).map(each -> Map.of("numInputRows", each.numInputRows())).toList());
    return Origin.json(members);
  }

  /** By its metrics: which store a query has is up to its checkpoint, and not to its settings. */
  private static boolean isRocksDb(StateOperatorProgress operator) {
    return operator.customMetrics().keySet().stream().anyMatch(name -> name.startsWith("rocksdb"));
  }
}
