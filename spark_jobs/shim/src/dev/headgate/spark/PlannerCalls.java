package dev.headgate.spark;

import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The calls of one stream to the planner, on threads that all streams of the driver share and that are kept for good.
 *
 * <p>Py4J gives each thread that calls Python a connection and a Python thread of its own, and never takes them back, so threads
 * that came and went with streams would leave both behind. A thread is made only where no other is free, so there are about as
 * many as there were calls at once. A call that hangs costs its thread and delays nobody. How many may hang is bounded: for one
 * stream, so that it cannot use up what others need, and in all.
 */
final class PlannerCalls {
  /** A planner answers within milliseconds, so this many calls of all streams are only out where it hangs. */
  private static final Semaphore ALL = new Semaphore(128);

  private static final Executor THREADS =
      new ThreadPoolExecutor(
          0, Integer.MAX_VALUE, Long.MAX_VALUE, TimeUnit.NANOSECONDS, new SynchronousQueue<>(), PlannerCalls::daemon);

  /** The newest call of the stream, and those before it that were given up: one that is lost is not waited for. */
  private final Semaphore own = new Semaphore(3);

  /**
   * Begins a call.
   *
   * @param until how long to wait where too many have not come back yet, a time of {@link System#nanoTime}
   * @return null if they have not by then
   */
  <T> Future<T> begin(Callable<T> call, long until) throws InterruptedException {
    if (!acquired(own, until)) {
      return null;
    }
    FutureTask<T> task = new FutureTask<>(call);
    boolean begun = false;
    try {
      if (!acquired(ALL, until)) {
        return null;
      }
      try {
        THREADS.execute(() -> run(task));
        begun = true;
      } finally {
        if (!begun) {
          ALL.release(); // no thread could be made
        }
      }
    } finally {
      if (!begun) {
        own.release();
      }
    }
    return task;
  }

  /** Looks first without waiting, which an interrupted thread may do as well: the end of a stream is told by one. */
  private static boolean acquired(Semaphore free, long until) throws InterruptedException {
    return free.tryAcquire() || free.tryAcquire(until - System.nanoTime(), TimeUnit.NANOSECONDS);
  }

  private void run(FutureTask<?> task) {
    try {
      task.run();
    } finally {
      ALL.release();
      own.release();
    }
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "headgate-planner-call");
    thread.setDaemon(true);
    return thread;
  }
}
