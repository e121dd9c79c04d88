package dev.headgate.spark;

import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.Product;
import scala.runtime.AbstractPartialFunction;

/**
 * Plans with other nodes, and nodes with other elements: what is a partial function and a copy in Scala.
 *
 * <p>Elements are found by name or type, since relations have moved between packages and gained fields between Spark 4.0 and 4.3.
 */
final class Plans {
  private static final String LONGEST = "spark.sql.maxPlanStringLength";

  private Plans() {}

  /** A plan in words, all of them, however few a session wants in its logs. */
  static String inFull(Object plan) {
    SQLConf conf = SQLConf.get().clone();
    conf.unsetConf(LONGEST);
    return SQLConf.withExistingConf(conf, plan::toString);
  }

  /** The plan with another node for each that is meant. */
  static <P extends TreeNode<P>> P with(P plan, Predicate<P> isMeant, UnaryOperator<P> other) {
    return plan.transform(rule(isMeant, other));
  }

  /** The same from the leaves on, so that what is put in place of a node may have that node in it. */
  static <P extends TreeNode<P>> P upwards(P plan, Predicate<P> isMeant, UnaryOperator<P> other) {
    return plan.transformUp(rule(isMeant, other));
  }

  private static <P> AbstractPartialFunction<P, P> rule(Predicate<P> isMeant, UnaryOperator<P> other) {
    return new AbstractPartialFunction<P, P>() {
      @Override
      public boolean isDefinedAt(P node) {
        return isMeant.test(node);
      }

      @Override
      @SuppressWarnings("unchecked")
      public <A extends P, B> B applyOrElse(A node, Function1<A, B> otherwise) {
        return isMeant.test(node) ? (B) other.apply(node) : otherwise.apply(node);
      }
    };
  }

  /** Whether a node is of the class with this name, whose package has moved between versions. */
  static boolean isNamed(TreeNode<?> node, String name) {
    return node.getClass().getSimpleName().equals(name);
  }

  /** The elements of a node, each as {@code other} has it, which is given its name. */
  static Object[] elements(Product node, BiFunction<String, Object, Object> other) {
    Object[] elements = new Object[node.productArity()];
    for (int i = 0; i < elements.length; i++) {
      elements[i] = other.apply(node.productElementName(i), node.productElement(i));
    }
    return elements;
  }

  /** The element of that name; null where there is none. */
  static Object element(Product node, String name) {
    return IntStream.range(0, node.productArity()).filter(i -> node.productElementName(i).equals(name)).mapToObj(node::productElement).findFirst().orElse(null);
  }
}
