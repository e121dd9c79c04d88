package dev.headgate.spark;

import java.lang.reflect.Field;
import java.net.URISyntaxException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function2;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Has the tasks of a deduplication come to their state through {@link KeysOfTask}, in a large batch.
 *
 * <p>The node that deduplicates stays below this one, and what it says and counts stays its own. Its tasks need our classes, so this is only
 * where executors have them for certain.
 */
public final class RememberedKeys extends SparkPlan {
  private static final long serialVersionUID = 1;
  private static final Logger LOG = LoggerFactory.getLogger(RememberedKeys.class);

  /** What {@code StateStoreRDD} calls with the store and the rows of a partition (read in the bytecode of 4.0.5 to 4.3.0). */
  private static final String OF_A_TASK = "storeUpdateFunction";

  private static final String WITHIN = "StreamingDeduplicateWithinWatermarkExec";

  private final SparkPlan deduplication;

  /** Public as the class is: Spark copies a node by a constructor that it finds among the public ones. */
  public RememberedKeys(SparkPlan deduplication) {
    this.deduplication = deduplication;
  }

  static SparkPlan over(SparkPlan plan) {
    return plan.exists(RememberedKeys::isDeduplication) && KeyOrder.counts(plan) && executorsHaveOurs()
        ? Plans.upwards(plan, RememberedKeys::isDeduplication, RememberedKeys::new)
        : plan;
  }

  private static boolean isDeduplication(SparkPlan node) {
    return Plans.isNamed(node, "StreamingDeduplicateExec") || Plans.isNamed(node, WITHIN);
  }

  private static boolean executorsHaveOurs() {
    try {
      return KafkaReaders.executorsHaveOurs();
    } catch (URISyntaxException e) {
      return false;
    }
  }

  @Override
  @SuppressWarnings("unchecked")
  public RDD<InternalRow> doExecute() {
    RDD<InternalRow> rows = deduplication.execute();
    try {
      Field ofTask = Execution.field(rows, OF_A_TASK);
      if (!(ofTask.get(rows) instanceof KeysOfTask.Function)) {
        var spark = (Function2<StateStore, Iterator<InternalRow>, Iterator<InternalRow>>) ofTask.get(rows);
        ofTask.set(rows, new KeysOfTask.Function(spark, ended()));
      }
    } catch (ReflectiveOperationException e) {
      LOG.warn("Headgate does not know the tasks of a deduplication in this Spark, which look each row up: {}", e.toString());
    }
    return rows;
  }

  /** Up to which time, in microseconds, keys are dropped whose value says when they end; the last one where values say no time. */
  private long ended() {
    return Plans.isNamed(deduplication, WITHIN) && Plans.element(deduplication, "eventTimeWatermarkForEviction") instanceof Option<?> millis && millis.isDefined()
        ? TimeUnit.MILLISECONDS.toMicros((Long) millis.get())
        : Long.MAX_VALUE;
  }

  @Override
  public Seq<SparkPlan> children() {
    return CollectionConverters.asScala(List.of(deduplication)).toSeq();
  }

  @Override
  public Seq<Attribute> output() {
    return deduplication.output();
  }

  @Override
  public Partitioning outputPartitioning() {
    return deduplication.outputPartitioning();
  }

  @Override
  public Seq<SortOrder> outputOrdering() {
    return deduplication.outputOrdering();
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new RememberedKeys(children.head());
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int place) {
    return deduplication;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof RememberedKeys;
  }
}
