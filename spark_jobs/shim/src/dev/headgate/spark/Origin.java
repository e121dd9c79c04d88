package dev.headgate.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.internal.SQLConf;
import scala.Product;

/** What the job told {@code readStream}; by this a planner knows which of its sources a stream is. */
record Origin(String format, String name, Map<String, String> options) {
  static final ObjectMapper JSON = new ObjectMapper();

  /** The name given with {@code readStream.name(…)} (Spark 4.2 and later), or null. */
  static String nameIn(Product relation) {
    for (int i = 0; i < relation.productArity(); i++) {
      Object element = relation.productElement(i);
      if (element instanceof Product && element.getClass().getSimpleName().equals("UserProvided")) {
        return String.valueOf(((Product) element).productElement(0));
      }
    }
    return null;
  }

  /** The descriptor of {@link Planner#opened}. */
  String describe(long handle, Map<String, Object> query, String location, SparkDataStream delegate, ReadLimits limits, boolean v1) {
    int index = location.lastIndexOf('/');
    Map<String, Object> descriptor = new LinkedHashMap<>();
    descriptor.put("handle", handle);
    descriptor.put("query", query);
    descriptor.put("checkpoint", location.substring(0, location.lastIndexOf('/', index - 1)));
    descriptor.put("index", location.substring(index + 1));
    descriptor.put("name", name);
    descriptor.put("format", format);
    descriptor.put("options", options);
    descriptor.put("api", v1 ? "v1" : "v2");
    descriptor.put("class", delegate.getClass().getName());
    descriptor.put("defaultLimit", limits.kindOfDefault());
    descriptor.put("defaultRows", limits.rowsOfDefault());
    descriptor.put("shufflePartitions", SQLConf.get().numShufflePartitions());
    return json(descriptor);
  }

  static String json(Object value) {
    try {
      return JSON.writeValueAsString(value);
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }
}
