package dev.headgate.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.BitwiseXor;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.ShiftRightUnsigned;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Has a large batch of an aggregation go through its state in about the order in which RocksDB keeps it.
 *
 * <p>Groups come in the order of their hashes, so each lookup and each write goes to another place of the store, which has to be found anew
 * and read from its file anew. Groups that are sorted first find nearly everything where the one before them was.
 *
 * <p>A hash aggregate gives out groups in about the order in which they come (read in the bytecode of {@code BytesToBytesMap.MapIterator},
 * 4.3.0), so one sort before the lookup serves the write as well. No group is there twice, and none comes before another one by right. One
 * of objects ({@code collect_list}) is left alone: from its 128th group on it sorts by itself, and merges that one group the other way
 * round ({@code ObjectAggregationIterator}), so a sort of ours would have it be another group.
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
    String first = plan.exists(node -> Plans.isNamed(node, EmptyState.LOOKUP)) ? EmptyState.LOOKUP : SAVE;
    Predicate<SparkPlan> isMeant = node -> Plans.isNamed(node, first) && node.children().head() instanceof HashAggregateExec;
    return plan.exists(isMeant::test) && counts(plan) ? Plans.with(plan, isMeant, KeyOrder::byKey) : plan;
  }

  /** Whether the order of keys counts in a batch: its store has one, and it is large. */
  static boolean counts(SparkPlan plan) {
    return keysAreInOrder() && recordsOf(plan) >= fromRecords();
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
        .mapToLong(range -> range instanceof Product known && Plans.element(known, "untilOffset") instanceof Long end && Plans.element(known, "fromOffset") instanceof Long start ? end - start : 0)
        .sum();
  }

  /** The node, with the groups that it reads sorted; as it is where no field of their key tells an order. */
  private static SparkPlan byKey(SparkPlan node) {
    List<SortOrder> order = order(CollectionConverters.asJava((Seq<?>) Plans.element(node, "keyExpressions")));
    return order.isEmpty() ? node : node.withNewChildren(seq(List.of(new SortExec(seq(order), false, node.children().head(), 0))));
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
        Expression given = new Coalesce(seq(List.of(field, new Literal(number == Long.class ? (Object) 0L : (Object) 0, field.dataType()))));
        Expression bytes = invoke(Long.class, "reverseBytes", number == Long.class ? given : invoke(Integer.class, "toUnsignedLong", given));
        numbers = numbers == null ? bytes : new BitwiseXor(numbers, new ShiftRightUnsigned(bytes, new Literal(bits, DataTypes.IntegerType)));
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
