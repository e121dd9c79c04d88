package dev.headgate.spark;

import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import scala.Product;

/**
 * Spares the first batch of a query what it would look up in a state that is empty.
 *
 * <p>Spark plans each batch of an aggregation in the same way: records are merged by group, what the state has of each group is put
 * beside them, both are merged, and what comes of it is saved ({@code AggUtils.planStreamingAggregation}). Batch 0 has the version 0 of a
 * store, which is empty by definition, also where that batch is repeated. So it looks up each group and finds nothing, and the second merge
 * gives out what it is given.
 */
final class EmptyState {
  static final String LOOKUP = "StateStoreRestoreExec";

  private EmptyState() {}

  static SparkPlan spared(SparkPlan plan) {
    SparkPlan spared = Plans.with(plan, EmptyState::mergesWithNothing, EmptyState::merged);
    return spared.exists(EmptyState::isLookup) ? plan : spared;
  }

  /**
   * Whether a plan with this node in it is left as it is: a lookup stays, which comes before a sort, or is of a session window.
   *
   * <p>A task hands the store that it has looked something up in to whatever it writes next (read in the bytecode of {@code
   * StateStoreRDD.compute}, 4.1.4 to 4.3.0). With one lookup of two in a task, the second aggregation would be handed the store of the first.
   */
  private static boolean isLookup(SparkPlan node) {
    return node.getClass().getSimpleName().endsWith(LOOKUP);
  }

  private static boolean mergesWithNothing(SparkPlan node) {
    return node instanceof BaseAggregateExec merge
        && Plans.isNamed(merge.child(), LOOKUP)
        && isFirst(StatePlans.stateOf(merge.child()))
        && merge.output().equals(merged(node).output());
  }

  private static boolean isFirst(Product state) {
    return state != null && Long.valueOf(0).equals(Plans.element(state, "storeVersion"));
  }

  /** What the state is looked up for. */
  private static SparkPlan merged(SparkPlan merge) {
    return ((BaseAggregateExec) merge).child().children().head();
  }
}
