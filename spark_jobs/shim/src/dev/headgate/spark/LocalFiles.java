package dev.headgate.spark;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.util.Arrays;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.AbstractFileSystem;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.local.LocalFs;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.nativeio.NativeIO;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What this JVM writes local files by: Hadoop's, without child processes.
 *
 * <p>Where Hadoop's native library is not loaded (no PySpark brings it), {@code RawLocalFileSystem} starts {@code chmod} for each file
 * and directory that it makes, and {@code readlink} for both ends of each rename: ten processes for an empty batch. Here the same is
 * asked of the JVM. All else is inherited: names, {@code .crc} files, umask, how an entry is renamed and refused where it is there
 * (a look, then {@code rename(2)}), and that nothing is synced to the disk (read in the bytecode of {@code LocalFs}, {@code
 * DelegateToFileSystem} and {@code RawLocalFileSystem}, Hadoop 3.4.1 to 3.5.0). So Spark reads with either what it wrote with the other.
 *
 * <p>Hadoop has two ways to files. A {@code FileContext}, and with it Spark's own manager of checkpoints, makes its file systems by
 * a table of constructors that {@code AbstractFileSystem} keeps for this JVM: there it takes the place of {@code LocalFs}, Hadoop's
 * default for {@code file:}. A {@code FileSystem}, by which stores of RocksDB copy their files ({@code RocksDBFileManager}, Spark 4.0
 * to 4.3), is one for all of this JVM and user, made before us: there the {@code RawLocalFileSystem} below it is replaced. By properties
 * ({@code fs.file.impl}, {@code fs.AbstractFileSystem.file.impl}, Spark's {@code checkpointFileManagerClass}) executors would have to
 * load it as well, and have none of our classes.
 */
public final class LocalFiles extends ChecksumFs {
  private static final Logger LOG = LoggerFactory.getLogger(LocalFiles.class);
  private static final String WANTED = PlannerProcess.PROPERTIES + "localFiles";
  private static final String[] IMPLEMENTATIONS = {"fs.AbstractFileSystem.file.impl", "fs.file.impl"};
  private static final String OWN_MANAGER = "spark.sql.streaming.checkpointFileManagerClass";

  /** Called by Hadoop, as that of {@code LocalFs}. */
  public LocalFiles(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(new Raw(conf));
  }

  /** Puts it in place for all of this JVM, or takes it away where the context of now is not to have it. */
  public static void install(SparkConf spark, Configuration hadoop) {
    try {
      Field field = AbstractFileSystem.class.getDeclaredField("CONSTRUCTOR_CACHE");
      field.setAccessible(true);
      @SuppressWarnings("unchecked")
      var constructors = (Map<Class<?>, Constructor<?>>) field.get(null);
      Constructor<?> ours = LocalFiles.class.getConstructor(URI.class, Configuration.class);
      if (isWanted(spark, hadoop)) {
        constructors.put(LocalFs.class, ours);
        replace(RawLocalFileSystem.class, new Forkless(), hadoop);
      } else {
        constructors.remove(LocalFs.class, ours);
        replace(Forkless.class, new RawLocalFileSystem(), hadoop);
      }
    } catch (ReflectiveOperationException | IOException | RuntimeException e) {
      LOG.info("Headgate does not know this version of Hadoop: local checkpoints are written as without it, by child processes", e);
    }
  }

  /** Of the file system that all share (Hive's {@code ProxyLocalFileSystem} where its jar is there); another class below it is somebody's choice. */
  private static void replace(Class<?> there, RawLocalFileSystem other, Configuration hadoop) throws ReflectiveOperationException, IOException {
    if (FileSystem.get(FsConstants.LOCAL_FS_URI, hadoop) instanceof LocalFileSystem shared
        && shared.getRawFileSystem().getClass() == there) {
      Field below = FilterFileSystem.class.getDeclaredField("fs");
      below.setAccessible(true);
      other.initialize(FsConstants.LOCAL_FS_URI, shared.getConf());
      other.setWorkingDirectory(shared.getWorkingDirectory());
      below.set(shared, other);
    }
  }

  /** Not where somebody has said by what else local files are written, or Hadoop does without processes itself. */
  private static boolean isWanted(SparkConf spark, Configuration hadoop) {
    return spark.getBoolean(PlannerProcess.ENABLED, true)
        && spark.getBoolean(WANTED, true)
        && !spark.contains(OWN_MANAGER)
        && !NativeIO.isAvailable()
        && isHadoopsDefault(hadoop);
  }

  private static boolean isHadoopsDefault(Configuration hadoop) {
    return Arrays.stream(IMPLEMENTATIONS)
        .map(hadoop::getPropertySources)
        .allMatch(said -> said == null || Arrays.stream(said).allMatch("core-default.xml"::equals));
  }

  /** As {@code RawLocalFs}, which cannot be extended. */
  private static final class Raw extends DelegateToFileSystem {
    Raw(Configuration conf) throws IOException, URISyntaxException {
      super(FsConstants.LOCAL_FS_URI, new Forkless(), conf, FsConstants.LOCAL_FS_URI.getScheme(), false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }

    @Override
    public FsServerDefaults getServerDefaults(Path path) throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    @Deprecated
    public FsServerDefaults getServerDefaults() throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    public boolean isValidName(String name) {
      return true;
    }
  }

  /** Hadoop's local file system, but for what it starts programs for. */
  static final class Forkless extends RawLocalFileSystem {
    private static final String MODE = "unix:mode";
    private static final int SET_IDS = 06000;

    /**
     * As {@code chmod} of coreutils does: of a directory the bits stay by which what is made in it has its group, as volumes of Kubernetes
     * with an {@code fsGroup} have them. {@code PosixFilePermission} knows no such bits and would take them away.
     */
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      try {
        java.nio.file.Path file = pathToFile(path).toPath();
        int kept = Files.isDirectory(file) ? (Integer) Files.getAttribute(file, MODE) & SET_IDS : 0;
        Files.setAttribute(file, MODE, permission.toShort() | kept);
      } catch (UnsupportedOperationException | IllegalArgumentException e) { // no attribute of this JVM, or of these files, or no such name in its locale
        super.setPermission(path, permission);
      }
    }

    /** Only of a link there is more to be told than of the file. */
    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      try {
        if (!Files.isSymbolicLink(pathToFile(path).toPath())) {
          return getFileStatus(path);
        }
      } catch (InvalidPathException e) {
        LOG.debug("the locale of this JVM has no name for {}; Hadoop gives it one", path, e);
      }
      return super.getFileLinkStatus(path);
    }
  }
}
