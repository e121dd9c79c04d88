package dev.headgate.tests;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.util.Progressable;

/**
 * This machine's files as a store that is not this machine's: {@code faulty:/path}.
 *
 * <p>Settings, below {@code fs.faulty.}:
 *
 * <ul>
 *   <li>{@code put-if-absent} (true): of two that publish one name the second fails, as on HDFS and ABFS. Else the last one wins, as
 *       where a rename looks first and copies then
 *   <li>{@code conditional-writes} (false): {@code createFile} takes "only if it is absent", as S3A does, also where renames replace
 *   <li>{@code conditional-answer}: what becomes of such a write at its end. {@code 501}: the store knows none. {@code lost}: it is carried
 *       out, the answer is lost, and the client's next try finds its own entry there
 *   <li>{@code allowed}: this folder and what is in it alone may be touched, all others are refused (403)
 *   <li>{@code room}: bytes that this process may write to it; then the disk is full
 *   <li>{@code full}: a folder in which it is full from the start
 *   <li>{@code journal}: a file of this machine to which a line is added for each file that is published: {@code name}, folder and file
 *   <li>{@code pauses}: a folder of this machine. Whoever is about to publish {@code offsets/7} there while it has a file {@code
 *       offsets.7} renames that to {@code offsets.7.reached} and goes on when that is gone
 *   <li>{@code meeting}: so many epochs are to be under way at once before one of them is deleted; without them that fails
 *   <li>{@code weather}: a file of this machine, looked at before each write. While it says {@code full} the disk is; with {@code slow
 *       200} it takes so many milliseconds to make a file, and as many to publish it
 *   <li>{@code requests}: a file of this machine to which a line is added for each status, list, open, delete and msync: which of these, and
 *       of which file
 *   <li>{@code latency} (0): milliseconds that each request takes, as to a store far away: a status, a list, a delete, to open, to end
 *       what is written, and a rename, which is two where it replaces (a copy and a delete). Such a store has neither links nor modes
 * </ul>
 */
public class FaultyFileSystem extends RawLocalFileSystem {
  private static final URI ROOT = URI.create("faulty:///");
  private static final AtomicLong WRITTEN = new AtomicLong();
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
  private static final long LOOK_MILLIS = 10;
  private static final long MEETING_SECONDS = 5;
  private static final Map<Integer, CountDownLatch> MEETINGS = new ConcurrentHashMap<>();

