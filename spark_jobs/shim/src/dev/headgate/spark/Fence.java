package dev.headgate.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets one run write its checkpoint as long as a file is there: its epoch. {@code headgate_spark.engine.fence} has the protocol, and
 * takes it; here it is looked at before each entry of the offset log and of the commit log, and given back.
 *
 * <p>Spark writes both logs through a {@code CheckpointFileManager}, an interface that has moved between versions; each log has one of
 * its own, in a field called {@code fileManager} (read in the bytecode of {@code HDFSMetadataLog}, 4.0.5 and 4.3.0: every entry goes
 * through {@code createAtomic}). A stand-in takes its place. Spark's own setting for that, {@code
 * spark.sql.streaming.checkpointFileManagerClass}, would have executors load the class as well, for the state; they need nothing of
 * ours.
 */
final class Fence {
  private static final Logger LOG = LoggerFactory.getLogger(Fence.class);

  /** How long an answer is trusted; {@code SETTLE_SECONDS} in {@code headgate_spark.engine.fence} is longer than that. */
  private static final long TRUSTED_NANOS = 1_000_000_000L;

  private static final String PREFIX = "epoch.";
  private static final Set<String> HELD = ConcurrentHashMap.newKeySet();

  private final Configuration conf;
  private final Path epoch;
  private final String query;
  private long seen;

  private Fence(Configuration conf, Path epoch, String query) {
    this.conf = conf;
    this.epoch = epoch;
    this.query = query;
    this.seen = System.nanoTime() - TRUSTED_NANOS;
  }

  /** Puts the fence around the logs of a query's execution. {@code location} is the file by which its checkpoint is held. */
  static Fence around(Object execution, String query, String location, Configuration conf) throws IOException {
    Path epoch = new Path(location);
    Fence fence = new Fence(conf, epoch, query);
    HELD.add(epoch.getName());
    try {
      for (String log : new String[] {"offsetLog", "commitLog"}) {
        fence.guard(execution.getClass().getMethod(log).invoke(execution));
      }
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.warn("Headgate cannot look at the fence of {} before each commit: see that its checkpoint has one writer", query, e);
    }
    return fence;
  }

  /** Whether a run of this driver holds an epoch of this name. */
  static boolean holds(String name) {
    return HELD.contains(name);
  }

  /** A job may close the one that all of a JVM share; then this is another one, else it is looked up in a map. */
  private FileSystem files() throws IOException {
    return epoch.getFileSystem(conf);
  }

  private void guard(Object log) throws ReflectiveOperationException {
    Field field = managerOf(log.getClass());
    field.setAccessible(true);
    Object manager = field.get(log);
    Object guarded =
        StandIn.of(
            manager,
            (method, arguments) -> {
              if (method.getName().equals("exists")) {
                check(); // Spark looks for an entry before it writes it, and ends without our words where another driver has
              }
              if (method.getName().equals("createAtomic")) {
                check();
                Path entry = (Path) arguments[0];
                if (!(Boolean) arguments[1] && ConditionalEntry.canBeWritten(files(), entry)) {
                  return ConditionalEntry.create(files(), entry, method.getReturnType());
                }
              }
              return Governed.forward(manager, method, arguments);
            });
    if (guarded == manager) {
      throw new NoSuchFieldException("nothing can stand in for " + manager.getClass().getName());
    }
    field.set(log, guarded);
  }

  private static Field managerOf(Class<?> type) throws NoSuchFieldException {
    for (Class<?> c = type; c != null; c = c.getSuperclass()) {
      var found = Arrays.stream(c.getDeclaredFields()).filter(field -> field.getName().equals("fileManager")).findFirst();
      if (found.isPresent()) {
        return found.get();
      }
    }
    throw new NoSuchFieldException("fileManager of " + type.getName());
  }

  /** Throws where another driver has the checkpoint, or nobody can tell. */
  private synchronized void check() throws IOException {
    long now = System.nanoTime();
    if (now - seen < TRUSTED_NANOS) {
      return;
    }
    try {
      files().getFileStatus(epoch);
    } catch (FileNotFoundException e) {
      throw new FencedException(why());
    }
    seen = now; // when it was asked, not when the answer came
  }

  private String why() {
    String checkpoint = epoch.getParent().toString().replaceAll("\\.headgate$", "");
    String other = other();
    return other == null
        ? String.format(
            "query %s commits nothing more to its checkpoint %s: %s, by which it held it, is gone. Another driver had the checkpoint "
                + "meanwhile, or somebody has deleted the file; see that no other driver writes there, and start this one again",
            query, checkpoint, epoch)
        : String.format(
            "query %s commits nothing more to its checkpoint %s: %s has taken it over; stop one of the two, or give it another "
                + "checkpoint",
            query, checkpoint, other);
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
        return new ObjectMapper().readTree((java.io.InputStream) text).path("who").asText("another driver");
      }
    } catch (IOException | RuntimeException e) {
      LOG.debug("it cannot be told who has the checkpoint of {}", query, e);
      return "another driver";
    }
  }

  /** Gives the checkpoint back: the next run takes it at once. */
  void leave() {
    HELD.remove(epoch.getName());
    try {
      files().delete(epoch, false);
    } catch (IOException | RuntimeException e) {
      LOG.warn("Headgate could not delete {}: the next driver waits until it takes the checkpoint over", epoch, e);
    }
  }
}
