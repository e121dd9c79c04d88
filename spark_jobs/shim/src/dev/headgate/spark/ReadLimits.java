package dev.headgate.spark;

import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxBytes;
import org.apache.spark.sql.connector.read.streaming.ReadMaxFiles;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.execution.streaming.Source;
import scala.Option;

/**
 * What a stream answers when asked for its latest offset under a limit, whatever its kind.
 *
 * <p>Streams without admission control take no limit: they answer with all they have. Python streams take limits in a form of
 * their own, and the query dies of any other. A SimpleDataSourceStreamReader even dies of every limit, while it looks to Spark
 * like any reader whose default is to read all; so where that is the default, a second reader is asked once, and may die.
 */
final class ReadLimits {
  private static final String SIMPLE_READER = "simple stream reader does not support read limit";

  private static final Pattern PYTHON_ROWS = Pattern.compile("\"max_rows\"\\s*:\\s*(\\d{1,18})\\b");

  private final SparkDataStream stream;
  private final Supplier<? extends SparkDataStream> another;
  private final ReadLimit byDefault;
  private Boolean simple;

  ReadLimits(SparkDataStream stream, Supplier<? extends SparkDataStream> another) {
    this.stream = stream;
    this.another = another;
    this.byDefault = stream instanceof SupportsAdmissionControl ? controlled(stream).getDefaultReadLimit() : null;
  }

  boolean admission() {
    return byDefault != null;
  }

  String kindOfDefault() {
    if (byDefault == null) {
      return null;
    }
    String kind = isPython() ? byDefault.toString() : byDefault.getClass().getSimpleName();
    return kind.contains("ReadAllAvailable") ? "all"
        : kind.contains("ReadMaxRows") ? "rows"
        : kind.contains("ReadMaxFiles") ? "files"
        : kind.contains("ReadMaxBytes") ? "bytes"
        : "other";
  }

  /** The rows that the stream names as its own limit for a batch; null if it names none. */
  Long rowsOfDefault() {
    if (byDefault instanceof ReadMaxRows most) {
      return most.maxRows();
    }
    Matcher rows = PYTHON_ROWS.matcher(byDefault != null && isPython() ? byDefault.toString() : "");
    return rows.find() ? Long.valueOf(rows.group(1)) : null;
  }

  /** The offset up to which the stream would read from start under the limit; null if it has nothing. */
  Offset latest(Offset start, ReadLimit limit) {
    if (byDefault != null) {
      return controlled(stream).latestOffset(start, isPython() ? forPython(start, limit) : limit);
    }
    if (stream instanceof MicroBatchStream batches) {
      return batches.latestOffset();
    }
    Option<org.apache.spark.sql.execution.streaming.Offset> offset = ((Source) stream).getOffset();
    return offset.isEmpty() ? null : offset.get();
  }

  private boolean isPython() {
    return byDefault.getClass().getSimpleName().equals("PythonStreamingSourceReadLimit");
  }

  private ReadLimit forPython(Offset start, ReadLimit limit) {
    return limit instanceof ReadMaxRows most ? python(start, "ReadMaxRows", "max_rows", most.maxRows())
        : limit instanceof ReadMaxFiles most ? python(start, "ReadMaxFiles", "max_files", most.maxFiles())
        : limit instanceof ReadMaxBytes most ? python(start, "ReadMaxBytes", "max_bytes", most.maxBytes())
        : limit;
  }

  private ReadLimit python(Offset start, String type, String field, long n) {
    String json = Origin.json(Map.of("_type", type, field, n));
    ReadLimit limit;
    try {
      limit = byDefault.getClass().getConstructor(String.class).newInstance(json);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("cannot limit " + stream + ": Headgate does not know this version of Spark", e);
    }
    if (simple == null) {
      simple = kindOfDefault().equals("all") && isSimple(another.get(), start, limit);
    }
    return simple ? ReadLimit.allAvailable() : limit;
  }

  private static boolean isSimple(SparkDataStream reader, Offset start, ReadLimit limit) {
    try {
      controlled(reader).latestOffset(start, limit);
      return false;
    } catch (Exception e) { // SparkException and InterruptedException come undeclared
      if (e instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      return String.valueOf(e.getMessage()).contains(SIMPLE_READER);
    } finally {
      reader.stop();
    }
  }

  private static SupportsAdmissionControl controlled(SparkDataStream stream) {
    return (SupportsAdmissionControl) stream;
  }
}
