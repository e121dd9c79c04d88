package dev.headgate.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BitwiseXor;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.ShiftRightUnsigned;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Has a large batch of an aggregation or a deduplication go through its state in about the order in which RocksDB keeps it.
 *
 * <p>Keys come in no order, so each lookup and each write goes to another place of the store, which has to be found anew and read from its
 * file anew. Keys that are sorted first find nearly everything where the one before them was.
 *
 * <p>A hash aggregate gives out groups in about the order in which they come (read in the bytecode of {@code BytesToBytesMap.MapIterator}
 * and {@code ObjectAggregationMap}, 4.3.0), so one sort before the lookup serves the write as well. No group is there twice, and none comes
 * before another one by right.
 *
 * <p>RocksDB compares the bytes of a key, an {@code UnsafeRow}: its bits for null, then eight bytes of each field, the lowest of a number
 * first, and then what is longer.
 */
final class KeyOrder {
  private static final String PROPERTY = PlannerProcess.PROPERTIES + "sortedStateFromRecords";
  private static final String SAVE = "StateStoreSaveExec";

  /** Records of a batch below which a sort takes as long as it spares. */
  private static final String LARGE = "100000";

  private static final Map<DataType, Class<?>> WHOLE_NUMBERS =
      Map.of(
          DataTypes.LongType, Long.class,
          DataTypes.TimestampType, Long.class,
          DataTypes.TimestampNTZType, Long.class,
          DataTypes.IntegerType, Integer.class,
          DataTypes.DateType, Integer.class);

  /** How many of the lowest bits of a number come before those of the next one: enough for millions of values. */
  private static final int BITS = 24;

  private KeyOrder() {}

  static SparkPlan sorted(SparkPlan plan) {
    if (!keysAreInOrder() || recordsOf(plan) < fromRecords()) {
      return plan;
    }
    String first = plan.exists(node -> isNamed(node, EmptyState.LOOKUP)) ? EmptyState.LOOKUP : SAVE;
    SparkPlan sorted = Plans.with(plan, node -> isNamed(node, first), KeyOrder::byKey);
    return Plans.with(sorted, KeyOrder::isDeduplication, KeyOrder::asTheyCame);
  }

  private static boolean isNamed(SparkPlan node, String name) {
    return node.getClass().getSimpleName().equals(name);
  }

  private static boolean isDeduplication(SparkPlan node) {
    return node.getClass().getSimpleName().startsWith("StreamingDeduplicate");
  }

  /** Whether the store of this thread's session keeps its keys in order; Spark's other one has them in a hash table. */
  private static boolean keysAreInOrder() {
    return SQLConf.get().stateStoreProviderClass().endsWith(".RocksDBStateStoreProvider");
  }

  private static long fromRecords() {
    String said = SQLConf.get().getConfString(PROPERTY, LARGE);
    try {
      return Long.parseLong(said);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(PROPERTY + " is " + said + "; it has to be a number of records", e);
    }
  }

  /** How many records a batch reads, as far as the offsets of Kafka's partitions tell. */
  private static long recordsOf(SparkPlan plan) {
    return CollectionConverters.asJava(plan.collectLeaves()).stream()
        .flatMap(leaf -> leaf instanceof MicroBatchScanExec scan ? CollectionConverters.asJava(scan.inputPartitions()).stream() : Stream.empty())
        .map(part -> part instanceof Product known ? Plans.element(known, "offsetRange") : null)
        .mapToLong(range -> range instanceof Product known ? (long) Plans.element(known, "untilOffset") - (long) Plans.element(known, "fromOffset") : 0)
        .sum();
  }

  /** The node, with the groups that it reads sorted. */
  private static SparkPlan byKey(SparkPlan node) {
    List<SortOrder> order = orderFor(node);
    return order.isEmpty() ? node : node.withNewChildren(seq(List.of(sort(order, node.children().head()))));
  }

  /** A deduplication keeps the first row of a key, and hands rows on as they come. So they are numbered first, and sorted back after it. */
  private static SparkPlan asTheyCame(SparkPlan node) {
    List<SortOrder> order = orderFor(node);
    if (order.isEmpty()) {
      return node;
    }
    SparkPlan rows = node.children().head();
    var number = new Alias(new MonotonicallyIncreasingID(), "number", NamedExpression.newExprId(), seq(List.of()), Option.empty(), seq(List.of()));
    order.add(ascending(number.toAttribute()));
    SparkPlan numbered = new ProjectExec(plus(rows.output(), number), rows);
    SparkPlan kept = node.withNewChildren(seq(List.of(sort(order, numbered))));
    return new ProjectExec(plus(node.output()), sort(List.of(ascending(number.toAttribute())), kept));
  }

  /** How what a node reads is to be sorted; empty where no field of its key tells an order, or where it is sorted already. */
  private static List<SortOrder> orderFor(SparkPlan node) {
    boolean isSorted = node.children().head().outputOrdering().nonEmpty();
    return isSorted ? List.of() : order(CollectionConverters.asJava((Seq<?>) Plans.element(node, "keyExpressions")));
  }

  private static SparkPlan sort(List<SortOrder> order, SparkPlan child) {
    return new SortExec(seq(order), false, child, 0);
  }

  private static Seq<NamedExpression> plus(Seq<Attribute> attributes, NamedExpression... more) {
    return seq(Stream.concat(CollectionConverters.asJava(attributes).stream(), Stream.of(more)).map(NamedExpression.class::cast).toList());
  }

  /**
   * First by the whole numbers of a key, and then by each of its texts.
   *
   * <p>The numbers are made one: a sort by that alone compares nothing and takes half as long, and where two keys are taken for one nothing
   * is lost but a little of the order. What is within a field, as a window's start, is left out: a key has few of it.
   */
  private static List<SortOrder> order(List<?> key) {
    List<SortOrder> order = new ArrayList<>();
    Expression numbers = null;
    int bits = 0;
    for (Object each : key) {
      Expression field = (Expression) each;
      Class<?> number = WHOLE_NUMBERS.get(field.dataType());
      if (number != null && bits < Long.SIZE) {
        Expression bytes = invoke(Long.class, "reverseBytes", number == Long.class ? field : invoke(Integer.class, "toUnsignedLong", field));
        numbers = numbers == null ? bytes : new BitwiseXor(numbers, new ShiftRightUnsigned(bytes, Literal.create(bits, DataTypes.IntegerType)));
        bits += BITS;
      } else if (field.dataType().equals(DataTypes.StringType) || field.dataType().equals(DataTypes.BinaryType)) {
        order.add(ascending(field));
      }
    }
    if (numbers != null) {
      order.add(0, ascending(numbers));
    }
    return order;
  }

  private static SortOrder ascending(Expression by) {
    return new SortOrder(by, Ascending$.MODULE$, Ascending$.MODULE$.defaultNullOrdering(), seq(List.of()));
  }

  /** What a static method of a class of Java makes of a number: a long. */
  private static Expression invoke(Class<?> of, String method, Expression number) {
    return new StaticInvoke(of, DataTypes.LongType, method, seq(List.of(number)), seq(List.of()), true, true, true, Option.empty());
  }

  private static <T> Seq<T> seq(List<T> elements) {
    return CollectionConverters.asScala(elements).toSeq();
  }
}
