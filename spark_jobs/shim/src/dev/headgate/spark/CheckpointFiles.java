package dev.headgate.spark;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The file systems of a query's checkpoint, by the Hadoop settings of its session: those by which Spark itself writes the logs.
 *
 * <p>A session may have settings of its own, such as {@code fs.s3a.access.key} ({@code SessionState.newHadoopConf} puts all of a session's
 * settings over those of the context). Hadoop keeps one file system for all that name the same place and user, whatever their settings
 * are, so a session that has some gets one of its own, which is closed with the query.
 */
final class CheckpointFiles {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointFiles.class);
  private static final Pattern OF_HADOOP = Pattern.compile("(fs|dfs|ipc|hadoop)\\..*");

  final Configuration settings;
  private final boolean isOfOwnSettings;
  private FileSystem own;
  private boolean isClosed;

  private CheckpointFiles(Configuration settings, boolean isOfOwnSettings) {
    this.settings = settings;
    this.isOfOwnSettings = isOfOwnSettings;
  }

  /** Called when the query begins: settings that the session gets later are not those of its logs either. */
  static CheckpointFiles of(StreamingQuery query) {
    Configuration shared = SparkContext.getOrCreate().hadoopConfiguration();
    try {
      SparkSession session = new Execution(query).session();
      Map<String, String> said = CollectionConverters.asJava(session.sessionState().conf().getAllConfs());
      boolean isOwn =
          said.entrySet().stream().anyMatch(each -> OF_HADOOP.matcher(each.getKey()).matches() && !each.getValue().equals(shared.get(each.getKey())));
      return new CheckpointFiles(isOwn ? session.sessionState().newHadoopConf() : shared, isOwn);
    } catch (RuntimeException | LinkageError e) {
      LOG.warn("Headgate cannot read the Hadoop settings of the session of {}, and goes by those of the context", query.id(), e);
      return new CheckpointFiles(shared, false);
    }
  }

  /** A job may close the one that all of a JVM share; then this is another one, else it is looked up in a map. */
  synchronized FileSystem at(Path path) throws IOException {
    if (!isOfOwnSettings || isClosed) {
      return path.getFileSystem(settings);
    }
    if (own == null) {
      own = FileSystem.newInstance(path.toUri(), settings);
    }
    return own;
  }

  /** For a file system that may be behind; others have nothing of the kind. */
  static void catchUp(FileSystem store) {
    try {
      store.msync();
    } catch (IOException | UnsupportedOperationException e) {
      LOG.debug("{} cannot be asked to catch up", store.getUri(), e);
    }
  }

  /**
   * Whether a file is there. Throws where that cannot be told.
   *
   * <p>A file of this machine is opened, since a network's file system asks its server then, and not for each status. By Java itself:
   * Hadoop's says of whatever goes wrong that there is no such file, too many open ones and a mount that hangs among it ({@code
   * RawLocalFileSystem.open} asks {@code File.exists}).
   */
  static boolean isThere(FileSystem store, Path file) throws IOException {
    try {
      if (store.getUri().getScheme().equals("file")) {
        Files.newInputStream(new File(file.toUri().getPath()).toPath()).close();
        return true;
      }
    } catch (NoSuchFileException e) {
      return false;
    } catch (InvalidPathException e) {
      LOG.debug("the locale of this JVM has no name for {}; Hadoop gives it one", file, e);
    }
    try {
      return store.getFileStatus(file) != null;
    } catch (FileNotFoundException | NoSuchFileException e) {
      return false;
    }
  }

  synchronized void close() {
    isClosed = true;
    if (own != null) {
      try {
        own.close();
      } catch (IOException | RuntimeException e) {
        LOG.debug("a file system was not closed", e);
      }
    }
  }
}
