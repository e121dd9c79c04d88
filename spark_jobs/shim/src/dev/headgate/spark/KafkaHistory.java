package dev.headgate.spark;

import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

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
    DataSourceV2Relation relation = DataSourceV2Relation.create(inColumns((SupportsRead) topics), Option.empty(), Option.empty());
    var elements = Plans.elements(relation, (name, element) -> element instanceof CaseInsensitiveStringMap ? given : element);
    return Dataset.ofRows(session, relation.makeCopy(elements));
  }

  private static Table inColumns(SupportsRead topics) {
    return (Table)
        StandIn.of(
            topics,
            (method, arguments) -> {
              if (!method.getName().equals("newScanBuilder") || !KafkaReaders.areWantedFor(topics)) {
                return Governed.forward(topics, method, arguments);
              }
              var builder = topics.newScanBuilder(KafkaReaders.waitingLess(topics, (CaseInsensitiveStringMap) arguments[0]));
              return Extensions.making(builder, "build", scan -> scanInColumns((Scan) scan));
            });
  }

  private static Object scanInColumns(Scan scan) {
    return StandIn.of(
        scan,
        (method, arguments) ->
            switch (method.getName()) {
              case "columnarSupportMode" -> Scan.ColumnarSupportMode.PARTITION_DEFINED;
              case "toBatch" -> batchInColumns(scan.toBatch());
              default -> Governed.forward(scan, method, arguments);
            });
  }

  private static Object batchInColumns(Batch batch) {
    return StandIn.of(
        batch,
        (method, arguments) ->
            method.getName().equals("createReaderFactory") ? KafkaReaders.of(batch.createReaderFactory()) : Governed.forward(batch, method, arguments));
  }
}
