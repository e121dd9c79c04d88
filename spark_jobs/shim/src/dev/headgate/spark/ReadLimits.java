package dev.headgate.spark;

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
 * their own and kill the query over any other.
 */
final class ReadLimits {
  private final SparkDataStream stream;
  private final ReadLimit byDefault;

  ReadLimits(SparkDataStream stream) {
    this.stream = stream;
    this.byDefault = stream instanceof SupportsAdmissionControl ? ((SupportsAdmissionControl) stream).getDefaultReadLimit() : null;
  }

  /** The limit that an answer of the planner names, or null if it names none. */
  static ReadLimit parse(String unit, String number) {
    try {
      return switch (unit) {
        case "all" -> ReadLimit.allAvailable();
        case "rows" -> ReadLimit.maxRows(Long.parseLong(number));
        case "files" -> ReadLimit.maxFiles(Integer.parseInt(number));
        case "bytes" -> ReadLimit.maxBytes(Long.parseLong(number));
        default -> null;
      };
    } catch (NumberFormatException e) {
      return null;
    }
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

  /** The offset up to which the stream would read from start under the limit; null if it has nothing. */
  Offset latest(Offset start, ReadLimit limit) {
    if (byDefault != null) {
      return ((SupportsAdmissionControl) stream).latestOffset(start, isPython() ? forPython(limit) : limit);
    }
    if (stream instanceof MicroBatchStream) {
      return ((MicroBatchStream) stream).latestOffset();
    }
    Option<org.apache.spark.sql.execution.streaming.Offset> offset = ((Source) stream).getOffset();
    return offset.isEmpty() ? null : offset.get();
  }

  private boolean isPython() {
    return byDefault.getClass().getSimpleName().equals("PythonStreamingSourceReadLimit");
  }

  private ReadLimit forPython(ReadLimit limit) {
    if (limit instanceof ReadMaxRows) {
      return python("ReadMaxRows", "max_rows", ((ReadMaxRows) limit).maxRows());
    }
    if (limit instanceof ReadMaxFiles) {
      return python("ReadMaxFiles", "max_files", ((ReadMaxFiles) limit).maxFiles());
    }
    if (limit instanceof ReadMaxBytes) {
      return python("ReadMaxBytes", "max_bytes", ((ReadMaxBytes) limit).maxBytes());
    }
    return limit;
  }

  private ReadLimit python(String type, String field, long n) {
    if (byDefault.toString().contains("ReadAllAvailable")) {
      return ReadLimit.allAvailable(); // may be a SimpleDataSourceStreamReader, which knows no limit and dies of one
    }
    String json = String.format("{\"_type\":\"%s\",\"%s\":%d}", type, field, n);
    try {
      return byDefault.getClass().getConstructor(String.class).newInstance(json);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("cannot limit " + stream + ": this version of Spark is not known to Headgate", e);
    }
  }
}
