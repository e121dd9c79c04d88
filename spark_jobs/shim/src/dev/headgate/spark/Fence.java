package dev.headgate.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.NoSuchFileException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.ShutdownHookManager;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets one run write its checkpoint as long as a file is there: its epoch. {@code headgate_spark.engine.fence} has the protocol, and
 * takes it; here it is looked at before each entry of the offset log and of the commit log, and given back. {@link SignOfLife} answers
 * newcomers meanwhile.
 *
 * <p>Spark writes both logs through a {@code CheckpointFileManager}, which each log has in a field called {@code fileManager} (read in the
 * bytecode of {@code HDFSMetadataLog}, 4.0.5 and 4.3.0: every entry goes through {@code createAtomic}). A stand-in takes its place: by
 * {@code spark.sql.streaming.checkpointFileManagerClass} executors would have to load it, too. A manager that a job has set there writes
 * entries as it likes, after the look.
 *
 * <p>Spark's source of files keeps a third log, in {@code metadataLog}: which files belong to which of its offsets. It writes an entry
 * while it is asked for its latest offset, so before that of the offset log, and ends the query where one is there ({@code
 * FileStreamSource.fetchMaxOffset}). So it is looked at before these as well. They can be as large as all files that were ever read are
 * many, so they are written as Spark does, and not held in memory first. The same holds of the log of its sink of files ({@code fileLog}),
 * which is written at the end of a batch: the driver that runs the batch after us fails where our entry is there ({@code
 * ManifestFileCommitProtocol.commitJob}).
 */
final class Fence {
  private static final Logger LOG = LoggerFactory.getLogger(Fence.class);

  /** How long an answer is trusted; {@code SETTLE_SECONDS} in {@code headgate_spark.engine.fence} is longer than that. */
  private static final long TRUSTED_MILLIS = 1_000;

  private static final String PREFIX = "epoch.";
  private static final String OBSERVERS = "dfs.client.failover.proxy.provider.";
  private static final String OBSERVERS_BEHIND_ROUTERS = "dfs.client.rbf.observer.read.enable";
  private static final Map<String, Fence> HELD = new ConcurrentHashMap<>();

  /** After Spark's own hooks, which are run at 40, and before Hadoop's, which closes its file systems at 10. */
  private static final int AFTER_SPARK = 20;

  /** Together; the hook may take a little longer. */
  private static final long LEAVE_SECONDS = 9;

  private static final String NOT_LEFT = "Headgate could not delete {}: the next driver waits until it takes the checkpoint over ({})";

  static {
    try {
      ShutdownHookManager.get().addShutdownHook(Fence::leaveAll, AFTER_SPARK, LEAVE_SECONDS + 1, TimeUnit.SECONDS);
    } catch (IllegalStateException e) {
      LOG.debug("the JVM is ending already", e);
    }
  }

  /** Of files: entries are as large as all files that were ever read or written are many. */
  private enum Log {
    OFFSETS,
    COMMITS,
    FILES
  }

  private final CheckpointFiles files;
  private final String location;
  private final Path epoch;
  private final String query;
  private final Execution execution;
  private final boolean hasObservers;
  private final SignOfLife sign;
  private volatile String problem;
  private volatile boolean refusesConditionalWrites;
  private volatile boolean over;
  private volatile boolean hasLeft;
  private Long seen;
  private long seenByTheWall;

  private Fence(CheckpointFiles files, String location, String query, Execution execution) {
    this.execution = execution;
    this.files = files;
    this.location = location;
    this.epoch = new Path(location);
    this.query = query;
    this.hasObservers =
        files.settings.getBoolean(OBSERVERS_BEHIND_ROUTERS, false)
            || files.settings.getPropsWithPrefix(OBSERVERS).values().stream().anyMatch(provider -> provider.contains("ObserverRead"));
    this.sign = new SignOfLife(this, epoch);
  }

