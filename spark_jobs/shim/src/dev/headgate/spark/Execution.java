package dev.headgate.spark;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
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
    setIfThere(query, "initialLatestOffsetSeq", offsets.getClass().getMethod("getLatest").invoke(offsets));
  }

  /** Sets a field. One that is final is no constant for any JIT, being an instance's; Java 26 begins to warn of it. */
  void set(String name, Object value) throws ReflectiveOperationException {
    field(query, name).set(query, value);
  }

  /** The same for a field of any object that not every version has. */
  static void setIfThere(Object owner, String name, Object value) throws IllegalAccessException {
    try {
      field(owner, name).set(owner, value);
    } catch (NoSuchFieldException e) {
      return; // there is nothing to be set
    }
  }

  /** A public method of a class by its name, which one method has. */
  static Method method(Class<?> type, String name) throws NoSuchMethodException {
    return Arrays.stream(type.getMethods()).filter(m -> m.getName().equals(name)).findFirst().orElseThrow(() -> new NoSuchMethodException(name + " of " + type.getName()));
  }

  /** A field of an object by its name, of the nearest class that declares one. */
  static Field field(Object owner, String name) throws NoSuchFieldException {
    for (Class<?> type = owner.getClass(); type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          field.setAccessible(true);
          return field;
        }
      }
    }
    throw new NoSuchFieldException(name + " of " + owner.getClass().getName());
  }
}
