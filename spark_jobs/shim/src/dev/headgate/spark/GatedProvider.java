package dev.headgate.spark;

import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Stands in for the provider of a V1 source (files, Delta): creates the original source and puts a {@link Gate} before it.
 *
 * <p>A V1 relation names its provider by class and creates the source from that name alone, so the original {@link DataSource}
 * waits in a table under a key that travels among the options. The table is weak in that very key: it is dropped with the plan.
 */
public final class GatedProvider implements StreamSourceProvider {
  private static final Logger LOG = LoggerFactory.getLogger(GatedProvider.class);
  static final String KEY = "headgate.original";
  private static final Map<String, Original> ORIGINALS = new WeakHashMap<>();
  private static long keys;

  private record Original(DataSource source, String name, Map<String, String> options) {}

  /** Returns a copy of the source that is provided by this class; one that is already comes back as it is. */
  static DataSource disguise(DataSource source, String name, Map<String, String> settings) {
    if (source.className().equals(GatedProvider.class.getName())) {
      return source;
    }
    try {
      scala.collection.immutable.Map<String, String> options = source.options();
      Map<String, String> told = new HashMap<>(CollectionConverters.asJava(options));
      told.putAll(settings);
      DataSource own = copy(source, source.className(), JobSettings.without(options));
      String key = keyOf(new Original(own, name, told));
      @SuppressWarnings("unchecked") // Java does not see the type of what is added
      scala.collection.immutable.Map<String, String> keyed = options.updated(KEY, key);
      return copy(source, GatedProvider.class.getName(), keyed);
    } catch (ReflectiveOperationException e) {
      LOG.warn("Headgate cannot stand in for {}, which therefore runs ungoverned", source.className(), e);
      return source;
    }
  }

  private static DataSource copy(DataSource source, String provider, scala.collection.immutable.Map<String, String> options)
      throws ReflectiveOperationException {
    Object[] elements = Plans.elements(source, (name, element) -> name.equals("className") ? provider : name.equals("options") ? options : element);
    return (DataSource) DataSource.class.getConstructors()[0].newInstance(elements);
  }

  /** One key for equal sources, since Spark reads equal relations through one source. */
  private static synchronized String keyOf(Original original) {
    for (Map.Entry<String, Original> entry : ORIGINALS.entrySet()) {
      if (entry.getValue().equals(original)) {
        return entry.getKey();
      }
    }
    String key = new String("original-" + keys++); // a string of its own: weak references watch the instance
    ORIGINALS.put(key, original);
    return key;
  }

  private static synchronized Original original(scala.collection.immutable.Map<String, String> options) {
    return ORIGINALS.get(options.apply(KEY));
  }

  @Override
  public Tuple2<String, StructType> sourceSchema(
      SQLContext context, Option<StructType> schema, String provider, scala.collection.immutable.Map<String, String> options) {
    DataSource.SourceInfo info = original(options).source().sourceInfo();
    return new Tuple2<>(info.name(), info.schema());
  }

  @Override
  public Source createSource(
      SQLContext context,
      String location,
      Option<StructType> schema,
      String provider,
      scala.collection.immutable.Map<String, String> options) {
    Original original = original(options);
    DataSource source = original.source();
    Origin origin = new Origin(source.className(), original.name(), original.options());
    return (Source) Extensions.stream(() -> source.createSource(location), origin, location);
  }
}
