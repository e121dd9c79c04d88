package dev.headgate.spark;

import java.util.List;
import java.util.Map;
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
  private final long end;
  private final long betweenLooks;
  private final List<Watch> watched;
  private long lookAt; // its end: there is none before
  private long trigger;
  private boolean waited;

  /** A stream that is looked at, and how many unread records of it are too many; -1: anything new is. */
  private record Watch(Gate gate, long most) {
    static Watch of(Map.Entry<String, Long> named) {
      Gate gate = Shim.gate(named.getKey());
      return gate == null ? null : new Watch(gate, named.getValue());
    }

    boolean hasNews() {
      return gate.hasNews(most);
    }
  }

  Lease(Moment begun, Answer answer, long trigger) {
    this.begun = begun;
    this.trigger = trigger;
    this.end = begun.nanos() + TimeUnit.MILLISECONDS.toNanos(answer.millis());
    this.betweenLooks = TimeUnit.MILLISECONDS.toNanos(Math.max(1, answer.lookMillis()));
    this.watched = answer.watched().entrySet().stream().map(Watch::of).filter(Objects::nonNull).toList();
    looked(begun.nanos(), System.nanoTime() - begun.nanos());
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
      over = Shim.awaitRecall(begun.recalls(), Math.min(left, Math.max(1, millisUntil(lookAt)))) || hasNews();
    }
  }

  private boolean hasNews() {
    long now = System.nanoTime();
    if (lookAt - now > 0 || end - now <= 0) {
      return false;
    }
    boolean found = watched.stream().anyMatch(Watch::hasNews);
    looked(System.nanoTime(), System.nanoTime() - now);
    return found;
  }

  /** At its end a batch may be due, and it is asked about anyway: a look that would not be over by then is left out. */
  private void looked(long at, long took) {
    long next = at + betweenLooks;
    lookAt = watched.isEmpty() || end - next <= took ? end : next;
  }

  private long left() {
    return millisUntil(end);
  }

  private static long millisUntil(long nanos) {
    return TimeUnit.NANOSECONDS.toMillis(nanos - System.nanoTime());
  }
}
