package dev.headgate.spark;

/** Another driver has taken the checkpoint of a query over. The planner's process knows this by its name. */
public final class FencedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  FencedException(String message) {
    super(message);
  }

  /** Whether a failure is this one, also that of a job that was cancelled for it. */
  static boolean is(Throwable failure) {
    return failure instanceof FencedException || String.valueOf(failure.getMessage()).contains(FencedException.class.getName());
  }
}
