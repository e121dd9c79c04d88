package dev.headgate.spark;

import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How long one stream bears with a planner that fails, since nobody is to be asked then.
 *
 * <p>A planner that does not answer must neither read data nobody granted nor stall the query in silence. So each call has a budget; one
 * that fails, or is answered with what cannot be carried out, is answered with null here, and means hold; and after a time of nothing
 * but failures the query fails with the last reason, or goes on without a planner.
 */
final class Patience {
  private static final Logger LOG = LoggerFactory.getLogger(Patience.class);

  private final RunningQuery query;
  final String stream;
  private final Function<Answer, String> problem;
  private long failingSince;
  private int failures;

  /** A question to the planner. */
  interface Question {
    Answer ask() throws Planner.Failed, InterruptedException;
  }

  /**
   * @param stream what messages call it
   * @param problem why an answer that is well formed cannot be carried out, or null
   */
  Patience(RunningQuery query, String stream, Function<Answer, String> problem) {
    this.query = query;
    this.stream = stream;
    this.problem = problem;
  }

  /** Notes that the planner has answered, and in words that could be carried out. */
  void served() {
    if (failures > 0) {
      LOG.info("Headgate: the planner answers {} again after {} failed calls", stream, failures);
    }
    failures = 0;
  }

  /** The answer; null where the call has failed, or it cannot be carried out. */
  Answer ask(Question question) throws InterruptedException {
    long asked = System.nanoTime();
    String why;
    try {
      Answer answer = question.ask();
      why = problem.apply(answer);
      if (why == null) {
        return answer;
      }
    } catch (Planner.Failed e) {
      why = e.getMessage();
    }
    failed(why, asked);
    return null;
  }

  /**
   * Notes a failed call. The first is borne however long it took: a process that stood still in it (a paused container, a virtual machine
   * that moved) finds minutes gone of which nobody was asked anything.
   */
  private void failed(String reason, long asked) {
    if (failures++ == 0) {
      failingSince = asked;
      LOG.warn("Headgate holds {}, because the planner failed: {}", stream, reason);
      return;
    }
    long failing = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - failingSince);
    if (failing < Shim.patienceMillis()) {
      return;
    }
    String why =
        String.format("Headgate held %s for %d ms, because the planner failed %d times in a row, the last time with: %s.", stream, failing, failures, reason);
    String end = PlannerProcess.whyItEnds(query);
    if (end != null) {
      throw new PlannerException(why + " The query ends rather than stall in silence; see the driver's log, then start it again. (" + end + ")");
    }
    query.isToBeLeftAlone(why);
  }
}
