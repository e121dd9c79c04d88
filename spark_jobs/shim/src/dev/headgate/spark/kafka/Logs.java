package dev.headgate.spark.kafka;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/**
 * What a broker knows of the logs of partitions, for hundreds of them in one call from Python: offsets by timestamp, and which have
 * transactions.
 *
 * <p>None of it joins a consumer group or commits to one. A partition that could not be asked has a text instead: why.
 */
public final class Logs {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final TypeReference<Map<String, Long>> TIMES = new TypeReference<>() {};
  private static final TypeReference<List<String>> NAMES = new TypeReference<>() {};

  /** What to ask for instead of a timestamp: the numbers of Kafka's own protocol. */
  private static final Map<Long, OffsetSpec> SPECIAL =
      Map.of(-1L, OffsetSpec.latest(), -2L, OffsetSpec.earliest(), -3L, OffsetSpec.maxTimestamp());

  private final Admin admin;
  private final ListOffsetsOptions options;

  /** @param committed whether logs end, to the reader, where the first transaction is that has not ended: {@code read_committed} */
  public Logs(Admin admin, boolean committed) {
    this.admin = admin;
    options = new ListOffsetsOptions(committed ? IsolationLevel.READ_COMMITTED : IsolationLevel.READ_UNCOMMITTED);
  }

  /**
   * Finds the first record of each partition that is not earlier than a timestamp.
   *
   * @param asked JSON object from {@code topic/partition} to a timestamp (milliseconds), or to -1 for the end of the log, -2 for its
   *     beginning, -3 for the record with the largest timestamp
   * @return JSON object from {@code topic/partition} to {@code [offset, timestamp]}, both -1 where there is no such record
   */
  public String offsets(String asked, long timeoutMillis) throws JsonProcessingException, InterruptedException {
    Map<String, Long> times = JSON.readValue(asked, TIMES);
    Map<TopicPartition, OffsetSpec> specs = new HashMap<>();
    times.forEach((name, time) -> specs.put(partition(name), SPECIAL.getOrDefault(time, OffsetSpec.forTimestamp(time))));
    var result = admin.listOffsets(specs, options);
    return told(times.keySet(), timeoutMillis, result::partitionResult, found -> new long[] {found.offset(), found.timestamp()});
  }

  /**
   * Tells whether a producer has a transaction in a partition, or had one.
   *
   * <p>A broker knows the producers that wrote to a partition lately (for a day, unless it is set up otherwise), and of each whether
   * a transaction of it is open there, or has ended.
   *
   * @param asked JSON list of {@code topic/partition}
   * @return JSON object from {@code topic/partition} to whether it has transactions
   */
  public String transactions(String asked, long timeoutMillis) throws JsonProcessingException, InterruptedException {
    List<String> names = JSON.readValue(asked, NAMES);
    var result = admin.describeProducers(names.stream().map(Logs::partition).toList());
    return told(names, timeoutMillis, result::partitionResult, state -> state.activeProducers().stream().anyMatch(Logs::isTransactional));
  }

  private static boolean isTransactional(ProducerState producer) {
    return producer.coordinatorEpoch().isPresent() || producer.currentTransactionStartOffset().isPresent();
  }

  private static <T> String told(
      Collection<String> names, long timeoutMillis, Function<TopicPartition, KafkaFuture<T>> answers, Function<T, Object> inWords)
      throws JsonProcessingException, InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
    Map<String, Object> told = new LinkedHashMap<>();
    for (String name : names) {
      try {
        T answer = answers.apply(partition(name)).get(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
        told.put(name, inWords.apply(answer));
      } catch (ExecutionException e) {
        told.put(name, e.getCause().toString());
      } catch (TimeoutException e) {
        told.put(name, e.toString());
      }
    }
    return JSON.writeValueAsString(told);
  }

  /** What {@code topic/partition} names. */
  static TopicPartition partition(String name) {
    int slash = name.lastIndexOf('/');
    return new TopicPartition(name.substring(0, slash), Integer.parseInt(name.substring(slash + 1)));
  }
}
