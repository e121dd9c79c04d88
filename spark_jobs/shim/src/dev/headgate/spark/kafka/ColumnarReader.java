package dev.headgate.spark.kafka;

import java.io.IOException;
import java.util.List;
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
 * client has, made only where the query reads it. At whatever else there is (a gap, no record in time, an error of the client) it leaves
 * the rest of the range to Spark's reader: what is lost, and what then, is Spark's to say.
 *
 * <p>So it does with the end of a range, of up to two polls: Spark's reader keeps what it has polled beyond an end for the next range, and
 * knows by the client's position where no record is left. Whoever polls there asks for an earlier offset than the client has asked its broker
 * for already, and waits for that answer first: half a second where nothing comes ({@code fetch.max.wait.ms}).
 */
public final class ColumnarReader implements PartitionReader<ColumnarBatch> {
  private static final Logger LOG = LoggerFactory.getLogger(ColumnarReader.class);
  private static final long LONGEST_POLL_MILLIS = 5_000; // Spark's reader waits after it as long as a job says
  private static final String MOST_POLLED = "max.poll.records";
  private static final int USUALLY_POLLED = 500; // where a job does not say
  private static final long LATEST_MILLIS = Long.MAX_VALUE / 1000; // what later ones are in microseconds does not fit

  private final KafkaBatchInputPartition partition;
  private final PartitionReaderFactory spark;
  private final long until;
  private final RecordColumns columns;
  private KafkaDataConsumer consumer; // null: none is held
  private long next;
  private ColumnarBatch batch;
  private PartitionReader<InternalRow> rest; // null: none is left to it yet

  public ColumnarReader(KafkaBatchInputPartition partition, PartitionReaderFactory spark) {
    this.partition = partition;
    this.spark = spark;
    this.columns = new RecordColumns(partition.offsetRange().topic());
    this.next = partition.offsetRange().fromOffset();
    this.until = partition.offsetRange().untilOffset();
  }

  /** Whether a range can be read so: a real-time batch has no end. */
  public static boolean reads(KafkaBatchInputPartition partition) {
    return !partition.includeHeaders() && partition.offsetRange().untilOffset() != Long.MAX_VALUE;
  }

  @Override
  public boolean next() throws IOException {
    if (rest == null && next < until) {
      List<ConsumerRecord<byte[], byte[]>> records = polled();
      if (!records.isEmpty()) {
        batch = columns.of(records);
        next += records.size();
        return true;
      }
      leaveTheRest();
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

  /** What was lost is counted by the reader that meets it. */
  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return rest == null ? new CustomTaskMetric[0] : rest.currentMetricsValues();
  }

  /** The next records, in order and without a gap; none: there is something that only Spark's reader knows what to do about. */
  private List<ConsumerRecord<byte[], byte[]>> polled() {
    try {
      if (until - next < 2 * Long.parseLong(partition.executorKafkaParams().getOrDefault(MOST_POLLED, USUALLY_POLLED).toString())) {
        return List.of();
      }
      if (consumer == null) {
        consumer = KafkaDataConsumer.acquire(partition.offsetRange().topicPartition(), partition.executorKafkaParams());
      }
      var records = uninterrupted(this::fromNext);
      int following = 0;
      while (following < records.size() && next + following < until && follows(records.get(following), next + following)) {
        following++;
      }
      return records.subList(0, following);
    } catch (RuntimeException | LinkageError e) { // the driver's source may be another than the one here
      LOG.info("{} is read by Spark's own reader from {} on", partition.offsetRange(), next, e);
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
    return record.offset() == offset && Math.abs(record.timestamp()) <= LATEST_MILLIS;
  }

  /** As Spark's reader asks: an interrupt in a call of the client may leave it waiting for ever (KAFKA-1894). */
  private static <T> T uninterrupted(Supplier<T> call) {
    return Thread.currentThread() instanceof UninterruptibleThread thread ? thread.runUninterruptibly(call::get) : call.get();
  }

  private void leaveTheRest() {
    release();
    rest = spark.createReader(next == partition.offsetRange().fromOffset() ? partition : left());
  }

  private KafkaBatchInputPartition left() {
    KafkaOffsetRange range = partition.offsetRange();
    var left = new KafkaOffsetRange(range.topicPartition(), next, until, range.preferredLoc());
    return new KafkaBatchInputPartition(
        left, partition.executorKafkaParams(), partition.pollTimeoutMs(), partition.failOnDataLoss(), partition.includeHeaders());
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
