package dev.headgate.spark;

import java.net.URISyntaxException;
import java.nio.file.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Has Kafka's partitions read in columns ({@code kafka.ColumnarReader}), where a session asks for it and they can be. */
final class KafkaReaders implements PartitionReaderFactory {
  private static final long serialVersionUID = 1;
  static final String PROPERTY = PlannerProcess.PROPERTIES + "columnarKafka";
  private static final String SOURCE = "org.apache.spark.sql.kafka010.";

  private final PartitionReaderFactory spark;

  private KafkaReaders(PartitionReaderFactory spark) {
    this.spark = spark;
  }

  /** Whether the session asks for them, and the scan or the stream is one of Spark's source of Kafka. */
  static boolean areWantedFor(Object source) {
    return source.getClass().getName().startsWith(SOURCE) && areAskedFor();
  }

  /** Whether the session of this thread asks for them. */
  static boolean areAskedFor() {
    String said = SQLConf.get().getConfString(PROPERTY, "false");
    return switch (said) {
      case "true" -> true;
      case "false" -> false;
      default -> throw new IllegalArgumentException(PROPERTY + " is " + said + "; it has to be true or false");
    };
  }

  /** Those of a stream. They are sent to executors, which may have none of our classes. */
  static PartitionReaderFactory of(PartitionReaderFactory spark) throws URISyntaxException {
    SparkContext context = SparkContext.getOrCreate();
    Path jar = PlannerProgram.jar();
    if (!context.isLocal() && context.listJars().forall(known -> !known.endsWith("/" + jar.getFileName()))) {
      context.addJar(jar.toString());
    }
    return new KafkaReaders(spark);
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return spark.createReader(partition);
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return Kafka.columnarReader(partition, spark);
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return Kafka.isReadInColumns(partition);
  }
}
