package dev.headgate.spark;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/** What is read of a query's progress, without the offsets of all its partitions, which make it a hundred times as long. */
final class Progress {
  private Progress() {}

  /** JSON object of {@code batchId}, {@code durationMs}, {@code eventTime}, and the rows of each state operator and source. */
  static String of(StreamingQueryProgress progress) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("batchId", progress.batchId());
    members.put("durationMs", progress.durationMs());
    members.put("eventTime", progress.eventTime());
    members.put("stateOperators", rows("numRowsTotal", Stream.of(progress.stateOperators()).map(each -> each.numRowsTotal())));
    members.put("sources", rows("numInputRows", Stream.of(progress.sources()).map(each -> each.numInputRows())));
    return Origin.json(members);
  }

  private static List<Map<String, Long>> rows(String name, Stream<Long> counts) {
    return counts.map(count -> Map.of(name, count)).toList();
  }
}
