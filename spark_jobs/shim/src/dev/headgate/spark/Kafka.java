package dev.headgate.spark;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Makes what asks Kafka by a client that is there already, for Python.
 *
 * <p>The package {@code dev.headgate.spark.kafka} is compiled against Kafka's client, which comes with Spark's connector, through whatever
 * class loader that is, or never. So it is linked where the client is: by a loader below that of the client, which takes our class files
 * for itself instead of asking its parents for them ({@code docs/why.md}).
 */
public final class Kafka {
  private static final String PACKAGE = "dev.headgate.spark.kafka.";

  /** By the class of a client, and for as long as there is that class. */
  private static final ClassValue<ClassLoader> BELOW =
      new ClassValue<>() {
        @Override
        protected ClassLoader computeValue(Class<?> client) {
          return new Ours(client.getClassLoader());
        }
      };

  /** By the class of a partition, what says whether one is read in columns; null: ours cannot be linked to it. */
  private static final ClassValue<Method> READS =
      new ClassValue<>() {
        @Override
        protected Method computeValue(Class<?> partition) {
          try {
            return BELOW.get(partition).loadClass(PACKAGE + "ColumnarReader").getMethod("reads", partition);
          } catch (ReflectiveOperationException | LinkageError e) {
            return null;
          }
        }
      };

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
      throw new IllegalStateException("Headgate does not know this version of Spark's source of Kafka; leave out " + KafkaReaders.PROPERTY, e);
    }
  }

  /** Whether there is one for it. Asked for each partition of each batch. */
  static boolean isReadInColumns(InputPartition partition) {
    Method reads = READS.get(partition.getClass());
    try {
      return reads != null && (boolean) reads.invoke(null, partition);
    } catch (ReflectiveOperationException e) {
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
