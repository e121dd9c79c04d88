package dev.headgate.spark;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The condition on which {@code processAllAvailable} waits: Spark's own, but a held trigger does not end the wait.
 *
 * <p>Spark sets {@code noNewData} after each trigger without a batch and signals at once, under the lock of the waiting threads (read in
 * the bytecode of {@code MicroBatchExecution.constructNextBatch}, 4.0 to 4.3). A trigger that was held looks to it like one that found
 * nothing. So that word is taken back, before anyone can read it, until each stream had nothing unread once since the last thread came.
 */
final class AllAvailable {
  private static final Logger LOG = LoggerFactory.getLogger(AllAvailable.class);

  private final RunningQuery query;
  private final Execution execution;
  private final ReentrantLock lock;
  private final Condition spark;
  private final Thread thread = Thread.currentThread();
  private final Set<Thread> waiting = new HashSet<>(); // this and `since` are guarded by the lock, which whoever waits or signals holds
  private long since = System.nanoTime(); // who waits already waits on Spark's own, where it is woken as well

  private AllAvailable(RunningQuery query, Execution execution) {
    this.query = query;
    this.execution = execution;
    this.lock = (ReentrantLock) execution.call("awaitProgressLock");
    this.spark = (Condition) execution.call("awaitProgressLockCondition");
  }

  /** Puts it in the place of Spark's; called on the query's thread. */
  static void install(RunningQuery query) {
    Execution execution = query.realTime.execution;
    try {
      var ours = new AllAvailable(query, execution);
      Object standIn = Proxy.newProxyInstance(Condition.class.getClassLoader(), new Class<?>[] {Condition.class}, (proxy, method, arguments) -> ours.call(method, arguments));
      execution.set("awaitProgressLockCondition", standIn);
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.warn("Headgate cannot have processAllAvailable of {} wait for held sources; it returns before all is read", Thread.currentThread().getName(), e);
    }
  }

  private Object call(Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("signalAll")) {
      takeBackUnlessAllIsRead();
    }
    boolean waits = method.getName().equals("await") && arguments != null; // as `processAllAvailable` does, again and again
    if (waits && waiting.add(Thread.currentThread())) {
      since = System.nanoTime();
    }
    try {
      return Governed.forward(spark, method, arguments);
    } catch (InterruptedException e) {
      waiting.remove(Thread.currentThread());
      throw e;
    }
  }

  private void takeBackUnlessAllIsRead() {
    if (Thread.currentThread() != thread || !lock.hasWaiters(spark) || !(boolean) execution.call("noNewData")) {
      return;
    }
    if (Shim.gates().stream().allMatch(gate -> gate.query != query || gate.wasReadSince(since))) {
      waiting.clear();
      return;
    }
    try {
      execution.set("noNewData", false);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Headgate does not know this version of Spark", e);
    }
  }
}
