package dev.headgate.spark;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
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
 * a thread of their own, because Py4J waits on a socket without end and cannot be interrupted: a thread that hangs there is
 * left behind, and the query's thread stays free to be stopped.
 */
final class Patience {
  private static final Logger LOG = LoggerFactory.getLogger(Patience.class);

  private final String stream;
  private ExecutorService thread;
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
    try {
      String answer = worker().submit(call).get(budget, TimeUnit.MILLISECONDS);
      if (answer == null) {
        failed("it answered null");
      }
      return answer;
    } catch (TimeoutException e) {
      thread.shutdownNow();
      thread = null;
      failed("no answer within " + budget + " ms");
    } catch (ExecutionException e) {
      failed(e.getCause().toString());
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

  /** Tells the planner that the stream is gone, waiting for it only if it has been answering, and gives the thread back. */
  void end(Runnable message) {
    Future<?> told = worker().submit(message);
    thread.shutdown();
    try {
      told.get(failures == 0 ? Shim.callBudgetMillis() : 0, TimeUnit.MILLISECONDS);
    } catch (TimeoutException | ExecutionException e) {
      LOG.warn("Headgate could not tell the planner of the end of {}: {}", stream, e.toString());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private ExecutorService worker() {
    if (thread == null) {
      thread = Executors.newSingleThreadExecutor(Patience::daemon);
    }
    return thread;
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "headgate-planner-call");
    thread.setDaemon(true);
    return thread;
  }
}
