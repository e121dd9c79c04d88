package dev.headgate.spark;

/** Ends a query on behalf of the planner: it refused the stream, asked for failure, or was not heard of for too long. */
public final class PlannerException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  PlannerException(String message) {
    super(message);
  }
}
