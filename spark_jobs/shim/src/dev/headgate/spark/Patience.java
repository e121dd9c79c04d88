package dev.headgate.spark;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One stream's line to the planner, and how long it bears with failure.
 *
 * <p>A planner that does not answer must neither read data nobody granted nor stall the query in silence. So each call has a
 * budget; a failed call means hold; and after a time of nothing but failures the query fails with the last reason. Calls run on
 * other threads ({@link PlannerCalls}), because Py4J waits on a socket without end and cannot be interrupted: a call that hangs
 * there is given up, and the query's thread stays free to be stopped.
 */
final class Patience {
  private static final Logger LOG = LoggerFactory.getLogger(Patience.class);

  private final String stream;
  private final PlannerCalls calls = new PlannerCalls();
  private long asked;
  private long failingSince;
  private int failures;

  Patience(String stream) {
    this.stream = stream;
  }

  /**
   * Asks within the budget.
   *
   * @return the answer, or null if the call failed and the stream should be held
   * @throws PlannerException once there was nothing but failure for too long
   * @throws InterruptedException if the query is being stopped
   */
  String ask(Callable<String> call) throws InterruptedException {
    long budget = Shim.callBudgetMillis();
    asked = System.nanoTime();
    long until = asked + TimeUnit.MILLISECONDS.toNanos(budget);
    try {
      Future<String> answered = calls.begin(call, until);
      if (answered == null) {
        failed("no answer within " + budget + " ms, nor to the calls before this one");
        return null;
      }
      String answer = answered.get(until - System.nanoTime(), TimeUnit.NANOSECONDS);
      if (answer == null) {
        failed("it answered null");
      }
      return answer;
    } catch (TimeoutException e) {
      failed("no answer within " + budget + " ms");
    } catch (ExecutionException e) {
      failed(e.getCause().toString());
    } catch (OutOfMemoryError e) { // Java's word for a thread that cannot be made
      failed(e.toString());
    }
    return null;
  }

  /** Notes that the planner has answered, and in words that could be carried out. */
  void served() {
    if (failures > 0) {
      LOG.info("Headgate: the planner answers {} again after {} failed calls", stream, failures);
    }
    failures = 0;
  }

  /**
   * Notes a failed call, or an answer that could not be carried out.
   *
   * <p>The first is borne however long it took: a process that stood still in it (a paused container, a virtual machine that moved)
   * finds minutes gone of which nobody was asked anything.
   */
  void failed(String reason) {
    if (failures++ == 0) {
      failingSince = asked;
      LOG.warn("Headgate holds {}, because the planner failed: {}", stream, reason);
      return;
    }
    long failing = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - failingSince);
    if (failing >= Shim.patienceMillis()) {
      throw new PlannerException(
          String.format(
              "Headgate held %s for %d ms, because the planner failed %d times in a row, the last time with: %s. "
                  + "The query ends rather than stall in silence; see the driver's log, then start it again.",
              stream, failing, failures, reason));
    }
  }

  /** Tells the planner that the stream is gone, waiting for it only if it has been answering. */
  void end(Runnable message) {
    long budget = failures == 0 ? TimeUnit.MILLISECONDS.toNanos(Shim.callBudgetMillis()) : 0;
    long until = System.nanoTime() + budget;
    try {
      Future<?> told = calls.begin(Executors.callable(message), until);
      if (told == null) {
        throw new TimeoutException("earlier calls have not come back");
      }
      told.get(until - System.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException | ExecutionException | OutOfMemoryError e) {
      LOG.warn("Headgate could not tell the planner of the end of {}: {}", stream, e.toString());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