  /** Puts the fence around the logs of a query's execution. {@code location} is the file by which its checkpoint is held. */
  static Fence around(StreamingQuery run, String query, String location, CheckpointFiles files) {
    Execution execution = new Execution(run);
    Fence fence = new Fence(files, location, query, execution);
    HELD.put(fence.epoch.getName(), fence);
    fence.sign.begin();
    try {
      execution.looksAgainWhereItsLogEnds();
      fence.guard(execution.call("offsetLog"), Log.OFFSETS);
      fence.guard(execution.call("commitLog"), Log.COMMITS);
      for (SparkDataStream source : execution.sources()) {
        SparkDataStream stream = source instanceof Governed governed && governed.handler instanceof Gate gate ? gate.source.stream() : source;
        if (GatedStream.keepsLog(stream)) {
          fence.guard(Execution.field(stream, "metadataLog").get(stream), Log.FILES);
        }
      }
      Object sink = execution.call("sink");
      if (sink.getClass().getSimpleName().equals("FileStreamSink")) {
        fence.guard(Execution.field(sink, "fileLog").get(sink), Log.FILES);
      }
    } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
      fence.isWithout("Headgate cannot look at it before each commit in this version of Spark (" + e + ")", e);
    }
    return fence;
  }

  /** The file by which a run of this driver holds an epoch of this name; null: none does. */
  static String held(String name) {
    Fence fence = HELD.get(name);
    return fence == null ? null : fence.location;
  }

  /**
   * The JVM ends with queries that nobody has stopped, as where a job's main method is over: they write nothing more. All leave at once
   * and within one bound, since many would not in turn, on a store that takes seconds.
   */
  public static void leaveAll() {
    List<Fence> held = List.copyOf(HELD.values());
    held.forEach(fence -> fence.over = true);
    List<Thread> leaving = held.stream().map(fence -> new Thread(fence::leave, "headgate-leave")).toList();
    leaving.forEach(thread -> thread.setDaemon(true));
    leaving.forEach(Thread::start);
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LEAVE_SECONDS);
    try {
      for (Thread thread : leaving) {
        TimeUnit.NANOSECONDS.timedJoin(thread, Math.max(1, until - System.nanoTime()));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    for (Fence fence : held) {
      if (!fence.hasLeft) {
        LOG.warn(NOT_LEFT, fence.epoch, "its store has not answered in " + LEAVE_SECONDS + " s");
      }
    }
  }

  FileSystem files() throws IOException {
    return files.at(epoch);
  }

  /** Why it does not protect as it should, and the remedy; null: it does. */
  String problem() {
    return problem;
  }

  private void isWithout(String why, Throwable cause) {
    problem = String.format("the fence on checkpoint %s of query %s is not whole: %s; see that the checkpoint has one writer", checkpoint(), query, why);
    LOG.warn("{}", problem, cause);
  }

  /** Its store has refused a write that was to fail where the entry is there: none is tried again in this run. */
  void hasNoConditionalWrites(Exception refusal) {
    refusesConditionalWrites = true;
    isWithout("its store refuses conditional writes (" + refusal.getMessage() + "), so a driver that stands still while it writes an entry is not kept off", refusal);
  }

  private void guard(Object log, Log which) throws ReflectiveOperationException {
    Field field = Execution.field(log, "fileManager");
    Object manager = field.get(log);
    boolean mayBeConditional = which != Log.FILES && manager.getClass().getName().startsWith("org.apache.spark.");
    Object guarded =
        StandIn.of(
            manager,
            (method, arguments) -> {
              if (method.getName().equals("exists")) {
                check(); // Spark looks for an entry before it writes it, and ends without our words where another driver has
              }
              if (method.getName().equals("createAtomic")) {
                check();
                Path path = (Path) arguments[0];
                boolean isConditional = mayBeConditional && !refusesConditionalWrites && !(Boolean) arguments[1] && ConditionalEntry.canBeWritten(files(), path);
                ConditionalEntry.Plainly plainly = () -> (java.io.OutputStream) Governed.forward(manager, method, arguments);
                Object entry = isConditional ? ConditionalEntry.create(this, path, method.getReturnType(), plainly) : plainly.open();
                return which == Log.OFFSETS ? PlannedEntry.of(method.getReturnType(), entry, this) : entry;
              }
              return Governed.forward(manager, method, arguments);
            });
    if (guarded == manager) {
      throw new NoSuchFieldException("nothing can stand in for " + manager.getClass().getName());
    }
    field.set(log, guarded);
  }

  /** Throws where it was seen since that another driver has the checkpoint; asks nobody. */
  void requireNotShutOut() {
    if (sign.isShutOut()) {
      throw new FencedException(why());
    }
  }

  /**
   * Ends what the batch that runs still writes: it cannot be committed, and the other driver runs it into the same sink and state.
   *
   * <p>Of a job that was cancelled Spark keeps no more than the words that it was told, so they name the exception, in a line of its own.
   */
  void endBatch() {
    execution.session().sparkContext().cancelJobGroup(execution.query().runId().toString(), "\n" + new FencedException(why()));
  }

  /** Throws where another driver has the checkpoint, or the store does not answer. */
  synchronized void check() throws IOException {
    if (over) {
      throw new IOException("query " + query + " commits nothing more: its driver is ending");
    }
    long now = System.nanoTime();
    long byTheWall = System.currentTimeMillis();
    if (seen != null && isTrusted(now - seen, byTheWall - seenByTheWall)) {
      return;
    }
    if (!isHeld()) {
      throw new FencedException(why());
    }
    seen = now; // when it was asked, not when the answer came
    seenByTheWall = byTheWall;
  }

  /**
   * Whether an answer is good that is so old. By the clock of the wall as well: the other one stands still while a machine is suspended
   * or in hibernation (Linux's {@code CLOCK_MONOTONIC}), which is long enough for another driver to have taken the checkpoint.
   */
  public static boolean isTrusted(long nanos, long millisByTheWall) {
    return nanos < TimeUnit.MILLISECONDS.toNanos(TRUSTED_MILLIS) && millisByTheWall >= 0 && millisByTheWall < TRUSTED_MILLIS;
  }

  /**
   * Whether its epoch is there, asked now; true also where this driver may look there no more: that is no other driver's doing.
   *
   * <p>A name node that only follows (observer reads of HDFS) may not know yet of a file that is there, nor that one is gone; {@code
   * msync} has it catch up, and costs a call. Where it seems gone its folder is listed as well: a local file in a folder that may not
   * be entered is said not to be there.
   */
  boolean isHeld() throws IOException {
    try {
      FileSystem store = files();
      if (hasObservers) {
        CheckpointFiles.catchUp(store);
      }
      if (CheckpointFiles.isThere(store, epoch)) {
        return true;
      }
      CheckpointFiles.catchUp(store);
      return isListed(store);
    } catch (IOException e) {
      if (!isDenied(e)) {
        throw e;
      }
      if (problem == null) {
        isWithout(epoch.getParent() + " may not be read any more (" + e.getMessage() + "); grant that again", e);
      }
      return true;
    }
  }

  private boolean isListed(FileSystem store) throws IOException {
    try {
      return Arrays.stream(store.listStatus(epoch.getParent())).anyMatch(status -> status.getPath().getName().equals(epoch.getName()));
    } catch (FileNotFoundException | NoSuchFileException e) {
      return false;
    }
  }

  private static boolean isDenied(IOException e) {
    return e instanceof org.apache.hadoop.security.AccessControlException
        || e instanceof java.nio.file.AccessDeniedException
        || String.valueOf(e.getMessage()).contains("Permission denied");
  }

  private String checkpoint() {
    return epoch.getParent().toString().replaceAll("\\.headgate$", "");
  }

  private String why() {
    String other = other();
    return other == null
        ? String.format(
            "query %s commits nothing more to its checkpoint %s: %s, by which it held it, is gone. Another driver had the checkpoint "
                + "meanwhile, or somebody has deleted the file; see that no other driver writes there, and start this one again",
            query, checkpoint(), epoch)
        : String.format(
            "query %s commits nothing more to its checkpoint %s: %s has taken it over; stop one of the two, or give it another "
                + "checkpoint",
            query, checkpoint(), other);
  }

  /** Who has the checkpoint now; null where nobody has. */
  private String other() {
    try {
      var latest =
          Arrays.stream(files().listStatus(epoch.getParent()))
              .map(FileStatus::getPath)
              .filter(path -> path.getName().startsWith(PREFIX) && path.getName().split("\\.").length == 3)
              .max(Comparator.comparingLong(path -> Long.parseLong(path.getName().split("\\.")[1])));
      if (latest.isEmpty()) {
        return null;
      }
      try (var text = files().open(latest.get())) {
        return Origin.JSON.readTree((java.io.InputStream) text).path("who").asText("another driver");
      }
    } catch (FileNotFoundException | NoSuchFileException e) {
      return null;
    } catch (IOException | RuntimeException e) {
      LOG.debug("it cannot be told who has the checkpoint of {}", query, e);
      return "another driver";
    }
  }

  /** Gives the checkpoint back: the next run takes it at once. */
  void leave() {
    over = true;
    HELD.remove(epoch.getName());
    sign.ends(); // first: an epoch that cannot be deleted is of nobody who answers
    try {
      files().delete(epoch, false);
      sign.delete();
    } catch (IOException | RuntimeException e) {
      LOG.warn(NOT_LEFT, epoch, e.toString(), e);
    }
    hasLeft = true;
  }
}
