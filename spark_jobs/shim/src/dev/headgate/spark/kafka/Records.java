package dev.headgate.spark.kafka;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Single records of Kafka's partitions, for hundreds of partitions in one call from Python: samples of what is at an offset.
 *
 * <p>Partitions are assigned, never subscribed to, so no consumer group is joined.
 */
public final class Records {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final TypeReference<Map<String, Long>> ASKED = new TypeReference<>() {};
  private static final Duration POLL = Duration.ofMillis(100);

  private final Consumer<byte[], byte[]> consumer;
  private final Map<String, Gap> gaps = new HashMap<>();
  private long room; // bytes of values that this call may still tell: large records of hundreds of partitions would fill the driver's memory

  /** Offsets without a record that reads have crossed which were not answered in time; the next one goes on behind them. */
  private record Gap(long begin, long end) {}

  /** @param consumer of no group */
  public Records(Consumer<byte[], byte[]> consumer) {
    this.consumer = consumer;
  }

  /**
   * Reads the first records from an offset on. There has to be one, or the end of the log some way behind it: else the call waits.
   * Of a log that ends before the offset there are none: the client goes to its beginning then ({@code auto.offset.reset}), and what
   * is there was not asked for.
   *
   * <p>A poll ends without records where all that was fetched is aborted. That is no answer yet: there may be records behind it.
   *
   * @param asked JSON object from {@code topic/partition} to an offset
   * @param most records of each partition
   * @param valueBytes 0 if no values are wanted; else they are told in Base64, and no more records once they have so many bytes
   * @return JSON object from {@code topic/partition} to a list of {@code [offset, timestamp]} or {@code [offset, timestamp, value]};
   *     partitions that have not answered in time are left out, and those for whose values there was no room
   */
  public String read(String asked, int most, long valueBytes, long timeoutMillis) throws JsonProcessingException {
    Map<String, Long> begins = JSON.readValue(asked, ASKED);
    begins.replaceAll(this::beginOf);
    Map<String, TopicPartition> waiting = new LinkedHashMap<>();
    begins.keySet().forEach(name -> waiting.put(name, Logs.partition(name)));
    consumer.assign(List.copyOf(waiting.values()));
    consumer.resume(List.copyOf(waiting.values()));
    waiting.forEach((name, partition) -> consumer.seek(partition, begins.get(name)));
    long deadline = System.nanoTime() + Duration.ofMillis(timeoutMillis).toNanos();
    Map<String, List<Object[]>> found = new HashMap<>();
    room = valueBytes > 0 ? valueBytes : Long.MAX_VALUE;
    while (!waiting.isEmpty() && room > 0 && System.nanoTime() < deadline) {
      var polled = consumer.poll(POLL);
      for (var each : List.copyOf(waiting.entrySet())) {
        if (room <= 0) {
          break;
        }
        var records = polled.records(each.getValue());
        long begin = begins.get(each.getKey());
        boolean endsBefore = (records.isEmpty() ? consumer.position(each.getValue()) : records.get(0).offset()) < begin;
        if (endsBefore || !records.isEmpty() || isAtEnd(each.getValue(), begin)) {
          gaps.remove(each.getKey());
          found.put(each.getKey(), told(records.subList(0, endsBefore ? 0 : Math.min(most, records.size())), valueBytes > 0));
          waiting.remove(each.getKey());
          consumer.pause(List.of(each.getValue()));
        }
      }
    }
    if (room > 0) {
      waiting.forEach((name, partition) -> noteGap(name, begins.get(name), consumer.position(partition)));
    } // else records may have come of the others, too, and not been told
    return JSON.writeValueAsString(found);
  }

  private void noteGap(String name, long begin, long position) {
    if (position > begin) {
      Gap gap = gaps.get(name);
      gaps.put(name, new Gap(gap != null && begin == gap.end ? gap.begin : begin, position));
    }
  }

  private long beginOf(String name, long asked) {
    Gap gap = gaps.get(name);
    return gap != null && asked >= gap.begin && asked <= gap.end ? gap.end : asked;
  }

  /** Whether all up to the end of the log was fetched; before a fetch, the end that the client knows is an old one. */
  private boolean isAtEnd(TopicPartition partition, long begin) {
    return consumer.position(partition) > begin && consumer.currentLag(partition).orElse(1) <= 0;
  }

  private List<Object[]> told(List<ConsumerRecord<byte[], byte[]>> records, boolean withValues) {
    List<Object[]> told = new ArrayList<>();
    for (var record : records) {
      if (room <= 0) {
        break;
      }
      Object[] place = {record.offset(), record.timestamp()};
      told.add(withValues ? new Object[] {place[0], place[1], record.value()} : place);
      room -= withValues && record.value() != null ? record.value().length : 0;
    }
    return told;
  }
}
