package dev.headgate.spark;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How long a stream bears with a source that cannot be asked what it has.
 *
 * <p>It is held, while the other sources of the query go on; and after a time of nothing but failure the query fails with what the source
 * says. What may pass, and for how long, a planner has said before, see {@link Forbearance}; anything else fails at once. The planner is
 * told of it, and of a source that is silent, on a thread of its own.
 */
final class Outage {
  private static final Logger LOG = LoggerFactory.getLogger(Outage.class);

  private static final int MOST_CAUSES = 10;

  private final String stream;
  private final long handle;
  private final RunningQuery query;
  private boolean hasAnswered;
  private boolean lasts;
  private boolean silent;
  private long since;

  Outage(String stream, long handle, RunningQuery query) {
    this.stream = stream;
    this.handle = handle;
    this.query = query;
  }

  /** Asks the source for something. If that takes long, the planner is told that it is silent. */
  <T> T watch(Callable<T> question) throws Exception {
    long millis = query.forbearance.silenceMillis();
    long began = System.nanoTime();
    Future<?> silence = Teller.THREAD.schedule(() -> now(""), millis, TimeUnit.MILLISECONDS);
    try {
      return question.call();
    } finally {
      silence.cancel(false); // too late only if the time is over
      silent |= TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began) >= millis;
    }
  }

  /** Whether the source was out of reach when it was last asked. */
  boolean lasts() {
    return lasts;
  }

  /** Notes that the source has answered. */
  void over() {
    hasAnswered = true;
    if (lasts) {
      LOG.info("Headgate: {} answers again", stream);
    }
    if (lasts || silent) {
      tell(null);
    }
    lasts = silent = false;
  }

  /** Tells the planner what the source has thrown, before the query fails of it. */
  void ends(Throwable failure) {
    if (causes(failure).anyMatch(InterruptedException.class::isInstance)) {
      return; // it is being stopped
    }
    Future<?> told =
        Teller.THREAD.submit(() -> Teller.now("of the failure of " + stream, planner -> planner.thrown(handle, text(failure))));
    try {
      told.get(Shim.callBudgetMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException | ExecutionException e) {
      LOG.warn("Headgate could not tell the planner of the failure of {}: {}", stream, e.toString());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Notes a failure to answer that began at a time of {@link System#nanoTime}. The first is borne however long it took, see {@link
   * Patience}.
   *
   * @return whether to hold the source, rather than to fail
   */
  boolean bears(Throwable failure, long began) {
    if (causes(failure).noneMatch(cause -> query.forbearance.bears(cause, hasAnswered))) {
      return false;
    }
    if (!lasts) {
      lasts = true;
      since = began;
      LOG.warn("Headgate holds {}, because it cannot be asked what it has: {}", stream, failure.toString());
    } else if (TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - since) >= query.forbearance.outageMillis()) {
      return false;
    }
    tell(text(failure));
    return true;
  }

  private void tell(String failure) {
    Teller.THREAD.execute(() -> now(failure));
  }

  private void now(String failure) {
    Teller.now("how " + stream + " answers", planner -> planner.outage(handle, failure));
  }

  /** A failure and what has caused it, class and message of each on a line of its own; nothing of null. */
  static String text(Throwable failure) {
    return causes(failure).map(Throwable::toString).collect(Collectors.joining("\n"));
  }

  /** The failure and what caused it. */
  private static Stream<Throwable> causes(Throwable failure) {
    return Stream.iterate(failure, cause -> cause != null, Throwable::getCause).limit(MOST_CAUSES);
  }
}