  private boolean putIfAbsent;
  private boolean conditionalWrites;
  private String conditionalAnswer;
  private String allowed;
  private long room;
  private String full;
  private String journal;
  private String name;
  private String pauses;
  private String weather;
  private String requests;
  private long latency;
  private int meeting;

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(ROOT, conf);
    setConf(conf);
    putIfAbsent = conf.getBoolean("fs.faulty.put-if-absent", true);
    conditionalWrites = conf.getBoolean("fs.faulty.conditional-writes", false);
    conditionalAnswer = conf.get("fs.faulty.conditional-answer", "");
    allowed = conf.get("fs.faulty.allowed", "");
    room = conf.getLong("fs.faulty.room", Long.MAX_VALUE);
    full = conf.get("fs.faulty.full");
    journal = conf.get("fs.faulty.journal");
    name = conf.get("fs.faulty.name", "somebody");
    pauses = conf.get("fs.faulty.pauses");
    weather = conf.get("fs.faulty.weather");
    requests = conf.get("fs.faulty.requests");
    latency = conf.getLong("fs.faulty.latency", 0);
    meeting = conf.getInt("fs.faulty.meeting", 0);
  }

  @Override
  public URI getUri() {
    return ROOT;
  }

  /** As that of HDFS, for a client that reads from name nodes which only follow. */
  @Override
  public void msync() throws IOException {
    requested("msync", new Path("/"));
  }

  @Override
  public String getScheme() {
    return "faulty";
  }

  private Path permitted(Path path) throws AccessControlException {
    String name = path.toUri().getPath();
    if (!allowed.isEmpty() && !name.equals(allowed) && !name.startsWith(allowed + "/")) {
      throw new AccessControlException(path + ": 403 Forbidden");
    }
    return path;
  }

  private void requested(String what, Path path) throws IOException {
    if (requests != null) {
      Files.writeString(java.nio.file.Path.of(requests), what + " " + path.toUri().getPath() + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
    requested(1);
  }

  private void requested(int times) throws IOException {
    sleep(times * latency);
  }

  private static void sleep(long millis) throws IOException {
    if (millis > 0) {
      try {
        Thread.sleep(millis);
      } catch (InterruptedException e) {
        throw new java.io.InterruptedIOException();
      }
    }
  }

  @Override
  public FileStatus getFileLinkStatus(Path path) throws IOException {
    return latency > 0 ? getFileStatus(path) : super.getFileLinkStatus(path);
  }

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    if (latency == 0) {
      super.setPermission(path, permission);
    }
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    requested("status", path);
    return super.getFileStatus(permitted(path));
  }

  @Override
  public FileStatus[] listStatus(Path path) throws IOException {
    requested("list", path);
    return super.listStatus(permitted(path));
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    requested("open", path);
    return super.open(permitted(path), bufferSize);
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    requested("delete", path);
    if (meeting > 0 && path.getName().startsWith("epoch.")) {
      meet();
    }
    return super.delete(permitted(path), recursive);
  }

  @Override
  public FSDataOutputStream create(
      Path path, FsPermission permission, boolean overwrite, int bufferSize, short replication, long blockSize, Progressable progress)
      throws IOException {
    return limited(path, super.create(permitted(path), permission, overwrite, bufferSize, replication, blockSize, progress));
  }

  @Override
  public FSDataOutputStream create(Path path, boolean overwrite, int bufferSize, short replication, long blockSize, Progressable progress)
      throws IOException {
    return limited(path, super.create(permitted(path), overwrite, bufferSize, replication, blockSize, progress));
  }

  private void meet() throws IOException {
    CountDownLatch others = MEETINGS.computeIfAbsent(meeting, CountDownLatch::new);
    others.countDown();
    try {
      if (!others.await(MEETING_SECONDS, TimeUnit.SECONDS)) {
        throw new IOException("nobody else deletes an epoch");
      }
    } catch (InterruptedException e) {
      throw new java.io.InterruptedIOException();
    }
  }

  private FSDataOutputStream limited(Path path, FSDataOutputStream stream) throws IOException {
    endure();
    boolean isFull = full != null && path.getParent().toUri().getPath().equals(full);
    OutputStream out =
        new FilterOutputStream(stream) {
          private boolean isClosed;

          @Override
          public void write(byte[] bytes, int offset, int length) throws IOException {
            takeRoom(isFull ? Long.MAX_VALUE / 2 : length);
            out.write(bytes, offset, length);
          }

          @Override
          public void write(int b) throws IOException {
            takeRoom(isFull ? Long.MAX_VALUE / 2 : 1);
            out.write(b);
          }

          @Override
          public void close() throws IOException {
            requested(isClosed ? 0 : 1);
            isClosed = true;
            super.close();
          }
        };
    return new FSDataOutputStream(out, null);
  }

  private String weather() throws IOException {
    try {
      return weather == null ? "" : Files.readString(java.nio.file.Path.of(weather)).strip();
    } catch (java.nio.file.NoSuchFileException e) {
      return "";
    }
  }

  private void endure() throws IOException {
    String now = weather();
    if (now.startsWith("slow ")) {
      sleep(Long.parseLong(now.substring("slow ".length())));
    }
  }

  private void takeRoom(long bytes) throws IOException {
    if (weather().equals("full") || bytes >= Long.MAX_VALUE / 2 || WRITTEN.addAndGet(bytes) > room) {
      throw new IOException("No space left on device");
    }
  }

  @Override
  public boolean rename(Path source, Path target) throws IOException {
    requested(putIfAbsent ? 1 : 2);
    return published(source, target, !putIfAbsent);
  }

  @Override
  @SuppressWarnings("deprecation")
  protected void rename(Path source, Path target, Options.Rename... options) throws IOException {
    boolean replaces = options.length > 0 && options[0] == Options.Rename.OVERWRITE;
    requested(putIfAbsent && !replaces ? 1 : 2);
    if (!replaces && !putIfAbsent && exists(target)) { // a look, and then a copy: of two both may have looked
      throw new org.apache.hadoop.fs.FileAlreadyExistsException(target.toString());
    }
    if (!published(source, target, replaces || !putIfAbsent)) {
      throw new org.apache.hadoop.fs.FileAlreadyExistsException(target.toString());
    }
  }

  private boolean published(Path source, Path target, boolean replaces) throws IOException {
    awaitTurn(permitted(target));
    java.nio.file.Path from = pathToFile(permitted(source)).toPath();
    java.nio.file.Path to = pathToFile(target).toPath();
    if (replaces) {
      java.nio.file.Path copy = to.resolveSibling("." + to.getFileName() + "." + UUID.randomUUID());
      Files.copy(from, copy);
      Files.move(copy, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } else {
      try {
        Files.createLink(to, from);
      } catch (FileAlreadyExistsException e) {
        return false;
      }
    }
    Files.delete(from);
    if (journal != null) {
      String line = name + " " + target.getParent().getName() + " " + target.getName() + "\n";
      Files.writeString(java.nio.file.Path.of(journal), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
    return true;
  }

  @Override
  public boolean hasPathCapability(Path path, String capability) throws IOException {
    return CONDITIONAL.equals(capability) ? conditionalWrites : super.hasPathCapability(path, capability);
  }

  @Override
  public FSDataOutputStreamBuilder<FSDataOutputStream, ?> createFile(Path path) {
    return new Builder(this, path);
  }

  /** Publishes at its end what was written. */
  private final class Builder extends FSDataOutputStreamBuilder<FSDataOutputStream, Builder> {
    private final Path path;

    Builder(FaultyFileSystem files, Path path) {
      super(files, path);
      this.path = path;
    }

    @Override
    public Builder getThisBuilder() {
      return this;
    }

    @Override
    public FSDataOutputStream build() throws IOException {
      if (!conditionalWrites || !getMandatoryKeys().contains(CONDITIONAL)) {
        throw new UnsupportedOperationException("only conditional writes");
      }
      Path unfinished = new Path(path.getParent(), "." + path.getName() + "." + UUID.randomUUID());
      FSDataOutputStream stream = FaultyFileSystem.this.create(unfinished, false);
      OutputStream publishes =
          new FilterOutputStream(stream) {
            private boolean isClosed;

            @Override
            public void close() throws IOException {
              if (!isClosed) {
                isClosed = true;
                super.close();
                if (conditionalAnswer.equals("501")) {
                  throw new AWSUnsupportedFeatureException("501 A header you provided implies functionality that is not implemented");
                }
                if (!published(unfinished, path, false) || conditionalAnswer.equals("lost")) {
                  throw new org.apache.hadoop.fs.FileAlreadyExistsException(path.toString());
                }
              }
            }
          };
      return new FSDataOutputStream(publishes, null);
    }
  }

  private void awaitTurn(Path target) throws IOException {
    endure();
    if (pauses == null) {
      return;
    }
    pause(java.nio.file.Path.of(pauses, target.getParent().getName() + "." + target.getName()));
  }

  /** The same in a task, by {@code java_method}: at this file. */
  public static String pausesAt(String file) throws IOException {
    pause(java.nio.file.Path.of(file));
    return file;
  }

  private static void pause(java.nio.file.Path pause) throws IOException {
    java.nio.file.Path reached = pause.resolveSibling(pause.getFileName() + ".reached");
    try {
      Files.move(pause, reached);
    } catch (java.nio.file.NoSuchFileException e) {
      return;
    }
    try {
      while (Files.exists(reached)) {
        Thread.sleep(LOOK_MILLIS);
      }
    } catch (InterruptedException e) {
      throw new java.io.InterruptedIOException();
    }
  }
}
