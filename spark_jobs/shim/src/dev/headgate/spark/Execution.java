package dev.headgate.spark;

import java.lang.reflect.Field;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.streaming.StreamingQuery;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The execution of a query, reached by name: its class has moved between versions. */
record Execution(StreamingQuery query) {
  Object call(String method) {
    try {
      return query.getClass().getMethod(method).invoke(query);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Headgate does not know this version of Spark", e);
    }
  }

  SparkSession session() {
    return (SparkSession) call("sparkSessionForStream");
  }

  @SuppressWarnings("unchecked")
  List<SparkDataStream> sources() {
    return CollectionConverters.asJava((Seq<SparkDataStream>) call("sources"));
  }

  /**
   * Has Spark go by where its offset log ends now. Since 4.2 it looks there before it opens the streams, and keeps what it saw ({@code
   * MicroBatchExecution.initialLatestOffsetSeq}). Another driver may have begun since, until this run held the checkpoint, and Spark ends
   * of an assertion where that log was empty and the other one is not.
   */
  void looksAgainWhereItsLogEnds() throws ReflectiveOperationException {
    Object offsets = call("offsetLog");
    setIfThere("initialLatestOffsetSeq", offsets.getClass().getMethod("getLatest").invoke(offsets));
  }

  /** Sets a field. One that is final is no constant for any JIT, being an instance's; Java 26 begins to warn of it. */
  void set(String name, Object value) throws ReflectiveOperationException {
    if (!setIfThere(name, value)) {
      throw new NoSuchFieldException(name);
    }
  }

  /** The same for a field that not every version has; returns whether this one does. */
  boolean setIfThere(String name, Object value) throws ReflectiveOperationException {
    return setIfThere(query, name, value);
  }

  /** The same for a field of any object. */
  static boolean setIfThere(Object owner, String name, Object value) throws ReflectiveOperationException {
    Field field = field(owner, name);
    if (field == null) {
      return false;
    }
    field.set(owner, value);
    return true;
  }

  /** A field of an object by its name, of the nearest class that declares one; null: none does. */
  static Field field(Object owner, String name) {
    for (Class<?> type = owner.getClass(); type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          field.setAccessible(true);
          return field;
        }
      }
    }
    return null;
  }
}
