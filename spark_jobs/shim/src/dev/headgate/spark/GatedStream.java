package dev.headgate.spark;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The stream behind a {@link Gate}: what it is asked, and what it has said. Its query's thread alone asks it.
 *
 * <p>{@code Trigger.AvailableNow}: where the stream can freeze its end itself, it does. Where it cannot, Spark would fall back to
 * one single batch; the end is frozen here instead, at the first planning, and not when Spark announces the trigger, since a
 * restarted Python reader does not know yet then where it stands.
 */
final class GatedStream {
  private static final Logger LOG = LoggerFactory.getLogger(GatedStream.class);

  private static final String NO_PARTITION = "{}";

  private final Supplier<? extends SparkDataStream> another;
  private final Outage outage;
  private SparkDataStream stream;
  ReadLimits limits; // of the stream that is open

  private Offset initial;
  private Offset known;
  private boolean told; // the stream has said how far it goes
  private Long readNanos; // when it had nothing unread last; null: never
  private boolean availableNow;
  private Offset frozen;
  private volatile long fileBytes = -1;

  GatedStream(SparkDataStream stream, Supplier<? extends SparkDataStream> another, Outage outage) {
    this.stream = stream;
    this.another = another;
    this.limits = new ReadLimits(stream, another);
    this.outage = outage;
  }

  SparkDataStream stream() {
    return stream;
  }

  /** Whether it is Spark's source of files, whose class has moved between versions. */
  static boolean keepsLog(SparkDataStream stream) {
    return stream.getClass().getName().endsWith(".FileStreamSource");
  }

  /**
   * Opens the stream anew, before it was asked for anything, where it has read of the checkpoint when it was opened: another driver may
   * have gone on meanwhile. Spark's source of files reads its log then, by which it knows the files that were read ({@code
   * FileStreamSource.<init>}, 4.0.5 and 4.3.0); with an old one it ends with "Concurrent update to the log".
   */
  void reopen() {
    if (keepsLog(stream)) {
      stream.stop();
      stream = another.get();
      limits = new ReadLimits(stream, another);
      if (availableNow && stream instanceof SupportsTriggerAvailableNow freezing) {
        freezing.prepareForTriggerAvailableNow();
      }
    }
  }

  boolean isV1() {
    return !(stream instanceof MicroBatchStream);
  }

  /** Whether a batch from here is not the first one. */
  boolean hasBegun(Offset start) {
    return isV1() ? start != null : start != initial;
  }

  Offset parsed(String offset) {
    return ((MicroBatchStream) stream).deserializeOffset(offset);
  }

  /** What it has said last that it has; null: nothing yet. */
  Offset known() {
    return known;
  }

  /** Whether it was out of reach when it was last asked. */
  boolean isOutOfReach() {
    return outage.lasts();
  }

  /**
   * What it has said that it has, in JSON; null: nobody knows. Spark's source of Kafka has no offset for no partition, as of a pattern that
   * matches no topic: from no partition on, that is all there is.
   */
  String told(Offset latest, Offset position) {
    if (latest != null) {
      return latest.json();
    }
    return !isOutOfReach() && position.json().equals(NO_PARTITION) ? NO_PARTITION : null;
  }

  /** Whether it was asked after that time, and had nothing behind its position. */
  boolean wasReadSince(long nanos) {
    return readNanos != null && readNanos - nanos >= 0;
  }

  boolean isAvailableNow() {
    return availableNow;
  }

  /** Bytes of the files in the batch that a V1 source gave last; -1 where it has no files, or gave none. */
  long fileBytes() {
    return fileBytes;
  }

  /** What it answers Spark. */
  Object call(Method method, Object[] arguments) throws Throwable {
    switch (method.getName()) {
      case "initialOffset":
        if (initial == null || Shim.planner() == null) {
          initial = (Offset) asked(method, arguments);
        }
        return initial; // the same while it is held: neither I/O nor, for a source that begins at "now", a moving start
      case "getDefaultReadLimit":
        return limits.admission() ? Governed.forward(stream, method, arguments) : ReadLimit.allAvailable();
      case "reportLatestOffset":
        return limits.admission() ? known = (Offset) Governed.forward(stream, method, arguments) : known;
      case "metrics":
        return told ? metrics(method, arguments) : Map.of(); // Kafka's of Spark 4.1 throws until then
      case "getBatch":
        Object batch = Governed.forward(stream, method, arguments);
        fileBytes = bytesOf(batch);
        return batch;
      case "prepareForTriggerAvailableNow":
        availableNow = true;
        return freezes() ? null : asked(method, arguments);
      case "createReaderFactory":
        var readers = (PartitionReaderFactory) Governed.forward(stream, method, arguments);
        return KafkaReaders.areWantedFor(stream) ? KafkaReaders.of(readers) : readers;
      case "planInputPartitions":
        return asked(method, arguments);
      default:
        return Governed.forward(stream, method, arguments);
    }
  }

  /** For a report alone: what it throws ends no query. Kafka's may ask its broker, and knows its own class of offsets only. */
  private Object metrics(Method method, Object[] arguments) throws Throwable {
    try {
      return Governed.forward(stream, method, arguments);
    } catch (InterruptedException e) {
      throw e;
    } catch (Exception e) {
      LOG.debug("{} has no metrics for a report", stream, e);
      return Map.of();
    }
  }

  /** What the stream answers to a question that its system may have to be asked; what it throws is told. */
  private Object asked(Method method, Object[] arguments) throws Throwable {
    try {
      Object answer = outage.watch(() -> Governed.forwarded(stream, method, arguments));
      outage.over();
      return answer;
    } catch (Throwable e) {
      outage.ends(e);
      throw e;
    }
  }

  /** Spark has listed the files of a batch by the time it has it, so this costs no I/O. */
  private static long bytesOf(Object batch) {
    return batch instanceof Dataset<?> rows
            && rows.queryExecution().analyzed() instanceof LogicalRelation files
            && files.relation() instanceof HadoopFsRelation relation
            && relation.location() instanceof InMemoryFileIndex listed
        ? listed.sizeInBytes()
        : -1;
  }

  /** What the stream has under the limit; null if it has nothing, or is out of reach. */
  Offset latest(Offset start, ReadLimit limit) {
    long began = System.nanoTime();
    try {
      Offset latest = outage.watch(() -> freezes() ? frozen(start) : limits.latest(start, limit));
      outage.over();
      known = latest;
      told = true;
      readNanos = latest == null || latest.equals(start) ? Long.valueOf(began) : readNanos;
      return latest;
    } catch (Exception e) {
      if (Shim.planner() != null && outage.bears(e, began)) {
        return null;
      }
      outage.ends(e);
      throw Governed.<RuntimeException>asThrown(e);
    }
  }

  private Offset frozen(Offset start) {
    if (frozen == null) {
      frozen = limits.latest(start, ReadLimit.allAvailable());
    }
    return frozen;
  }

  private boolean freezes() {
    return availableNow && !(stream instanceof SupportsTriggerAvailableNow);
  }
}
