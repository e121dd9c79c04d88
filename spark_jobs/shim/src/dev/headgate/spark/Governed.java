package dev.headgate.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Base of every stand-in: an object that has all interfaces of its delegate and answers some of their methods differently.
 *
 * <p>Two stand-ins are equal if their delegates are, since Spark keys maps by relation and by stream, but a stand-in never equals
 * its delegate: Catalyst would take the governed plan for the old one and drop it. It prints as its delegate, since that is what
 * a query's progress shows.
 */
public abstract class Governed {
  /** Answers every interface method of a stand-in. */
  public interface Handler {
    Object call(Method method, Object[] arguments) throws Throwable;
  }

  final Object delegate;

  /** Read by generated code. */
  public final Handler handler;

  protected Governed(Object delegate, Object handler) {
    this.delegate = delegate;
    this.handler = (Handler) handler;
  }

  /** Calls the delegate; what it throws comes out as it was thrown. */
  static Object forward(Object delegate, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(delegate, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** The same, for whoever may not declare what that throws. */
  static Object forwarded(Object delegate, Method method, Object[] arguments) {
    try {
      return forward(delegate, method, arguments);
    } catch (Throwable e) {
      throw Governed.<RuntimeException>asThrown(e);
    }
  }

  /** For a checked exception that a method does not declare and its delegate throws all the same, as Scala does. */
  @SuppressWarnings("unchecked")
  static <E extends Throwable> E asThrown(Throwable thrown) throws E {
    throw (E) thrown;
  }

  @Override
  public final boolean equals(Object other) {
    return other instanceof Governed && delegate.equals(((Governed) other).delegate);
  }

  @Override
  public final int hashCode() {
    return delegate.hashCode();
  }

  @Override
  public final String toString() {
    return delegate.toString();
  }
}
