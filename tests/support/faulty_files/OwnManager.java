package dev.headgate.tests;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/** One that a job has of its own, by {@code spark.sql.streaming.checkpointFileManagerClass}. */
public class OwnManager extends FileSystemBasedCheckpointFileManager {
  public OwnManager(Path path, Configuration conf) {
    super(path, conf);
  }
}
