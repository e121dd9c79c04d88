package dev.headgate.spark;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import scala.Option;
import scala.Product;

/**
 * Spares the first batch of a query what it would look up in a state that is empty.
 *
 * <p>Spark plans each batch of an aggregation in the same way: records are merged by group, what the state has of each group is put
 * beside them, both are merged, and what comes of it is saved ({@code AggUtils.planStreamingAggregation}). Batch 0 has the version 0 of a
 * store, which is empty by definition, also where that batch is repeated. So it looks up each group and finds nothing, and the second merge
 * gives out what it is given. What is left writes the same state, by the same node: its schema is settled before such rules are applied
 * (read in the bytecode of {@code IncrementalExecution.preparations}, 4.0.5 and 4.3.0), and the next batch is planned anew.
 */
final class EmptyState extends ColumnarRule {
  private static final String LOOKUP = "StateStoreRestoreExec";

  @Override
  public Rule<SparkPlan> preColumnarTransitions() {
    return new Skip();
  }

  private static final class Skip extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      SparkPlan spared = Plans.with(plan, EmptyState::mergesWithNothing, EmptyState::merged);
      return spared == plan || spared.exists(EmptyState::forbids) || isBesideOthers() ? plan : spared;
    }
  }

  /** Whether the session of this thread has columnar rules of another extension, which may have plans of their own for what is there. */
  static boolean isBesideOthers() {
    return SparkSession.active().sessionState().columnarRules().exists(rule -> !(rule instanceof EmptyState));
  }

  /**
   * Whether a plan with this node in it is left as it is: of real-time mode, or with a lookup that stays (before a sort, or of a session
   * window).
   *
   * <p>A task hands the store that it has looked something up in to whatever it writes next (read in the bytecode of {@code
   * StateStoreRDD.compute}, 4.1.4 to 4.3.0). With one lookup of two in a task, the second aggregation would be handed the store of the first.
   */
  private static boolean forbids(SparkPlan node) {
    String name = node.getClass().getSimpleName();
    return name.equals("RealTimeStreamScanExec") || name.endsWith(LOOKUP);
  }

  private static boolean mergesWithNothing(SparkPlan node) {
    return node instanceof BaseAggregateExec merge
        && merge.child().getClass().getSimpleName().equals(LOOKUP)
        && Plans.element(merge.child(), "stateInfo") instanceof Option<?> state
        && state.isDefined()
        && isEmpty((Product) state.get())
        && merge.output().equals(merged(node).output());
  }

  /** Whether it is the state of a query's first batch; not of one that nobody plans, which runs as without Headgate. */
  private static boolean isEmpty(Product state) {
    RunningQuery query = RunningQuery.run(String.valueOf(Plans.element(state, "queryRunId")));
    return Long.valueOf(0).equals(Plans.element(state, "storeVersion")) && query != null && !query.isLeftAlone() && Shim.planner() != null;
  }

  /** What the state is looked up for. */
  private static SparkPlan merged(SparkPlan merge) {
    return ((BaseAggregateExec) merge).child().children().head();
  }
}
