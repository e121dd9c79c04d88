package dev.headgate.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Offsets of Kafka's records by their timestamps, for hundreds of partitions in one call from Python.
 *
 * <p>Kafka's classes are reached by reflection: they come with the connector, through a class loader below the one that has this
 * class, and a driver without Kafka must not miss them. Listing offsets neither joins a consumer group nor commits to one.
 */
public final class KafkaOffsets {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final TypeReference<Map<String, Long>> ASKED = new TypeReference<>() {};
  private static final String ADMIN = "org.apache.kafka.clients.admin.";

  /** What to ask for instead of a timestamp: the numbers of Kafka's own protocol. */
  private static final Map<Long, String> SPECIAL = Map.of(-1L, "latest", -2L, "earliest", -3L, "maxTimestamp");

  private final Object admin;
  private final Object options;
  private final Method listOffsets;
  private final Method forTimestamp;
  private final Map<Long, Object> special = new HashMap<>();
  private final Constructor<?> partition;
  private final Method ofPartition;
  private final Method get;
  private final Method offset;
  private final Method timestamp;

  /**
   * Asks by this client.
   *
   * @param admin an {@code org.apache.kafka.clients.admin.Admin}
   * @param committed whether logs end, to the reader, where the first transaction is that has not ended: {@code read_committed}
   */
  public KafkaOffsets(Object admin, boolean committed) throws ReflectiveOperationException {
    ClassLoader loader = admin.getClass().getClassLoader();
    Class<?> spec = loader.loadClass(ADMIN + "OffsetSpec");
    Class<?> topicPartition = loader.loadClass("org.apache.kafka.common.TopicPartition");
    Class<?> info = loader.loadClass(ADMIN + "ListOffsetsResult$ListOffsetsResultInfo");
    Class<?> optionsOf = loader.loadClass(ADMIN + "ListOffsetsOptions");
    Class<?> isolation = loader.loadClass("org.apache.kafka.common.IsolationLevel");
    Object level = isolation.getField(committed ? "READ_COMMITTED" : "READ_UNCOMMITTED").get(null);
    this.admin = admin;
    options = optionsOf.getConstructor(isolation).newInstance(level);
    listOffsets = loader.loadClass(ADMIN + "Admin").getMethod("listOffsets", Map.class, optionsOf);
    forTimestamp = spec.getMethod("forTimestamp", long.class);
    for (Map.Entry<Long, String> each : SPECIAL.entrySet()) {
      special.put(each.getKey(), spec.getMethod(each.getValue()).invoke(null));
    }
    partition = topicPartition.getConstructor(String.class, int.class);
    ofPartition = loader.loadClass(ADMIN + "ListOffsetsResult").getMethod("partitionResult", topicPartition);
    get = loader.loadClass("org.apache.kafka.common.KafkaFuture").getMethod("get", long.class, TimeUnit.class);
    offset = info.getMethod("offset");
    timestamp = info.getMethod("timestamp");
  }

  /**
   * Finds the first record of each partition that is not earlier than a timestamp.
   *
   * @param asked JSON object from {@code topic/partition} to a timestamp (milliseconds), or to -1 for the end of the log, -2 for its
   *     beginning, -3 for the record with the largest timestamp
   * @return JSON object from {@code topic/partition} to {@code [offset, timestamp]}, both -1 where there is no such record, or to a
   *     text: why the partition could not be asked; {@link Packed} where it is long
   */
  public String find(String asked, long timeoutMillis)
      throws JsonProcessingException, ReflectiveOperationException, InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
    Map<String, Object> partitions = new LinkedHashMap<>();
    Map<Object, Object> specs = new HashMap<>();
    for (Map.Entry<String, Long> each : JSON.readValue(asked, ASKED).entrySet()) {
      int slash = each.getKey().lastIndexOf('/');
      Object key = partition.newInstance(each.getKey().substring(0, slash), Integer.parseInt(each.getKey().substring(slash + 1)));
      partitions.put(each.getKey(), key);
      Object spec = special.get(each.getValue());
      specs.put(key, spec != null ? spec : forTimestamp.invoke(null, each.getValue()));
    }
    Object result = listOffsets.invoke(admin, specs, options);
    partitions.replaceAll((name, key) -> answer(result, key, deadline));
    return Packed.of(JSON.writeValueAsString(partitions));
  }

  private Object answer(Object result, Object key, long deadline) {
    try {
      Object future = ofPartition.invoke(result, key);
      Object info = get.invoke(future, Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
      return new long[] {(long) offset.invoke(info), (long) timestamp.invoke(info)};
    } catch (InvocationTargetException e) {
      Throwable cause = e.getCause() instanceof ExecutionException ? e.getCause().getCause() : e.getCause();
      return cause.toString();
    } catch (IllegalAccessException e) {
      return e.toString();
    }
  }
}
