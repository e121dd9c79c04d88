package dev.headgate.spark;

import java.util.Set;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What one stream tells a planner, and asks it.
 *
 * <p>A call that fails, or that is answered with what cannot be carried out, is answered with null here, and costs {@link Patience}.
 */
final class PlannerClient {
  private static final Logger LOG = LoggerFactory.getLogger(PlannerClient.class);

  private final RunningQuery query;
  private final long handle;
  private final String descriptor;
  private final String stream;
  private final Function<Answer, String> problem;
  private final Patience patience;

  /**
   * @param descriptor of the stream, as {@link Planner#opened} is told it
   * @param stream what messages call it
   * @param problem why an answer that is well formed cannot be carried out, or null
   */
  PlannerClient(RunningQuery query, long handle, String descriptor, String stream, Function<Answer, String> problem) {
    this.query = query;
    this.handle = handle;
    this.descriptor = descriptor;
    this.stream = stream;
    this.problem = problem;
    this.patience = new Patience(stream, this::patienceIsOver);
  }

  Answer opened(Planner planner) throws InterruptedException {
    return ask(
        () -> {
          query.begins(planner);
          return planner.opened(handle, descriptor);
        },
        Answer.TO_OPENED);
  }

  Answer fence(Planner planner) throws InterruptedException {
    return ask(() -> planner.fence(query.runId()), Answer.TO_FENCE);
  }

  Answer admit(Planner planner, String trigger, String start) throws InterruptedException {
    return ask(
        () -> {
          query.progressed(planner);
          return planner.admit(handle, trigger, start);
        },
        Answer.TO_ADMIT);
  }

  Answer plan(Planner planner, String trigger, String start, String latest) throws InterruptedException {
    return ask(() -> planner.plan(handle, trigger, start, latest), Answer.TO_PLAN);
  }

  void closed(Planner planner) {
    try {
      planner.closed(handle, query.failure());
    } catch (Planner.Failed e) {
      LOG.warn("Headgate could not tell the planner of the end of {}: {}", stream, e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Notes that the planner has said what is to be done. */
  void served() {
    patience.served();
  }

  private Answer ask(Patience.Question question, Set<String> understood) throws InterruptedException {
    String text = patience.ask(question);
    if (text == null) {
      return null;
    }
    Answer answer = Answer.parse(text, understood);
    String why = answer == null ? "unknown answer \"" + text + "\"" : problem.apply(answer);
    if (why != null) {
      patience.failed(why);
      return null;
    }
    return answer;
  }

  private void patienceIsOver(String why) {
    String end = PlannerProcess.whyItEnds(query);
    if (end != null) {
      throw new PlannerException(why + " The query ends rather than stall in silence; see the driver's log, then start it again. (" + end + ")");
    }
    query.isToBeLeftAlone(why);
  }
}
