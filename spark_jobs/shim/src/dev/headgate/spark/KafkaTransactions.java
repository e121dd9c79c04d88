package dev.headgate.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Which of Kafka's partitions have transactions, for hundreds of them in one call from Python.
 *
 * <p>A broker knows the producers that wrote to a partition lately (for a day, unless it is set up otherwise), and of each whether a
 * transaction of it is open there, or has ended. As in {@link KafkaOffsets}, Kafka's classes are reached by reflection.
 */
public final class KafkaTransactions {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final TypeReference<List<String>> ASKED = new TypeReference<>() {};
  private static final String ADMIN = "org.apache.kafka.clients.admin.";

  private final Object admin;
  private final Method describeProducers;
  private final Constructor<?> partition;
  private final Method ofPartition;
  private final Method get;
  private final Method producers;
  private final Method coordinatorEpoch;
  private final Method open;

  /**
   * Asks by this client.
   *
   * @param admin an {@code org.apache.kafka.clients.admin.Admin}
   */
  public KafkaTransactions(Object admin) throws ReflectiveOperationException {
    ClassLoader loader = admin.getClass().getClassLoader();
    Class<?> topicPartition = loader.loadClass("org.apache.kafka.common.TopicPartition");
    Class<?> producer = loader.loadClass(ADMIN + "ProducerState");
    this.admin = admin;
    describeProducers = loader.loadClass(ADMIN + "Admin").getMethod("describeProducers", Collection.class);
    partition = topicPartition.getConstructor(String.class, int.class);
    ofPartition = loader.loadClass(ADMIN + "DescribeProducersResult").getMethod("partitionResult", topicPartition);
    get = loader.loadClass("org.apache.kafka.common.KafkaFuture").getMethod("get", long.class, TimeUnit.class);
    producers = loader.loadClass(ADMIN + "DescribeProducersResult$PartitionProducerState").getMethod("activeProducers");
    coordinatorEpoch = producer.getMethod("coordinatorEpoch");
    open = producer.getMethod("currentTransactionStartOffset");
  }

  /**
   * Tells whether a producer has a transaction in a partition, or had one.
   *
   * @param asked JSON list of {@code topic/partition}
   * @return JSON object from {@code topic/partition} to whether it has transactions, or to a text: why the partition could not be
   *     asked; {@link Packed} where it is long
   */
  public String find(String asked, long timeoutMillis) throws JsonProcessingException, ReflectiveOperationException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
    Map<String, Object> partitions = new LinkedHashMap<>();
    for (String name : JSON.readValue(asked, ASKED)) {
      int slash = name.lastIndexOf('/');
      partitions.put(name, partition.newInstance(name.substring(0, slash), Integer.parseInt(name.substring(slash + 1))));
    }
    Object result = describeProducers.invoke(admin, List.copyOf(partitions.values()));
    partitions.replaceAll((name, key) -> answer(result, key, deadline));
    return Packed.of(JSON.writeValueAsString(partitions));
  }

  private Object answer(Object result, Object key, long deadline) {
    try {
      Object state = get.invoke(ofPartition.invoke(result, key), Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
      for (Object producer : (Collection<?>) producers.invoke(state)) {
        if (((OptionalInt) coordinatorEpoch.invoke(producer)).isPresent() || ((OptionalLong) open.invoke(producer)).isPresent()) {
          return true;
        }
      }
      return false;
    } catch (InvocationTargetException e) {
      Throwable cause = e.getCause() instanceof ExecutionException ? e.getCause().getCause() : e.getCause();
      return cause.toString();
    } catch (IllegalAccessException e) {
      return e.toString();
    }
  }
}
