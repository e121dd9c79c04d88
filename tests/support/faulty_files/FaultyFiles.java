package dev.headgate.tests;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;

/** {@link FaultyFileSystem} for Hadoop's other interface, by which Spark writes its logs. */
public class FaultyFiles extends DelegateToFileSystem {
  public FaultyFiles(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, new FaultyFileSystem(), conf, "faulty", false);
  }
}
