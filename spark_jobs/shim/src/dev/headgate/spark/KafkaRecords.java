package dev.headgate.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * Single records of Kafka's partitions, for hundreds of partitions in one call from Python: samples of what is at an offset.
 *
 * <p>Partitions are assigned, never subscribed to, so no consumer group is joined. As in {@link KafkaOffsets}, Kafka's classes are
 * reached by reflection.
 */
public final class KafkaRecords {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final TypeReference<Map<String, Long>> ASKED = new TypeReference<>() {};
  private static final long POLL_MILLIS = 100;

  private final Object consumer;
  private final Constructor<?> partition;
  private final Map<String, Method> methods = new HashMap<>();
  private final Map<String, Method> ofRecord = new HashMap<>();
  private final Method ofPartition;
  private final Map<String, Gap> gaps = new HashMap<>();

  /** Offsets without a record that reads have crossed which were not answered in time; the next one goes on behind them. */
  private record Gap(long begin, long end) {}

  /**
   * Reads by this client.
   *
   * @param consumer an {@code org.apache.kafka.clients.consumer.KafkaConsumer} of byte arrays, of no group
   */
  public KafkaRecords(Object consumer) throws ReflectiveOperationException {
    ClassLoader loader = consumer.getClass().getClassLoader();
    Class<?> type = loader.loadClass("org.apache.kafka.clients.consumer.Consumer");
    Class<?> topicPartition = loader.loadClass("org.apache.kafka.common.TopicPartition");
    Class<?> record = loader.loadClass("org.apache.kafka.clients.consumer.ConsumerRecord");
    this.consumer = consumer;
    partition = topicPartition.getConstructor(String.class, int.class);
    methods.put("assign", type.getMethod("assign", Collection.class));
    methods.put("resume", type.getMethod("resume", Collection.class));
    methods.put("pause", type.getMethod("pause", Collection.class));
    methods.put("seek", type.getMethod("seek", topicPartition, long.class));
    methods.put("position", type.getMethod("position", topicPartition));
    methods.put("currentLag", type.getMethod("currentLag", topicPartition));
    methods.put("poll", type.getMethod("poll", Duration.class));
    ofPartition = loader.loadClass("org.apache.kafka.clients.consumer.ConsumerRecords").getMethod("records", topicPartition);
    for (String name : List.of("offset", "timestamp", "value")) {
      ofRecord.put(name, record.getMethod(name));
    }
  }

  /**
   * Reads the first records from an offset on. There has to be one, or the end of the log some way behind it: else the call waits.
   *
   * <p>A poll ends without records where all that was fetched is aborted. That is no answer yet: there may be records behind it.
   *
   * @param asked JSON object from {@code topic/partition} to an offset
   * @param most records of each partition
   * @param valueBytes 0 if no values are wanted; else they are told in Base64, and no more records once they have so many bytes
   * @return JSON object from {@code topic/partition} to a list of {@code [offset, timestamp]} or {@code [offset, timestamp, value]};
   *     partitions that have not answered in time are left out, and those for whose values there was no room
   */
  public String read(String asked, int most, long valueBytes, long timeoutMillis)
      throws JsonProcessingException, ReflectiveOperationException {
    Map<String, Long> offsets = JSON.readValue(asked, ASKED);
    Map<String, Object> waiting = new LinkedHashMap<>();
    for (String name : offsets.keySet()) {
      int slash = name.lastIndexOf('/');
      waiting.put(name, partition.newInstance(name.substring(0, slash), Integer.parseInt(name.substring(slash + 1))));
    }
    call("assign", List.copyOf(waiting.values()));
    call("resume", List.copyOf(waiting.values()));
    for (Map.Entry<String, Object> each : waiting.entrySet()) {
      call("seek", each.getValue(), beginOf(each.getKey(), offsets.get(each.getKey())));
    }
    long deadline = System.nanoTime() + Duration.ofMillis(timeoutMillis).toNanos();
    Map<String, List<Object[]>> found = new HashMap<>();
    Room room = new Room(valueBytes);
    while (!waiting.isEmpty() && room.isLeft() && System.nanoTime() < deadline) {
      Object polled = call("poll", Duration.ofMillis(POLL_MILLIS));
      for (Map.Entry<String, Object> each : List.copyOf(waiting.entrySet())) {
        if (!room.isLeft()) {
          break;
        }
        List<?> records = (List<?>) ofPartition.invoke(polled, each.getValue());
        if (!records.isEmpty() || isAtEnd(each.getValue(), beginOf(each.getKey(), offsets.get(each.getKey())))) {
          gaps.remove(each.getKey());
          found.put(each.getKey(), told(records.subList(0, Math.min(most, records.size())), room));
          waiting.remove(each.getKey());
          call("pause", List.of(each.getValue()));
        }
      }
    }
    if (room.isLeft()) {
      noteGaps(waiting, offsets); // else records may have come of the others, too, and not been told
    }
    String told = JSON.writeValueAsString(found);
    return room.hasValues() ? told : Packed.of(told); // values would not become shorter
  }

  private void noteGaps(Map<String, Object> waiting, Map<String, Long> offsets) throws ReflectiveOperationException {
    for (Map.Entry<String, Object> each : waiting.entrySet()) {
      long begin = offsets.get(each.getKey());
      long position = (long) call("position", each.getValue());
      Gap gap = gaps.get(each.getKey());
      if (position > begin) {
        gaps.put(each.getKey(), new Gap(gap == null || begin < gap.begin || begin > gap.end ? begin : gap.begin, position));
      }
    }
  }

  private long beginOf(String name, long asked) {
    Gap gap = gaps.get(name);
    return gap != null && asked >= gap.begin && asked <= gap.end ? gap.end : asked;
  }

  /** Whether all up to the end of the log was fetched; before a fetch, the end that the client knows is an old one. */
  private boolean isAtEnd(Object partition, long begin) throws ReflectiveOperationException {
    return (long) call("position", partition) > begin && ((OptionalLong) call("currentLag", partition)).orElse(1) <= 0;
  }

  private List<Object[]> told(List<?> records, Room room) throws ReflectiveOperationException {
    List<Object[]> told = new ArrayList<>();
    for (Object record : records) {
      if (!room.isLeft()) {
        break;
      }
      Object[] all = {of(record, "offset"), of(record, "timestamp"), room.hasValues() ? of(record, "value") : null};
      told.add(room.hasValues() ? all : Arrays.copyOf(all, 2));
      room.take((byte[]) all[2]);
    }
    return told;
  }

  /** How many bytes of values may still be told: hundreds of partitions with large records would fill the driver's memory. */
  private static final class Room {
    private final long bytes;
    private long taken;

    Room(long bytes) {
      this.bytes = bytes;
    }

    boolean hasValues() {
      return bytes > 0;
    }

    boolean isLeft() {
      return !hasValues() || taken < bytes;
    }

    void take(byte[] value) {
      taken += value == null ? 0 : value.length;
    }
  }

  private Object of(Object record, String member) throws ReflectiveOperationException {
    return ofRecord.get(member).invoke(record);
  }

  private Object call(String method, Object... arguments) throws ReflectiveOperationException {
    return methods.get(method).invoke(consumer, arguments);
  }
}
