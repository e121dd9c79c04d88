package dev.headgate.spark;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.attribute.FileTime;
import java.security.PrivilegedExceptionAction;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers newcomers at a checkpoint that its driver runs: an empty file beside the epoch, which a newcomer deletes and which is then
 * written anew. {@code headgate_spark.engine.fence} has the protocol.
 *
 * <p>A timer of the JVM looks for it, so that no long batch, idle topic or planner that is gone keeps it from answering. What is
 * looked for is there as long as nobody asks: on S3A that is one {@code HEAD}, where a file that is not there costs a {@code LIST}
 * as well. Each looks on a thread of a pool, so that one store which hangs keeps no other query from answering, and as the user that
 * the query runs as.
 */
final class SignOfLife {
  private static final Logger LOG = LoggerFactory.getLogger(SignOfLife.class);

  /** {@code ANSWER_SECONDS} in {@code headgate_spark.engine.fence}; a newcomer waits several times that long. */
  private static final long LOOK_SECONDS = 5;

  /** Looks between two moments at which local files are touched: an hour. */
  private static final int LOOKS_UNTOUCHED = 720;

  private static final ThreadFactory DAEMONS = Teller.daemons("headgate-sign-of-life");
  private static final ScheduledExecutorService TIMER = Executors.newSingleThreadScheduledExecutor(DAEMONS);
  private static final ExecutorService POOL = Executors.newCachedThreadPool(DAEMONS);

  private final Fence fence;
  private final Path epoch;
  private final Path sign;
  private final AtomicBoolean looks = new AtomicBoolean();
  private volatile boolean ended;
  private volatile boolean shutOut;
  private int untouched;
  private UserGroupInformation user;
  private Future<?> timer;

  SignOfLife(Fence fence, Path epoch) {
    this.fence = fence;
    this.epoch = epoch;
    this.sign = new Path(epoch.getParent(), epoch.getName().replaceFirst("epoch", "sign"));
  }

  void begin() {
    try {
      user = UserGroupInformation.getCurrentUser();
    } catch (IOException e) {
      LOG.debug("the user of this thread is not known", e);
    }
    timer = TIMER.scheduleWithFixedDelay(this::look, 0, LOOK_SECONDS, TimeUnit.SECONDS);
  }

  private void look() {
    if (!looks.compareAndSet(false, true)) {
      return;
    }
    try {
      POOL.execute(
          () -> {
            try {
              if (user == null) {
                answer();
              } else {
                user.doAs((PrivilegedExceptionAction<Void>) this::answer);
              }
            } catch (IOException | InterruptedException | RuntimeException e) {
              LOG.debug("{} cannot be looked for or written; a newcomer that asks gets no answer", sign, e);
            } finally {
              looks.set(false);
            }
          });
    } catch (RuntimeException | OutOfMemoryError e) { // no thread is to be had just now; what is thrown here would end the timer
      looks.set(false);
      LOG.debug("{} is not looked for", sign, e);
    }
  }

  /** Writes the sign where it is not there and the epoch is; who was shut out meanwhile leaves none, and ends what it runs. */
  private Void answer() throws IOException {
    FileSystem store = fence.files();
    if (++untouched >= LOOKS_UNTOUCHED && store.getUri().getScheme().equals("file")) {
      untouched = 0;
      touch(epoch.toUri().getPath());
    }
    if (ended || !shutOut && CheckpointFiles.isThere(store, sign)) {
      return null;
    }
    shutOut = shutOut || !fence.isHeld(); // for ever, so it is asked as carefully as before a commit
    if (shutOut) {
      fence.endBatch(); // each time, until its query has ended: a batch may have several jobs, and a job of its own may try again
      return null;
    }
    store.create(sign, true).close();
    if (ended || !fence.isHeld()) {
      store.delete(sign, false);
    }
    return null;
  }

  /**
   * Makes a local epoch, and the lock on the checkpoint, as young as what is written just now; what is gone stays so.
   *
   * <p>Neither is written or read as long as a run lasts, and who cleans temporary folders goes by age (systemd-tmpfiles: ten days in
   * {@code /tmp}): without its epoch a run would end, and without that name of the lock another one could have it, too.
   */
  public static void touch(String epoch) {
    for (String name : List.of(new File(epoch).getName(), "lock")) {
      try {
        Files.setLastModifiedTime(new File(epoch).toPath().resolveSibling(name), FileTime.from(Instant.now()));
      } catch (IOException | InvalidPathException e) {
        LOG.debug("{} beside {} was not touched", name, epoch, e);
      }
    }
  }

  /** Whether it was seen that another driver has the checkpoint. */
  boolean isShutOut() {
    return shutOut && !ended;
  }

  /** Nobody is answered any more. */
  void ends() {
    ended = true;
    timer.cancel(false);
  }

  /** The epoch is gone. */
  void delete() throws IOException {
    fence.files().delete(sign, false);
  }
}
