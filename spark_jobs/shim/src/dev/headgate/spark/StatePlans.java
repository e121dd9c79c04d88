package dev.headgate.spark;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Option;
import scala.Product;

/**
 * Changes how a batch of a planned query comes to its state, in the physical plan of that batch alone.
 *
 * <p>What is left are nodes of Spark, and the state is written by the node that always writes it: its schema is settled before such rules
 * are applied (read in the bytecode of {@code IncrementalExecution.preparations}, 4.0.5 and 4.3.0), and the next batch is planned anew. A
 * columnar rule, of those that can be added, alone sees the physical plan of a stream after that.
 */
final class StatePlans extends ColumnarRule {
  @Override
  public Rule<SparkPlan> preColumnarTransitions() {
    return new Change();
  }

  private static final class Change extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      return plan.exists(StatePlans::isOfPlannedQuery) && !isBesideOthers() && !plan.exists(node -> Plans.isNamed(node, "RealTimeStreamScanExec"))
          ? RememberedKeys.over(KeyOrder.sorted(EmptyState.spared(plan)))
          : plan;
    }
  }

  /** Whether the session of this thread has columnar rules of another extension, which may have plans of their own for what is there. */
  static boolean isBesideOthers() {
    return SparkSession.active().sessionState().columnarRules().exists(rule -> !(rule instanceof StatePlans));
  }

  /** Whether a node has state of a query that is planned; one that nobody plans runs as without Headgate. */
  private static boolean isOfPlannedQuery(SparkPlan node) {
    Product state = stateOf(node);
    RunningQuery query = state == null ? null : RunningQuery.run(String.valueOf(Plans.element(state, "queryRunId")));
    return query != null && !query.isLeftAlone() && Shim.planner() != null;
  }

  /** What a node says of its state; null where it has none. */
  static Product stateOf(SparkPlan node) {
    return Plans.element(node, "stateInfo") instanceof Option<?> state && state.isDefined() ? (Product) state.get() : null;
  }
}
