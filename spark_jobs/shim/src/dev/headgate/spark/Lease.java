package dev.headgate.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/**
 * A hold that stands for a while without another question: the answer {@code lease} of a planner.
 *
 * <p>It is for all streams of the query. The first stream of the next trigger, whichever Spark asks first, waits for the end of the lease:
 * its time is over, the planner recalls it because it was told something, or a stream that it names has something new. That trigger
 * ends without a batch, as any held one, and Spark starts the next one at once; so no batch seems to have taken as long as the wait.
 */
final class Lease {
  /** A trigger that ends sooner than its interval is not followed by the next one at once, so it had better ask itself. */
  private static final long NOT_WORTH_A_WAIT_MILLIS = 10;

  /** When a planner was asked. What it answers rests on what it knew then, so that is where its lease begins. */
  record Moment(long nanos, long recalls) {
    static Moment now() {
      return new Moment(System.nanoTime(), Shim.recalls());
    }
  }

  private final Moment begun;
  private final long nanos;
  private final long lookMillis;
  private final List<Gate> watched;
  private long trigger;
  private long lookedAt;
  private boolean waited;

  Lease(Moment begun, Answer answer, long trigger) {
    this.begun = begun;
    this.trigger = trigger;
    this.lookedAt = begun.nanos();
    this.nanos = TimeUnit.MILLISECONDS.toNanos(answer.millis());
    this.watched = Arrays.stream(answer.handles()).map(Shim::gate).filter(Objects::nonNull).toList();
    this.lookMillis = watched.isEmpty() ? Long.MAX_VALUE : Math.max(1, answer.lookMillis());
  }

  /** Whether a stream is held in this trigger; where it is the trigger's first one, that is known at the end of the lease. */
  boolean holds(long asked) throws InterruptedException {
    if (asked == trigger) {
      return true; // a trigger that has begun under a lease is held to its end
    }
    if (waited || isOver()) {
      return false;
    }
    trigger = asked;
    waited = true;
    await();
    return true;
  }

  private boolean isOver() {
    return left() <= NOT_WORTH_A_WAIT_MILLIS || begun.recalls() != Shim.recalls() || hasNews();
  }

  private void await() throws InterruptedException {
    boolean over = false;
    for (long left = left(); !over && left > 0; left = left()) {
      over = Shim.awaitRecall(begun.recalls(), Math.min(left, Math.max(1, untilLook()))) || hasNews();
    }
  }

  /** At its end it is asked about anyway, so there is no look then. */
  private boolean hasNews() {
    if (untilLook() > 0 || left() <= 0) {
      return false;
    }
    lookedAt = System.nanoTime();
    return watched.stream().anyMatch(Gate::hasNews);
  }

  private long untilLook() {
    return watched.isEmpty() ? Long.MAX_VALUE : lookMillis - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - lookedAt);
  }

  private long left() {
    return TimeUnit.NANOSECONDS.toMillis(begun.nanos() + nanos - System.nanoTime());
  }
}
