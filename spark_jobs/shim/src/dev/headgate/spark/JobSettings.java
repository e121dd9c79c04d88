package dev.headgate.spark;

import java.lang.reflect.Field;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What a job says of its queries and sources by options and properties, on its way to the planner.
 *
 * <p>An option of ours is nothing for a source or a sink: some refuse what they do not know, and a Python source is made with its
 * options as soon as it is loaded. So they are taken out of a stream before Spark looks for its source, and travel as a tag of the
 * relation. Which settings there are and what they may be is not known here: see {@code headgate_contract.settings}.
 */
final class JobSettings {
  private static final Logger LOG = LoggerFactory.getLogger(JobSettings.class);
  private static final String PREFIX = "headgate.";

  /** What Flink calls some of them. */
  private static final Set<String> FLINK =
      Set.of(
          "scan.rate.limit.record-per-second",
          "scan.watermark.alignment.group",
          "scan.watermark.alignment.max-drift",
          "scan.watermark.alignment.update-interval",
          "scan.watermark.idle-timeout");

  private static final TreeNodeTag<Map<String, String>> TAG = new TreeNodeTag<>("headgate.settings");

  private JobSettings() {}

  private static boolean isOne(String key) {
    String lower = key.toLowerCase(Locale.ROOT);
    return lower.startsWith(PREFIX) && !lower.equals(GatedProvider.KEY) || FLINK.contains(lower);
  }

  static Map<String, String> in(Map<String, String> options) {
    return matching(options, JobSettings::isOne);
  }

  static Map<String, String> without(Map<String, String> options) {
    return matching(options, key -> !isOne(key));
  }

  private static Map<String, String> matching(Map<String, String> options, Predicate<String> isWanted) {
    Map<String, String> found = new LinkedHashMap<>();
    options.forEach((key, value) -> {
      if (isWanted.test(key)) {
        found.put(key, value);
      }
    });
    return found;
  }

  static CaseInsensitiveStringMap without(CaseInsensitiveStringMap options) {
    Map<String, String> own = options.asCaseSensitiveMap();
    return in(own).isEmpty() ? options : new CaseInsensitiveStringMap(without(own));
  }

  static scala.collection.immutable.Map<String, String> without(scala.collection.immutable.Map<String, String> options) {
    scala.collection.immutable.Map<String, String> own = options instanceof CaseInsensitiveMap<String> any ? any.originalMap() : options;
    Map<String, String> given = CollectionConverters.asJava(own);
    return in(given).isEmpty() ? options : new CaseInsensitiveMap<>(scala.collection.immutable.Map.from(CollectionConverters.asScala(without(given))));
  }

  /** Those that were taken out of a stream before it had a source. */
  static Map<String, String> takenFrom(LogicalPlan relation) {
    return relation.getTagValue(TAG).getOrElse(Map::of);
  }

  /** Whether a stream that has no source yet has some. */
  static boolean isSaidOf(LogicalPlan node) {
    return node instanceof UnresolvedDataSource stream && stream.isStreaming() && !in(CollectionConverters.asJava(stream.options().originalMap())).isEmpty();
  }

  /** Takes them out of such a stream. */
  static LogicalPlan taken(LogicalPlan node) {
    var options = ((UnresolvedDataSource) node).options();
    LogicalPlan copy = node.makeCopy(Plans.elements(node, (name, element) -> element instanceof CaseInsensitiveMap ? without(options) : element));
    copy.setTagValue(TAG, in(CollectionConverters.asJava(options.originalMap())));
    return copy;
  }

  /** The properties of the session that a query runs in, which has those of the application. */
  static Map<String, String> ofSession() {
    Map<String, String> every = CollectionConverters.asJava(SQLConf.get().getAllConfs());
    return matching(every, key -> key.startsWith(PlannerProcess.PROPERTIES));
  }

  /**
   * The options of {@code writeStream}, taken out before the query makes its writer.
   *
   * <p>The execution keeps them in a field of its own, under one name in 4.0 to 4.3. A sink of the V1 kind was made with them before
   * there was a query.
   */
  static Map<String, String> takenFrom(StreamingQuery query) {
    try {
      Field field = Execution.field(query, "extraOptions");
      @SuppressWarnings("unchecked")
      var options = (scala.collection.immutable.Map<String, String>) field.get(query);
      field.set(query, without(options));
      return in(CollectionConverters.asJava(options));
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.warn("Headgate cannot read the options of {}; settings of the query can be given as properties", query.getClass(), e);
      return Map.of();
    }
  }
}
