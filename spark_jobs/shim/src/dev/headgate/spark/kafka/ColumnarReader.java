package dev.headgate.spark.kafka;

import dev.headgate.spark.Kafka;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.kafka010.consumer.InternalKafkaConsumer;
import org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.UninterruptibleThread;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads a range of offsets of one partition as Spark's own reader does, by the same client out of the same pool, in columns.
 *
 * <p>Spark's asks the broker after each poll where the log begins and ends ({@code InternalKafkaConsumer.fetch}, 4.0 to 4.3), and writes
 * seven columns of each record into a row. This one polls, as long as records follow each other without a gap, and a column has what the
 * client has, made only where the query reads it. At whatever else there is (a gap, no record in time, an error of the client) it takes
 * the rest of the range record by record from where Spark's reader takes them ({@code KafkaDataConsumer.get}): what is lost, and what then,
 * is Spark's to say.
 *
 * <p>So it does with the end of a range, of up to two polls: Spark keeps what it has polled beyond an end for the next range, and
 * knows by the client's position where no record is left. Whoever polls there asks for an earlier offset than the client has asked its broker
 * for already, and waits for that answer first: as long as {@code fetch.max.wait.ms} says, where nothing comes.
 *
 * <p>And with the first record: what was kept is found by the offset where it goes on, and by nothing else. A range that did not ask for it
 * would leave it there for five minutes, and its own beside it: a poll of each batch and partition.
 *
 * <p>A broker may take a client's word for how long it waits as the time that a read may take from its remote storage, and begin anew when it is
 * over (Kafka 3.6 and 3.7, {@code DelayedRemoteFetch}). So a client that hurries it ({@link Kafka#SHORT_WAIT_MILLIS}) might never get a record.
 * Where none comes, another one of another group, that leaves the broker its time, takes the rest of the range, and for some minutes all that
 * is read there.
 */
public final class ColumnarReader implements PartitionReader<ColumnarBatch> {
  private static final Logger LOG = LoggerFactory.getLogger(ColumnarReader.class);
  private static final long LONGEST_POLL_MILLIS = 5_000; // Spark's reader waits after it as long as a job says
  private static final String MOST_POLLED = "max.poll.records";
  private static final int USUALLY_POLLED = 500; // where a job does not say
  private static final long LONGEST_HURRY_MILLIS = 10_000; // more than a cold client takes to log in
  private static final long PATIENT_NANOS = TimeUnit.MINUTES.toNanos(10);
  private static final String SERVERS = "bootstrap.servers";
  private static final String GROUP = "group.id"; // Spark always sets it
  private static final String PATIENT = "-patient";
  private static final long LATEST_MILLIS = Long.MAX_VALUE / 1000; // what later ones are in microseconds does not fit

  /** By servers, when they kept a client waiting that hurries, as {@link System#nanoTime} has it. */
  private static final Map<Object, Long> SLOW = new ConcurrentHashMap<>();

  private final PartitionReaderFactory spark;
  private final long until;
  private final RecordColumns columns;
  private KafkaBatchInputPartition partition;
  private KafkaDataConsumer consumer; // null: none is held
  private boolean polls; // not before the first record
  private long next;
  private ColumnarBatch batch;
  private PartitionReader<InternalRow> rest; // null: none is left to it yet

  private record Count(String name, long value) implements CustomTaskMetric {}

  public ColumnarReader(KafkaBatchInputPartition partition, PartitionReaderFactory spark) {
    Long slow = SLOW.get(partition.executorKafkaParams().get(SERVERS));
    this.partition = slow != null && System.nanoTime() - slow < PATIENT_NANOS && hurries(partition) ? patient(partition) : partition;
    this.spark = spark;
    this.columns = new RecordColumns(partition.offsetRange().topic());
    this.next = partition.offsetRange().fromOffset();
    this.until = partition.offsetRange().untilOffset();
    if (next < 0 || until < 0) { // of a batch, which leaves it to each task where the log begins or ends
      rest = spark.createReader(partition);
    }
  }

  /** Whether a range can be read so: a real-time batch has no end. */
  public static boolean reads(KafkaBatchInputPartition partition) {
    return !partition.includeHeaders() && partition.offsetRange().untilOffset() != Long.MAX_VALUE;
  }

  @Override
  public boolean next() throws IOException {
    if (rest == null && next < until) {
      List<ConsumerRecord<byte[], byte[]>> records = polls ? polled() : List.of();
      if (records.isEmpty()) {
        polls = next == partition.offsetRange().fromOffset();
        records = found();
      }
      if (!records.isEmpty()) {
        batch = columns.of(records);
        next = records.get(records.size() - 1).offset() + 1;
        return true;
      }
    }
    if (rest == null || !rest.next()) {
      return false;
    }
    batch = columns.of(rest.get());
    return true;
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  /** Those of Spark's reader. */
  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    if (rest != null) {
      return rest.currentMetricsValues();
    }
    return consumer == null
        ? new CustomTaskMetric[0]
        : new CustomTaskMetric[] {
          new Count("offsetOutOfRange", consumer.getNumOffsetOutOfRange()), new Count("dataLoss", consumer.getNumDataLoss())
        };
  }

  /** What is next to Spark's reader, however it comes by it; none: the range is over, or its rest is left to that reader. */
  private List<ConsumerRecord<byte[], byte[]>> found() {
    boolean hurries = hurries(partition);
    try {
      if (consumer == null) {
        consumer = KafkaDataConsumer.acquire(partition.offsetRange().topicPartition(), partition.executorKafkaParams());
      }
      long millis = hurries ? Math.min(partition.pollTimeoutMs(), LONGEST_HURRY_MILLIS) : partition.pollTimeoutMs();
      var record = consumer.get(next, until, millis, partition.failOnDataLoss());
      if (record == null) {
        next = until;
        return List.of();
      }
      if (canBeTold(record)) {
        return List.of(record);
      }
    } catch (LinkageError e) { // the driver's source may be another than the one here
      LOG.info("{} is read by Spark's own reader from {} on", partition.offsetRange(), next, e);
    } catch (Exception e) { // Scala declares none
      if (!hurries || !e.getClass().getSimpleName().equals("TimeoutException")) { // Java's, or Kafka's
        throw e;
      }
      LOG.info("{} brings nothing from {} on to a client that hurries its broker; another waits: {}", partition.offsetRange(), next, e.toString());
      SLOW.put(partition.executorKafkaParams().get(SERVERS), System.nanoTime());
      partition = patient(partition);
    }
    release();
    rest = spark.createReader(left());
    return List.of();
  }

  /** The next records, in order and without a gap; none: there is something that only Spark knows what to do about. */
  private List<ConsumerRecord<byte[], byte[]>> polled() {
    try {
      if (until - next < 2 * Long.parseLong(partition.executorKafkaParams().getOrDefault(MOST_POLLED, USUALLY_POLLED).toString())) {
        return List.of();
      }
      var records = uninterrupted(this::fromNext);
      int following = 0;
      while (following < records.size() && next + following < until && follows(records.get(following), next + following)) {
        following++;
      }
      return records.subList(0, following);
    } catch (RuntimeException | LinkageError e) {
      LOG.info("{} is polled by Spark from {} on", partition.offsetRange(), next, e);
      return List.of();
    }
  }

  /** A seek to where it is costs nothing. A poll may have left it behind offsets without a record, where there may be none to come. */
  private List<ConsumerRecord<byte[], byte[]>> fromNext() {
    InternalKafkaConsumer client = consumer.getOrRetrieveConsumer();
    client.seek(next);
    return client.poll(Math.min(partition.pollTimeoutMs(), LONGEST_POLL_MILLIS));
  }

  private static boolean follows(ConsumerRecord<byte[], byte[]> record, long offset) {
    return record.offset() == offset && canBeTold(record);
  }

  private static boolean canBeTold(ConsumerRecord<byte[], byte[]> record) {
    return record.timestamp() <= LATEST_MILLIS && record.timestamp() >= -LATEST_MILLIS;
  }

  /** As Spark's reader asks: an interrupt in a call of the client may leave it waiting for ever (KAFKA-1894). */
  private static <T> T uninterrupted(Supplier<T> call) {
    return Thread.currentThread() instanceof UninterruptibleThread thread ? thread.runUninterruptibly(call::get) : call.get();
  }

  private static boolean hurries(KafkaBatchInputPartition partition) {
    return Kafka.SHORT_WAIT_MILLIS.equals(partition.executorKafkaParams().get(Kafka.LONGEST_WAIT));
  }

  /** The same for clients that do not hurry a broker, of a group of their own: Spark lets one have no others. */
  private static KafkaBatchInputPartition patient(KafkaBatchInputPartition hurried) {
    Map<String, Object> params = new HashMap<>(hurried.executorKafkaParams());
    params.remove(Kafka.LONGEST_WAIT);
    params.computeIfPresent(GROUP, (name, group) -> group + PATIENT);
    return with(hurried, hurried.offsetRange(), params);
  }

  private KafkaBatchInputPartition left() {
    KafkaOffsetRange range = partition.offsetRange();
    var left = new KafkaOffsetRange(range.topicPartition(), next, until, range.preferredLoc());
    return with(partition, left, partition.executorKafkaParams());
  }

  private static KafkaBatchInputPartition with(KafkaBatchInputPartition like, KafkaOffsetRange range, Map<String, Object> params) {
    return new KafkaBatchInputPartition(range, params, like.pollTimeoutMs(), like.failOnDataLoss(), like.includeHeaders());
  }

  private void release() {
    if (consumer != null) {
      consumer.release();
      consumer = null;
    }
  }

  @Override
  public void close() throws IOException {
    release();
    if (rest != null) {
      rest.close();
    }
  }
}
