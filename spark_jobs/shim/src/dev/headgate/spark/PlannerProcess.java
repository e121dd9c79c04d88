package dev.headgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.SocketException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.util.ShutdownHookManager;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import py4j.CallbackClient;
import py4j.DefaultGatewayServerListener;
import py4j.GatewayServer;
import py4j.Py4JServerConnection;
import scala.Option;

/**
 * The planner's process: starts it beside the JVM, or finds the one that {@code headgate-run} has started, and tells it where this
 * driver is.
 *
 * <p>It ends when this JVM does: that closes its standard input. Where it dies, another one is started, and each query is told to it anew;
 * until then streams are held, see {@link Patience}. What it asks of the driver comes by a Py4J gateway that takes calls from whoever
 * has its token. All threads are daemons: none keeps a job's JVM from ending.
 */
public final class PlannerProcess {
  private static final Logger LOG = LoggerFactory.getLogger(PlannerProcess.class);
  static final String PROPERTIES = "spark.headgate.";

  /** A file with {@code port} and {@code token} of a planner's process that runs already. */
  static final String ADDRESS = PROPERTIES + "planner.address";

  static final String ENABLED = PROPERTIES + "enabled";

  private static final long START_SECONDS = Long.getLong("headgate.planner.startSeconds", 60);
  private static final long RESTART_MILLIS = 500;

  /** One after the other, without a word of it: then no other is started. */
  private static final int MOST_FAILED_STARTS = 3;

  /** So long after the first call that got no answer, if no other has got one, the process hangs. */
  private static final long HANGS_MILLIS = Long.getLong("headgate.planner.hangsMillis", 25_000);

  /** Before Spark's own hook, which is run at 40, and for as long as the longest grace period: the planner bounds it. */
  private static final int BEFORE_SPARK = 90;

  private static final CountDownLatch READY = new CountDownLatch(1);
  static volatile SparkContext known; // null: no context was seen yet
  static volatile boolean begun;
  private static GatewayServer gateway;
  private static String gatewayToken;
  private static volatile Link.Address address;
  private static volatile Process child;
  private static volatile String failure;
  private static volatile OnFailure onFailure;
  private static volatile long silentSince;

  /** The process says that it cannot run as it is told to. */
  private static final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;

