package dev.headgate.spark;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes what asks Kafka by a client that is there already, for Python.
 *
 * <p>The package {@code dev.headgate.spark.kafka} is compiled against Kafka's client, which comes with Spark's connector, through whatever
 * class loader that is, or never. So it is linked where the client is: by a loader below that of the client, which takes our class files
 * for itself instead of asking its parents for them ({@code docs/why.md}).
 */
public final class Kafka {
  private static final Logger LOG = LoggerFactory.getLogger(Kafka.class);
  private static final String PACKAGE = "dev.headgate.spark.kafka.";
  private static final String READER = PACKAGE + "ColumnarReader";
  private static final String PARTITION = "org.apache.spark.sql.kafka010.KafkaBatchInputPartition";

  /** How long a broker waits for records that do not come, and what that is to be where a task sees to it that they do. */
  public static final String LONGEST_WAIT = "fetch.max.wait.ms";

  public static final String SHORT_WAIT_MILLIS = "20";

  /** All of ours that a task runs where it reads in columns. */
  private static final List<String> READING = List.of(READER, READER + "$Count", PACKAGE + "RecordColumns", PACKAGE + "RecordColumns$Column");

  /** By the class of a client, and for as long as there is that class. */
  private static final ClassValue<ClassLoader> BELOW =
      new ClassValue<>() {
        @Override
        protected ClassLoader computeValue(Class<?> client) {
          return new Ours(client.getClassLoader());
        }
      };

  /** By the class of a partition, what says whether one is read in columns; null: something that ours name is not there. */
  private static final ClassValue<Method> READS =
      new ClassValue<>() {
        @Override
        protected Method computeValue(Class<?> partition) {
          try {
            ClassLoader ours = BELOW.get(partition);
            for (String name : READING) {
              References.check(ours.loadClass(name), Ours.bytes(name));
            }
            return ours.loadClass(READER).getMethod("reads", partition);
          } catch (ReflectiveOperationException | LinkageError | TypeNotPresentException e) {
            LOG.info("{} is read by Spark's own reader: {}", partition, e.toString());
            return null;
          }
        }
      };

  private static final AtomicBoolean TOLD = new AtomicBoolean();

  private Kafka() {}

  /** A {@code Logs} of an {@code Admin}; {@code committed}: it reads what is committed alone. */
  public static Object logs(Object admin, boolean committed) throws ReflectiveOperationException {
    return made("Logs", admin, committed);
  }

  /** A {@code Records} of a {@code Consumer} of byte arrays. */
  public static Object records(Object consumer) throws ReflectiveOperationException {
    return made("Records", consumer);
  }

  /** A {@code ColumnarReader} of a partition of Spark's source. */
  @SuppressWarnings("unchecked")
  static PartitionReader<ColumnarBatch> columnarReader(InputPartition partition, PartitionReaderFactory spark) {
    try {
      return (PartitionReader<ColumnarBatch>) made("ColumnarReader", partition, spark);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(
          "Headgate does not know the source of Kafka that is here, which is another than the driver's; set " + KafkaReaders.PROPERTY + "=false", e);
    }
  }

  /** Whether there is one for partitions of the source that a table or a stream is of. */
  static boolean knows(Object source) {
    try {
      return READS.get(Class.forName(PARTITION, false, source.getClass().getClassLoader())) != null;
    } catch (ClassNotFoundException | LinkageError e) {
      return false;
    }
  }

  /** Whether there is one for it. Asked for each partition of each batch. */
  static boolean isReadInColumns(InputPartition partition) {
    Method reads = READS.get(partition.getClass());
    if (reads == null) {
      if (KafkaReaders.areAskedFor() && TOLD.compareAndSet(false, true)) {
        LOG.warn("Spark's source of Kafka cannot be read in columns before Spark 4.1, nor where it was changed; its own reader is used");
      }
      return false;
    }
    try {
      return (boolean) reads.invoke(null, partition);
    } catch (ReflectiveOperationException | LinkageError e) {
      LOG.debug("{} is read by Spark's own reader", partition.getClass(), e); // itself it would tell passwords
      return false;
    }
  }

  private static Object made(String name, Object... clientFirst) throws ReflectiveOperationException {
    Class<?> type = BELOW.get(clientFirst[0].getClass()).loadClass(PACKAGE + name);
    return type.getConstructors()[0].newInstance(clientFirst);
  }

  private static final class Ours extends LinkedBelow {
    Ours(ClassLoader client) {
      super(client);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (!name.startsWith(PACKAGE)) {
        return super.loadClass(name, resolve);
      }
      synchronized (getClassLoadingLock(name)) {
        Class<?> known = findLoadedClass(name);
        return known != null ? known : define(name, bytes(name));
      }
    }

    private static byte[] bytes(String name) throws ClassNotFoundException {
      try (InputStream file = Kafka.class.getResourceAsStream("/" + name.replace('.', '/') + ".class")) {
        if (file == null) {
          throw new ClassNotFoundException(name);
        }
        return file.readAllBytes();
      } catch (IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }
  }
}
