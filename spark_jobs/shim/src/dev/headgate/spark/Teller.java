package dev.headgate.spark;

import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tells the planner what nobody waits for, in the order in which it happened, on a thread of its own. */
final class Teller {
  private static final Logger LOG = LoggerFactory.getLogger(Teller.class);

  static final ScheduledThreadPoolExecutor THREAD = thread();

  interface Message {
    void to(Planner planner) throws Planner.Failed, InterruptedException;
  }

  private Teller() {}

  /** Tells it soon; {@code what} says in the log what could not be told. */
  static void tell(String what, Message message) {
    THREAD.execute(() -> now(what, message));
  }

  /** Tells it on this thread, if there is a planner. */
  static void now(String what, Message message) {
    Planner planner = Shim.planner();
    if (planner != null) {
      now(planner, what, message);
    }
  }

  /** Tells it to a planner on this thread. */
  static void now(Planner planner, String what, Message message) {
    try {
      message.to(planner);
    } catch (Planner.Failed e) {
      LOG.warn("Headgate could not tell the planner {}: {}", what, e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static ScheduledThreadPoolExecutor thread() {
    ScheduledThreadPoolExecutor teller = new ScheduledThreadPoolExecutor(1, daemons("headgate-teller"));
    teller.setRemoveOnCancelPolicy(true);
    return teller;
  }

  /** Makes threads of that name which the end of a JVM does not wait for. */
  static ThreadFactory daemons(String name) {
    return work -> {
      Thread thread = new Thread(work, name);
      thread.setDaemon(true);
      return thread;
    };
  }
}
