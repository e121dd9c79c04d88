package dev.headgate.spark;

import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How long one stream bears with a planner that fails.
 *
 * <p>It is here because there is no planner to ask when one is to be judged by it.
 *
 * <p>A planner that does not answer must neither read data nobody granted nor stall the query in silence. So each call has a
 * budget; a failed call means hold; and after a time of nothing but failures it is over, with the last reason: the query fails, or
 * goes on without a planner.
 */
final class Patience {
  private static final Logger LOG = LoggerFactory.getLogger(Patience.class);

  private final String stream;
  private final Consumer<String> over;
  private long asked;
  private long failingSince;
  private int failures;

  /** A question to the planner. */
  interface Question {
    String ask() throws Planner.Failed, InterruptedException;
  }

  /** @param over is told, in a sentence, that it is over */
  Patience(String stream, Consumer<String> over) {
    this.stream = stream;
    this.over = over;
  }

  /**
   * Asks.
   *
   * @return the answer, or null if the call failed and the stream should be held
   * @throws InterruptedException if the query is being stopped
   */
  String ask(Question question) throws InterruptedException {
    asked = System.nanoTime();
    try {
      String answer = question.ask();
      if (answer == null) {
        failed("it answered null");
      }
      return answer;
    } catch (Planner.Failed e) {
      failed(e.getMessage());
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
      over.accept(
          String.format(
              "Headgate held %s for %d ms, because the planner failed %d times in a row, the last time with: %s.",
              stream, failing, failures, reason));
    }
  }
}
