package dev.headgate.spark;

import java.io.File;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Has Kafka's partitions read in columns ({@code kafka.ColumnarReader}), where they can be and nothing can come of it, or a session asks.
 *
 * <p>These are sent to executors, and a task that does not find our classes ends its query. They are there for certain where the application
 * was started with our jar: an executor fetches such before it takes a task, for all sessions ({@code Executor}, 4.0.5 to 4.3.0). So they are
 * in pods of the driver's image whose class path names the jar in it ({@code headgate-run} sees to that). One that is added later is fetched
 * by tasks, which may not be able to; by those of a session with artifacts of its own it never is.
 */
final class KafkaReaders implements PartitionReaderFactory {
  private static final long serialVersionUID = 1;
  static final String PROPERTY = PlannerProcess.PROPERTIES + "columnarKafka";
  private static final String SOURCE = "org.apache.spark.sql.kafka010.";
  private static final String STARTED_WITH = "spark.app.initial.jar.urls"; // what SparkContext tells executors
  private static final String LONGEST_WAIT = "kafka." + Kafka.LONGEST_WAIT;
  private static final String HEADERS = "includeHeaders";
  private static final List<String> SAY_OTHERWISE = List.of(LONGEST_WAIT, "kafka.fetch.min.bytes", "kafka.group.id");

  private final PartitionReaderFactory spark;

  private KafkaReaders(PartitionReaderFactory spark) {
    this.spark = spark;
  }

  /** Whether the table, the scan or the stream is one of Spark's source of Kafka, and is to be read so in the session of this thread. */
  static boolean areWantedFor(Object source) throws URISyntaxException {
    if (!source.getClass().getName().startsWith(SOURCE)) {
      return false;
    }
    String said = said();
    return switch (said) {
      case "" -> executorsHaveOurs() && !StatePlans.isBesideOthers();
      case "true" -> executorsHaveOurs() || canBeGivenOurs();
      case "false" -> false;
      default -> throw new IllegalArgumentException(PROPERTY + " is " + said + "; it has to be true or false");
    };
  }

  /**
   * The options of a source that is to be read so, by which its clients have brokers wait less for records that do not come: half a second
   * by default. All of a batch is there; but a client that hands on the last record of a log asks for more, and whatever is asked of the broker
   * next waits for that answer. What a job says holds. It may say a group, too, that others read by: Spark ends the query where one group
   * reads a partition by two settings. Nor are those hurried whose tasks would not see that nothing comes, as {@code kafka.ColumnarReader} does.
   */
  static CaseInsensitiveStringMap waitingLess(Object source, CaseInsensitiveStringMap options) throws URISyntaxException {
    boolean isHurried = areWantedFor(source) && !options.getBoolean(HEADERS, false) && Kafka.knows(source);
    if (!isHurried || SAY_OTHERWISE.stream().anyMatch(options::containsKey)) {
      return options;
    }
    var waiting = new HashMap<>(options.asCaseSensitiveMap());
    waiting.put(LONGEST_WAIT, Kafka.SHORT_WAIT_MILLIS);
    return new CaseInsensitiveStringMap(waiting);
  }

  /** Whether the session of this thread asks for them. */
  static boolean areAskedFor() {
    return said().equals("true");
  }

  /** In lower case: {@code FALSE} is false to Spark, too, where it reads a property of its own. */
  private static String said() {
    return SQLConf.get().getConfString(PROPERTY, "").toLowerCase(Locale.ROOT);
  }

  /** Whether executors have our classes for certain, in whatever session. */
  static boolean executorsHaveOurs() throws URISyntaxException {
    SparkContext context = SparkSession.active().sparkContext();
    Path jar = PlannerProgram.jar();
    return context.isLocal() || Arrays.stream(context.conf().get(STARTED_WITH, "").split(",")).anyMatch(url -> names(url, jar)) || isInTheirImage(context.conf(), jar);
  }

  private static boolean names(String url, Path jar) {
    String path = jar.toUri().getRawPath();
    return url.endsWith(path.substring(path.lastIndexOf('/')));
  }

  /** Whether executors have the image of this driver, and the jar of it on their class path. */
  private static boolean isInTheirImage(SparkConf conf, Path jar) {
    return conf.get("spark.master").startsWith("k8s://")
        && !conf.contains("spark.kubernetes.executor.container.image")
        && Arrays.asList(conf.get("spark.executor.extraClassPath", "").split(File.pathSeparator)).contains(jar.toString());
  }

  /** Whether tasks of this thread's session fetch what is added to the context. */
  private static boolean canBeGivenOurs() {
    return SparkSession.active().artifactManager().state() == null;
  }

  /** Those of a stream. */
  static PartitionReaderFactory of(PartitionReaderFactory spark) throws URISyntaxException {
    SparkContext context = SparkSession.active().sparkContext();
    Path jar = PlannerProgram.jar();
    if (!executorsHaveOurs() && !context.listJars().exists(url -> names(url, jar))) {
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
