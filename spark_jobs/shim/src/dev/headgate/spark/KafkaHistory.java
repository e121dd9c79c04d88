package dev.headgate.spark;

import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reads what a backfill has of topics as a batch by Spark's own source of Kafka, in columns where a stream would be read so.
 *
 * <p>Other batches of a job are Spark's alone. It reads them by the older of its interfaces ({@code spark.sql.sources.useV1SourceList}
 * names Kafka), which has rows and no columns.
 */
public final class KafkaHistory {
  private static final String SOURCE = "kafka";

  private KafkaHistory() {}

  /** What topics have, by the options of Spark's source. */
  public static Dataset<Row> read(SparkSession session, Map<String, String> options) throws ReflectiveOperationException {
    var given = new CaseInsensitiveStringMap(options);
    var provider = (TableProvider) DataSource.lookupDataSource(SOURCE, session.sessionState().conf()).getConstructor().newInstance();
    Table topics = provider.getTable(provider.inferSchema(given), new Transform[0], given);
    DataSourceV2Relation relation = DataSourceV2Relation.create(inColumns(topics), Option.empty(), Option.empty());
    var elements = Plans.elements(relation, (name, element) -> element instanceof CaseInsensitiveStringMap ? given : element);
    return Dataset.ofRows(session, relation.makeCopy(elements));
  }

  /**
   * Whether what is at or after a time is, by the plan of rows that are so filtered, what has been in the topics with such a timestamp.
   *
   * <p>Spark moves a filter down as far as it means the same there. So where it has come to be one of timestamps, above the one relation
   * of ours, earlier records make no difference.
   */
  public static boolean goesByTimestamp(Dataset<Row> filtered, long micros) {
    LogicalPlan plan = filtered.queryExecution().optimizedPlan();
    var topics = CollectionConverters.asJava(plan.collectLeaves()).stream().filter(KafkaHistory::isOurs).toList();
    return topics.size() == 1 && plan.exists(node -> node instanceof Filter filter && filter.child() == topics.get(0) && isFrom(micros, filter.condition()));
  }

  private static boolean isOurs(LogicalPlan leaf) {
    return leaf instanceof DataSourceV2ScanRelation read && read.relation().table() instanceof Governed;
  }

  private static boolean isFrom(long micros, Expression condition) {
    return condition instanceof And both
        ? isFrom(micros, both.left()) || isFrom(micros, both.right())
        : condition instanceof GreaterThanOrEqual from
            && from.left() instanceof AttributeReference column
            && column.name().equals("timestamp")
            && from.right() instanceof Literal time
            && Long.valueOf(micros).equals(time.value());
  }

  private static Table inColumns(Table topics) {
    var first = new AtomicReference<Object>();
    return Extensions.table(topics, scan -> KafkaReaders.areWantedFor(topics) ? scanInColumns((Scan) scan, first) : scan);
  }

  /** A scan whose batch is that of the first scan of its table, so that a plan that reads the same topics twice can see that it does. */
  private static Object scanInColumns(Scan scan, AtomicReference<Object> first) {
    return StandIn.of(
        scan,
        (method, arguments) ->
            switch (method.getName()) {
              case "columnarSupportMode" -> Scan.ColumnarSupportMode.PARTITION_DEFINED;
              case "toBatch" -> first.updateAndGet(known -> known == null ? batchInColumns(scan.toBatch()) : known);
              default -> Governed.forward(scan, method, arguments);
            });
  }

  private static Object batchInColumns(Batch batch) {
    return Extensions.making(batch, "createReaderFactory", readers -> KafkaReaders.of((PartitionReaderFactory) readers));
  }
}