    RefusedException(String message) {
      super(message);
    }
  }

  private PlannerProcess() {}

  /** Starts it for this driver, or tells it of the context that has come after another one; asked again, it changes nothing. */
  static synchronized void start() {
    if (active().isEmpty() || active().get() == known) {
      return;
    }
    known = active().get();
    LocalFiles.install(known.getConf(), known.hadoopConfiguration());
    if (!known.getConf().getBoolean(ENABLED, true)) {
      return;
    }
    QueryEvents.of(known);
    if (begun) {
      Teller.tell("of the next context", planner -> planner.attached(driver()));
      return;
    }
    begun = true;
    SparkConf conf = known.getConf();
    onFailure = OnFailure.in(conf, conf.contains(ADDRESS));
    Thread thread = new Thread(() -> run(conf), "headgate-planner-process");
    thread.setDaemon(true);
    thread.setContextClassLoader(new SourceClasses(Thread.currentThread().getContextClassLoader())); // Py4J's threads have it too
    thread.start();
  }

  /**
   * Waits until the first one can be asked, or could not be started.
   *
   * @throws PlannerException if there is none, and the query is to end then
   */
  static void await(RunningQuery query) throws InterruptedException {
    start();
    if (begun && !READY.await(START_SECONDS, TimeUnit.SECONDS)) {
      LOG.warn("Headgate: the planner's process has not answered within {} s", START_SECONDS);
      require(query, "the planner's process has not answered within " + START_SECONDS + " s");
    }
    requireIfWanted(query);
  }

  /** Throws {@link PlannerException} if it was given up, and the query is to end then. */
  static void requireIfWanted(RunningQuery query) {
    if (failure != null) {
      require(query, failure);
    }
  }

  private static void require(RunningQuery query, String reason) {
    String why = whyItEnds(query);
    if (why != null) {
      throw new PlannerException("Headgate cannot govern this query: " + reason + "; " + why);
    }
  }

  /** Why a query that nobody can plan ends; null: it runs on as it would without Headgate. Not with a planner from elsewhere. */
  static synchronized String whyItEnds(RunningQuery query) {
    return begun ? onFailure.whyItEnds(query.protection::holds) : "it ends, since no other planner is started here";
  }

  /** A call has got its answer. */
  static void answered() {
    if (silentSince != 0) {
      silentSince = 0;
    }
  }

  /** A call has got no answer in time. Where that goes on, and nobody else gets one, the process is ended: another one is started. */
  static void unanswered() {
    Process asked = child;
    long now = System.nanoTime();
    if (silentSince == 0) {
      silentSince = now;
    } else if (asked != null && TimeUnit.NANOSECONDS.toMillis(now - silentSince) >= HANGS_MILLIS) {
      LOG.warn("Headgate: the planner's process has not answered for {} ms, and is ended", HANGS_MILLIS);
      asked.destroyForcibly();
      silentSince = 0;
    }
  }

  /** The context of this driver, for the planner's process. */
  public static SparkContext context() {
    return SparkContext.getOrCreate();
  }

  private static Option<SparkContext> active() {
    return org.apache.spark.SparkContext$.MODULE$.getActive();
  }

  private static void run(SparkConf conf) {
    try {
      String problem = OnFailure.problemIn(conf);
      if (problem != null) {
        throw new RefusedException(problem);
      }
      PlannerProgram.tellOfOtherJars();
      openGateway();
      if (conf.contains(ADDRESS)) {
        JsonNode found = Origin.JSON.readTree(Path.of(conf.get(ADDRESS)).toFile());
        address = new Link.Address(found.get("port").asInt(), found.get("token").asText());
        attachPatiently();
        return; // whoever has started it starts it again
      }
      ShutdownHookManager.get().addShutdownHook(PlannerProcess::stopAtBoundary, BEFORE_SPARK, 1, TimeUnit.DAYS);
      for (int failed = 0; failed < MOST_FAILED_STARTS; ) {
        failed = runOnce(conf) ? 0 : failed + 1;
        TimeUnit.MILLISECONDS.sleep(RESTART_MILLIS);
      }
      giveUp("the planner's process has ended " + MOST_FAILED_STARTS + " times before it could be asked; see above what it has said");
    } catch (RefusedException e) {
      giveUp(e.getMessage());
    } catch (IOException | Planner.Failed | URISyntaxException e) {
      giveUp("the planner's process cannot be started (" + e.getMessage() + ")");
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      READY.countDown();
    }
  }

  /** Lets all queries run as without Headgate, or fail. */
  private static void giveUp(String reason) {
    failure = reason;
    LOG.warn("Headgate governs no query of this driver from now on: {}; {} ({})", reason, onFailure.inWords(), OnFailure.PROPERTY);
    Shim.register(null);
  }

  /** Starts the process, and returns when it has ended: whether it could be asked before that. */
  private static boolean runOnce(SparkConf conf) throws IOException, InterruptedException, URISyntaxException, RefusedException {
    String token = PlannerProgram.newToken();
    Process started = PlannerProgram.start(conf);
    child = started;
    boolean answered = false;
    try (var out = new BufferedReader(new InputStreamReader(started.getInputStream(), StandardCharsets.UTF_8))) {
      try {
        started.getOutputStream().write((PlannerProgram.settings(conf, token) + "\n").getBytes(StandardCharsets.UTF_8));
        started.getOutputStream().flush();
      } catch (IOException e) {
        LOG.debug("The planner's process has not waited for its settings", e); // it has said why, or ends with a code
      }
      String line = out.readLine();
      if (line != null) {
        JsonNode said = PlannerProgram.read(line);
        if (!said.path("port").isInt()) {
          throw new RefusedException(said.path("error").asText(PlannerProgram.isNone(conf, line)));
        }
        address = new Link.Address(said.get("port").asInt(), token);
        attach();
        answered = true;
        READY.countDown();
      }
      while (out.readLine() != null) {
        // it has nothing more to say there
      }
    } catch (IOException | Planner.Failed e) {
      LOG.warn("Headgate: the planner's process could not be asked: {}", e.toString());
    } finally {
      child = null;
      closeQuietly(started);
    }
    LOG.warn("Headgate: the planner's process has ended with {}", PlannerProgram.codeOf(started, HANGS_MILLIS));
    return answered;
  }

  /** It ends when its standard input does. */
  private static void closeQuietly(Process process) {
    try {
      process.getOutputStream().close();
    } catch (IOException e) {
      LOG.debug("The planner's process has gone before", e);
    }
  }

  /** Registers it as the planner of all streams. */
  private static synchronized void attach() throws Planner.Failed, InterruptedException {
    Planner planner = new Planner(address);
    planner.attached(driver());
    for (Map.Entry<String, String[]> each : Shim.decoders().entrySet()) {
      planner.decoder(each.getKey(), each.getValue()[0], each.getValue()[1]);
    }
    planner.release();
    Shim.register(planner);
  }

  /** The same for a process that runs already, and may be slow, or be started again just now. */
  private static void attachPatiently() throws Planner.Failed, InterruptedException {
    long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Shim.patienceMillis());
    while (true) {
      try {
        attach();
        return;
      } catch (Planner.Failed e) {
        if (System.nanoTime() >= until) {
          throw e;
        }
        LOG.warn("Headgate: the planner's process could not be asked, and is asked again: {}", e.getMessage());
        TimeUnit.MILLISECONDS.sleep(RESTART_MILLIS);
      }
    }
  }

  /** The process does not know this driver: it is another one at the same place. */
  static synchronized void attachAnew(Planner stale) throws Planner.Failed, InterruptedException {
    if (address != null && Shim.planner() == stale) {
      attach();
    }
  }

  /** The planner at the known place is another one than before: tells it of this driver, so that queries are told to it too. */
  public static void attachAnew() throws Exception {
    attachAnew(Shim.planner());
  }

  private static String driver() {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("protocol", Shim.protocol());
    members.put("pid", ProcessHandle.current().pid());
    members.put("gatewayPort", gateway.getListeningPort());
    members.put("gatewayToken", gatewayToken);
    members.put("spark", context().version());
    return Origin.json(members);
  }

  private static synchronized void openGateway() {
    gatewayToken = PlannerProgram.newToken();
    InetAddress here = InetAddress.getLoopbackAddress();
    gateway =
        new GatewayServer.GatewayServerBuilder()
            .javaPort(0)
            .javaAddress(here)
            .callbackClient(new CallbackClient(0, here, 0, TimeUnit.SECONDS)) // never used; the usual one has a thread that is no daemon
            .authToken(gatewayToken)
            .build();
    gateway.addListener(
        new DefaultGatewayServerListener() {
          @Override
          public void connectionStarted(Py4JServerConnection connection) {
            try {
              connection.getSocket().setTcpNoDelay(true); // Py4J writes 8 KB at a time, and all but the first would wait for 40 ms
            } catch (SocketException e) {
              LOG.debug("long answers come late", e);
            }
          }
        });
    gateway.start(true);
  }

  /** The JVM is told to end: lets the running batches end first. Nothing is planned after them. */
  private static void stopAtBoundary() {
    Teller.THREAD.scheduleWithFixedDelay(PlannerProcess::seeThatItAnswers, RESTART_MILLIS, RESTART_MILLIS, TimeUnit.MILLISECONDS);
    long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Shim.patienceMillis());
    try {
      for (Planner planner = Shim.planner(); planner != null; planner = Shim.planner()) {
        try {
          planner.stop();
          return;
        } catch (Planner.Failed e) {
          if (System.nanoTime() >= until) {
            LOG.warn("Headgate could not wait for a batch boundary: {}", e.getMessage());
            return;
          }
          LOG.warn("Headgate asks the next planner to stop, since this one has failed: {}", e.getMessage());
          TimeUnit.MILLISECONDS.sleep(RESTART_MILLIS);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** A planner that hangs is noticed by what it does not answer; with no query left, nobody else asks it anything. */
  private static void seeThatItAnswers() {
    Teller.now("that it is to answer", Planner::answers);
  }
}
