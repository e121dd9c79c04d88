package dev.headgate.spark.kafka;

import java.io.IOException;
import java.util.List;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.kafka010.consumer.InternalKafkaConsumer;
import org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer;
import org.apache.spark.sql.types.StructType;
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
 */
public final class ColumnarReader implements PartitionReader<ColumnarBatch> {
  private static final Logger LOG = LoggerFactory.getLogger(ColumnarReader.class);
  private static final StructType SCHEMA =
      StructType.fromDDL("key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, timestampType INT");
  private static final int ROWS = 4096;
  private static final boolean POLLS = polls();

  private final KafkaBatchInputPartition partition;
  private final PartitionReaderFactory spark;
  private final long until;
  private final RecordColumns columns = new RecordColumns(SCHEMA);
  private KafkaDataConsumer consumer; // null: none is held
  private long next;
  private ColumnarBatch batch;
  private PartitionReader<InternalRow> rest; // null: none is left to it yet

  public ColumnarReader(KafkaBatchInputPartition partition, PartitionReaderFactory spark) {
    this.partition = partition;
    this.spark = spark;
    this.next = partition.offsetRange().fromOffset();
    this.until = partition.offsetRange().untilOffset();
  }

  /** Whether a range can be read so: a real-time batch has no end, and Spark 4.0 has no client that polls and does nothing else. */
  public static boolean reads(KafkaBatchInputPartition partition) {
    return POLLS && !partition.includeHeaders() && partition.offsetRange().untilOffset() != Long.MAX_VALUE;
  }

  private static boolean polls() {
    try {
      InternalKafkaConsumer.class.getMethod("poll", long.class);
      return true;
    } catch (NoSuchMethodException e) {
      LOG.warn("Spark's source of Kafka cannot be read in columns before Spark 4.1; its own reader is used");
      return false;
    }
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
    return rest != null && hasRows();
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
      if (consumer == null) {
        consumer = KafkaDataConsumer.acquire(partition.offsetRange().topicPartition(), partition.executorKafkaParams());
        uninterrupted(() -> {
          consumer.getOrRetrieveConsumer().seek(next);
          return null;
        });
      }
      var records = uninterrupted(() -> consumer.getOrRetrieveConsumer().poll(partition.pollTimeoutMs()));
      int following = 0;
      while (following < records.size() && next + following < until && records.get(following).offset() == next + following) {
        following++;
      }
      return records.subList(0, following);
    } catch (RuntimeException e) {
      LOG.info("{} is read by Spark's own reader from {} on", partition.offsetRange(), next, e);
      return List.of();
    }
  }

  /** As Spark's reader asks: an interrupt in a call of the client may leave it waiting for ever (KAFKA-1894). */
  private static <T> T uninterrupted(Supplier<T> call) {
    return Thread.currentThread() instanceof UninterruptibleThread thread ? thread.runUninterruptibly(call::get) : call.get();
  }

  private void leaveTheRest() {
    release();
    KafkaOffsetRange range = partition.offsetRange();
    var left = new KafkaOffsetRange(range.topicPartition(), next, until, range.preferredLoc());
    rest =
        spark.createReader(
            new KafkaBatchInputPartition(
                left, partition.executorKafkaParams(), partition.pollTimeoutMs(), partition.failOnDataLoss(), partition.includeHeaders()));
  }

  private boolean hasRows() throws IOException {
    var converter = new RowToColumnConverter(SCHEMA);
    OnHeapColumnVector[] vectors = OnHeapColumnVector.allocateColumns(ROWS, SCHEMA);
    int rows = 0;
    while (rows < ROWS && rest.next()) {
      converter.convert(rest.get(), vectors);
      rows++;
    }
    batch = new ColumnarBatch(vectors, rows);
    return rows > 0;
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
