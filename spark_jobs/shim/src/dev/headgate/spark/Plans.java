package dev.headgate.spark;

import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.Product;
import scala.runtime.AbstractPartialFunction;

/**
 * Plans with other nodes, and nodes with other elements: what is a partial function and a copy in Scala.
 *
 * <p>Elements are found by name or type, since relations have moved between packages and gained fields between Spark 4.0 and 4.3.
 */
final class Plans {
  private Plans() {}

  /** The plan with another node for each that is meant. */
  static LogicalPlan with(LogicalPlan plan, Predicate<LogicalPlan> isMeant, UnaryOperator<LogicalPlan> other) {
    return plan.transform(
        new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
          @Override
          public boolean isDefinedAt(LogicalPlan node) {
            return isMeant.test(node);
          }

          @Override
          @SuppressWarnings("unchecked")
          public <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
            return isMeant.test(node) ? (B) other.apply(node) : otherwise.apply(node);
          }
        });
  }

  /** The elements of a node, each as {@code other} has it, which is given its name. */
  static Object[] elements(Product node, BiFunction<String, Object, Object> other) {
    Object[] elements = new Object[node.productArity()];
    for (int i = 0; i < elements.length; i++) {
      elements[i] = other.apply(node.productElementName(i), node.productElement(i));
    }
    return elements;
  }
}
