package dev.headgate.spark;

import java.io.IOException;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The one door between Python and the governed streams of this driver.
 *
 * <p>Static, because the two sides meet by nothing but this class's name: Spark creates streams on threads of its own, long
 * before or after a planner exists. With no planner registered, every stream behaves as if the extension were not there.
 */
public final class Shim {
  /** Raised with each change of {@link Planner}'s words that the other side must know of, here and in its {@code PROTOCOL}. */
  private static final int PROTOCOL = 15;

  private static final AtomicLong HANDLES = new AtomicLong();
  private static final Object RECALL = new Object();
  private static final Map<String, String[]> DECODERS = new ConcurrentHashMap<>();
  private static final Map<String, Gate> OPEN = new ConcurrentHashMap<>();

  private static volatile Planner planner;
  private static volatile long recalls;
  private static volatile long callBudgetMillis = Long.getLong("headgate.planner.callBudgetMillis", 5_000);
  private static volatile long patienceMillis = Long.getLong("headgate.planner.patienceMillis", 60_000);

  private Shim() {}

  /** Which form of {@link Planner}'s words is spoken here; whoever registers a planner compares it with its own. */
  public static int protocol() {
    return PROTOCOL;
  }

  /** Puts a planner in charge of all streams, running ones included; null lets them run plainly again. */
  static void register(Planner next) {
    planner = next;
    recall();
  }

  /** The same for one that serves at a port of this machine; 0 lets streams run plainly again. */
  public static void connect(int port, String token) {
    QueryEvents.of(PlannerProcess.context());
    register(port == 0 ? null : new Planner(new Link.Address(port, token)));
  }

  /** Gives the planner the decoder of a source, and each planner after it; it cannot load every one. */
  public static void decoder(String source, String decoder, String path) throws Exception {
    DECODERS.put(source, new String[] {decoder, path});
    Planner now = planner;
    if (now != null) {
      now.decoder(source, decoder, path);
    }
  }

  static Map<String, String[]> decoders() {
    return DECODERS;
  }

  /** Waits, not for longer than that, until the planner has been told of all that has happened to queries so far. */
  public static void settle(long millis) throws Exception {
    var context = org.apache.spark.SparkContext$.MODULE$.getActive();
    if (!context.isEmpty()) {
      context.get().listenerBus().waitUntilEmpty(millis);
    }
    Teller.THREAD.submit(() -> {}).get(millis, TimeUnit.MILLISECONDS);
  }

  /** The runs, by id and with commas between them, that a planner is asked about as long as they last. */
  public static String running() {
    return String.join(",", RunningQuery.planned());
  }

  /** Stops a query as the job itself would; nothing where it runs no more. */
  public static void stop(String runId) throws Exception {
    RunningQuery query = RunningQuery.run(runId);
    if (query != null) {
      query.stop();
    }
  }

  /** Ends every lease: the planner was told something, and may answer otherwise from now on. */
  public static void recall() {
    synchronized (RECALL) {
      recalls++;
      RECALL.notifyAll();
    }
  }

  /**
   * Bounds what a planner may cost a query.
   *
   * @param callBudget milliseconds after which a call counts as failed
   * @param patience milliseconds of uninterrupted failure during which the stream is held; then its query fails
   */
  public static void setPatience(long callBudget, long patience) {
    callBudgetMillis = callBudget;
    patienceMillis = patience;
  }

  static Planner planner() {
    return planner;
  }

  static long recalls() {
    return recalls;
  }

  /** Waits at most so long; returns whether leases were recalled since their count was {@code before}. */
  static boolean awaitRecall(long before, long millis) throws InterruptedException {
    synchronized (RECALL) {
      if (recalls == before) {
        RECALL.wait(millis);
      }
      return recalls != before;
    }
  }

  static long callBudgetMillis() {
    return callBudgetMillis;
  }

  static long patienceMillis() {
    return patienceMillis;
  }

  /** Bytes of the files in the batch that a stream gave last, by its handle; -1 where it has no files, or gave none. */
  public static long fileBytes(String handle) {
    Gate gate = gate(handle);
    return gate == null ? -1 : gate.source.fileBytes();
  }

  /** The file by which a run of this driver holds its checkpoint, if it is an epoch of this name; null: none does. */
  public static String held(String epoch) {
    return Fence.held(epoch);
  }

  /** The file system of a path, by the settings of the session that a run of a query is in. */
  public static FileSystem files(String runId, Path path) throws IOException {
    RunningQuery query = RunningQuery.run(runId);
    return query == null ? path.getFileSystem(PlannerProcess.context().hadoopConfiguration()) : query.files.at(path);
  }

  static long open(Gate gate) {
    OPEN.values().stream().filter(Gate::isOrphan).forEach(Gate::close);
    long handle = HANDLES.incrementAndGet();
    OPEN.put(Long.toString(handle), gate);
    return handle;
  }

  /** The gate that a planner calls by this handle, or null if it calls it wrongly or the stream is gone. */
  static Gate gate(String handle) {
    return OPEN.get(handle.trim());
  }

  static Collection<Gate> gates() {
    return OPEN.values();
  }

  static void close(long handle) {
    OPEN.remove(Long.toString(handle));
  }
}
