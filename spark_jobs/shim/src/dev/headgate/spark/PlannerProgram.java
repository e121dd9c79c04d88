package dev.headgate.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.JarURLConnection;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/** What the planner's process is started with: which Python, which modules, which settings. */
final class PlannerProgram {
  private static final Logger LOG = LoggerFactory.getLogger(PlannerProgram.class);
  private static final String PYTHON = PlannerProcess.PROPERTIES + "python";
  private static final List<String> NAMED_BY =
      List.of(PYTHON, "spark.pyspark.driver.python", "PYSPARK_DRIVER_PYTHON", "spark.pyspark.python", "PYSPARK_PYTHON");
  private static final int MOST_PRINTED = 80;

  /** How many heaps glibc gives to threads: with eight a core each keeps what is free there, and each query has threads of its own. */
  private static final String HEAPS = "MALLOC_ARENA_MAX";

  /** Understood by every Python that there is: what is too old says so. */
  private static final String BOOT =
      "import json, sys; sys.path.insert(0, sys.argv[1]);"
          + " sys.version_info >= (3, 9) or (sys.stdout.write(json.dumps({'error': 'it needs Python 3.9 or newer, and %s is %s; name"
          + " another one in spark.headgate.python' % (sys.executable, sys.version.split()[0])}) + chr(10)), sys.exit(1));"
          + " from headgate_spark.runtime.main import main; main()";

  private PlannerProgram() {}

  /** Starts it; what it says is read from its output, and what it complains of goes to the driver's log. */
  static Process start(SparkConf conf) throws IOException, URISyntaxException {
    var program = new ProcessBuilder(python(conf), "-u", "-c", BOOT, runtime()).redirectError(ProcessBuilder.Redirect.INHERIT);
    program.environment().putIfAbsent(HEAPS, "1");
    try {
      return program.start();
    } catch (IOException e) {
      String where = namedBy(conf).map(by -> by + " names it; if it is not there, name").orElse("if PATH has none, install one, or name");
      throw new IOException(e.getMessage() + "; " + where + " a Python 3.9 or newer in " + PYTHON, e);
    }
  }

  /** With what code it ends, whose standard input has; one that hangs does not hear of that, and is ended. */
  static int codeOf(Process process, long hangsMillis) throws InterruptedException {
    if (!process.waitFor(hangsMillis, TimeUnit.MILLISECONDS)) {
      LOG.warn("Headgate: the planner's process has not come to its end within {} ms, and is ended", hangsMillis);
      process.destroyForcibly();
    }
    return process.waitFor();
  }

  /** What it reads first. */
  static String settings(SparkConf conf, String token) {
    var settings = Origin.JSON.createObjectNode().put("token", token).put("pid", ProcessHandle.current().pid());
    var properties = settings.putObject("properties");
    for (Tuple2<String, String> each : conf.getAll()) {
      if (each._1().startsWith(PlannerProcess.PROPERTIES)) {
        properties.put(each._1(), each._2());
      }
    }
    settings.put("pyFiles", conf.get("spark.submit.pyFiles", ""));
    return settings.put("application", conf.get("spark.app.name", "spark")).toString();
  }

  static String newToken() {
    byte[] bytes = new byte[32];
    new SecureRandom().nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  /** What it has said first; no object where that is no planner's answer. */
  static JsonNode read(String line) {
    try {
      return Origin.JSON.readTree(line);
    } catch (JsonProcessingException e) {
      return Origin.JSON.missingNode();
    }
  }

  /** Why what has answered with this line is no planner. */
  static String isNone(SparkConf conf, String line) {
    String named = namedBy(conf).orElse("PATH");
    String printed = line.length() > MOST_PRINTED ? line.substring(0, MOST_PRINTED) + "…" : line;
    return named + " names " + python(conf) + ", which is no Python that starts a planner: it printed \"" + printed
        + "\"; name a Python 3.9 or newer in " + PYTHON;
  }

  /** The interpreter that is named for Headgate, or for the driver's Python, or the first {@code python3} on the path. */
  private static String python(SparkConf conf) {
    return namedBy(conf).map(by -> program(conf, by)).orElse("python3");
  }

  private static Optional<String> namedBy(SparkConf conf) {
    return NAMED_BY.stream().filter(by -> isInterpreter(program(conf, by))).findFirst();
  }

  /** The value of a property of Spark, or of a variable; empty where it has none. */
  private static String program(SparkConf conf, String by) {
    return conf.get(by, Objects.requireNonNullElse(System.getenv(by), ""));
  }

  /** What opens a notebook is the driver's Python to PySpark, and takes other arguments than a Python does. */
  private static boolean isInterpreter(String name) {
    String program = name.substring(name.lastIndexOf('/') + 1);
    return !program.isBlank() && !program.startsWith("jupyter") && !program.startsWith("ipython");
  }

  /** The jar that this is in. */
  static Path jar() throws URISyntaxException {
    return Path.of(PlannerProcess.class.getProtectionDomain().getCodeSource().getLocation().toURI());
  }

  /** Names the jars of other versions that this thread's class path has too. Nothing of them is used. */
  static void tellOfOtherJars() throws IOException, URISyntaxException {
    String name = PlannerProgram.class.getName().replace('.', '/') + ".class";
    for (URL found : Collections.list(Thread.currentThread().getContextClassLoader().getResources(name))) {
      if (found.openConnection() instanceof JarURLConnection other) {
        Path jar = Path.of(other.getJarFileURL().toURI());
        if (Files.mismatch(jar(), jar) >= 0) {
          LOG.warn("Headgate's jar is on the class path in two versions: {} is used, and {} is not; take one of them off", jar(), jar);
        }
      }
    }
  }

  /** Where Python finds the runtime: in this jar, or, where that has none, in the installation that the jar is part of. */
  private static String runtime() throws URISyntaxException, IOException {
    Path jar = jar();
    try (var files = new java.util.zip.ZipFile(jar.toFile())) {
      if (files.getEntry("python/headgate_spark/runtime/main.py") != null) {
        return jar + "/python";
      }
    }
    return Optional.ofNullable(jar.getParent()).map(Path::getParent).map(Path::getParent)
        .filter(root -> Files.exists(root.resolve("headgate_spark/runtime/main.py")))
        .map(Path::toString)
        .orElseThrow(() -> new IOException("there is no runtime in " + jar + ", nor beside it; take the jar of a release"));
  }
}
