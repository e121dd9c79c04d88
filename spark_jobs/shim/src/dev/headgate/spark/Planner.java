package dev.headgate.spark;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Decides, per stream and per planning of a micro-batch, what Spark may read next: the planner's process, as it is asked from here.
 *
 * <p>This is the whole language between the engine and whoever governs it. Everything is text, because an offset's JSON is the one
 * form that every source can read back. {@code headgate_spark.engine.governor} is the other end.
 *
 * <p>A <em>handle</em> names one stream of one run of a query; handles rise in the order in which streams are opened. Calls for
 * different queries overlap, those of one query do not. A call that fails, or takes longer than {@link Shim#callBudgetMillis}, may be
 * made again, also while the first one is still under way there. Each call throws {@link Failed} where nothing came of it.
 */
final class Planner {
  /** A call of which nothing came; the message says why. */
  static final class Failed extends Exception {
    private static final long serialVersionUID = 1L;

    Failed(String message) {
      super(message);
    }
  }

  private final Link.Address address;

  /** Calls that one thread may have given up and that have not come back: the next one waits for the oldest of them. */
  private static final int MOST_OWED = 2;

  /** By thread, and so by query, its connections: the last one is asked, those before it owe an answer. */
  private final Map<Thread, Deque<Link>> links = new ConcurrentHashMap<>();

  Planner(Link.Address address) {
    this.address = address;
  }

  /**
   * A query begins, before its first stream is opened; or it was running already when this planner came to be.
   *
   * @param query JSON object, see {@link RunningQuery#describe}
   * @return JSON object, what of its sources is borne with, see {@link Forbearance}; null: nothing
   */
  String begins(String query) throws Failed, InterruptedException {
    return ask("begins", query);
  }

  /**
   * A stream was created, or was running already when this planner came to be.
   *
   * @param descriptor JSON object: {@code handle}, {@code query} (its {@code id}, {@code runId} and {@code name}, which may be
   *     null), {@code checkpoint} (root of the query's checkpoint), {@code index} (of the source in it), {@code name} (given by the
   *     job, or null), {@code format}, {@code options}, {@code api} ("v1" or "v2"), {@code class}, {@code defaultLimit} ("all",
   *     "rows", "files", "bytes", "other"; null: the source takes no read limits), {@code defaultRows} of it or null, {@code
   *     shufflePartitions} of the query's session
   * @return {@code ok}; {@code prepare:realtime}, as {@code ok}, of a query that has never run: its state is to have the form
   *     that real-time mode needs; {@code resume:<json>}, the offset at which it goes on by the checkpoint, so that it can be surveyed before
   *     Spark asks it; or {@code refuse:<message>}: the query fails with that message
   */
  Answer opened(long handle, String descriptor) throws Failed, InterruptedException {
    return answer(Answer.TO_OPENED, "opened", Long.toString(handle), descriptor);
  }

  /**
   * Asked when all streams of a query are opened, and before Spark reads where its checkpoint ends.
   *
   * @return {@code held:<path>}: its checkpoint may be written as long as this file is there, see {@link Fence}; {@code none}: it has
   *     no fence; {@code wait:<milliseconds>}, then this is asked again; or {@code refuse:<message>}
   */
  Answer fence(String runId) throws Failed, InterruptedException {
    return answer(Answer.TO_FENCE, "fence", runId);
  }

  /**
   * Asked at each planning, before the source is touched. In one trigger Spark asks every stream of a query once, in an order that
   * is not known; a stream may be asked about again in the same trigger, after {@code wait:} and after a call that has failed.
   *
   * @param trigger {@code <number>.<number>:<handle>=<number>,…}: the trigger of the query in which Spark asks, and which of the
   *     query's questions this is, numbers that only grow; and for each stream of which Spark has been told to read, or {@code
   *     none}, by an answer of a planner, in which trigger that was last. An answer whose trigger is not there has not reached
   *     Spark, and the stream was held
   * @param start the offset that the batch would start from, as JSON; null before the first batch of a V1 source
   * @param progress what Spark has reported of the query since a planner was last told of that, a batch that has ended or that there
   *     was none for a while: a JSON object, see {@link Progress}; null: nothing
   * @return {@code hold}, {@code none} (as {@code hold}, but it counts as planned, so that a query without a batch has an empty
   *     first one), {@code all}, {@code rows:<n>}, {@code files:<n>}, {@code bytes:<n>}, {@code offset:<json>}, {@code
   *     survey:<handle>,<handle>,…}, {@code lease:<milliseconds>:<milliseconds>:<handle>,<handle>=<n>,…}, {@code wait:<milliseconds>}
   *     (then this is asked again, in the same trigger), {@code realtime:<milliseconds>} or {@code fail:<message>}. {@code realtime}
   *     has the batch run in Spark's real-time mode, which reads all streams of the query for that time; it is answered for all of
   *     them in a trigger or for none. Where it cannot be, {@link #refused} says why and this is asked again. {@code all} leaves the source to the limit
   *     that it has of its own. {@code lease} holds all streams of the query for the first time without a question, unless
   *     {@link Shim#recall} is called, or one of the named streams (there may be none), looked at once per second time, has
   *     something else than when it was last surveyed; one with a number, more unread records than that
   */
  Answer admit(long handle, String trigger, String start, String runId, String progress) throws Failed, InterruptedException {
    return answer(Answer.TO_ADMIT, "admit", Long.toString(handle), trigger, start, runId, progress);
  }

  /**
   * Asked after {@code survey:}, with what the surveyed sources have.
   *
   * @param latest by handle the latest offset (JSON text, or null where the source has nothing), a field each. Streams that have
   *     not been asked to plan yet, that run in another query or are of the V1 kind are left out
   * @return as {@link #admit}, without {@code survey:}; after {@code wait:} it is {@code admit} that is asked again
   */
  Answer plan(long handle, String trigger, Map<String, String> latest) throws Failed, InterruptedException {
    var fields = new ArrayList<>(List.of("plan", Long.toString(handle), trigger));
    for (var stream : latest.entrySet()) {
      fields.add(stream.getKey());
      fields.add(stream.getValue());
    }
    return answer(Answer.TO_PLAN, fields.toArray(String[]::new));
  }

  /**
   * The stream cannot be asked what it has. If it has been asked for the first time, its query waits for it, else it is held.
   *
   * @param failure what it has thrown, class and message of it and of each cause on lines of their own; empty while it has only
   *     not answered for long; null: it answers again
   */
  void outage(long handle, String failure) throws Failed, InterruptedException {
    ask("outage", Long.toString(handle), failure);
  }

  /** The stream has thrown this, a text as that of {@link #outage}, when it was asked for something, and its query fails. */
  void thrown(long handle, String failure) throws Failed, InterruptedException {
    ask("thrown", Long.toString(handle), failure);
  }

  /**
   * The query cannot run in real-time mode, or a batch of it has failed there: it goes on in micro-batches.
   *
   * <p>It is told in a sentence, and whether that may be over in seconds: {@code passes} or {@code lasts}.
   */
  void refused(String runId, RealTime.Refusal refusal) throws Failed, InterruptedException {
    ask("refused", runId, refusal.why(), refusal.passes() ? "passes" : "lasts");
  }

  /**
   * The query lacks something, for a reason, a sentence with the remedy: {@code fence}, the one on its checkpoint is not what it
   * should be; {@code trigger}, it is asked no more often than the job's own says.
   */
  void lacks(String runId, String what, String why) throws Failed, InterruptedException {
    ask("lacks", runId, what, why);
  }

  /**
   * The stream was stopped; its handle will not be heard of again.
   *
   * @param failure JSON object, what its query has failed of, see {@link RunningQuery#failure}; null: of nothing, as far as is known
   */
  void closed(long handle, String failure) throws Failed, InterruptedException {
    ask("closed", Long.toString(handle), failure);
  }

  /**
   * Spark has started a query, whatever becomes of it.
   *
   * @param query JSON object of {@code id}, {@code runId}, {@code name} (or null), {@code unplanned} (the kind of its trigger, if
   *     Spark plans no batches with it, or null)
   */
  void noticed(String query) throws Failed, InterruptedException {
    ask("noticed", query);
  }

  /** A query has ended, also one whose streams were never opened; {@code failure} as with {@link #closed}. */
  void ended(String runId, String failure) throws Failed, InterruptedException {
    ask("ended", runId, failure);
  }

  /** The driver is told to end: plan nothing more, and return when no query is in the midst of a batch, or the time is over. */
  void stop() throws Failed, InterruptedException {
    askUntil(Long.MAX_VALUE / 2, "stop");
  }

  /** Returns where the process answers at all. */
  void answers() throws Failed, InterruptedException {
    ask("answers");
  }

  /** Tells where the driver's own things can be asked for, see {@link PlannerProcess}; a JSON object. */
  void attached(String driver) throws Failed, InterruptedException {
    ask("attached", driver);
  }

  /** The job decodes the records of a source by this, see {@code headgate_spark.event_time}. */
  void decoder(String source, String decoder, String path) throws Failed, InterruptedException {
    ask("decoder", source, decoder, path);
  }

  /** Gives back the connection of this thread. */
  void release() {
    Deque<Link> own = links.remove(Thread.currentThread());
    if (own != null) {
      own.forEach(Planner::close);
    }
  }

  /** The connection of this thread that can be asked; those of threads that are gone are given back. */
  private Link link(long until) throws IOException, TimeoutException, InterruptedException {
    Deque<Link> own = links.computeIfAbsent(Thread.currentThread(), thread -> new ArrayDeque<>());
    if (own.isEmpty() || !own.getLast().isFree()) {
      own.removeIf(link -> !link.isFree() && link.isBack() && close(link));
      if (own.size() > MOST_OWED) {
        own.getFirst().awaitBack(until);
        close(own.removeFirst());
      }
      links.entrySet().removeIf(each -> !each.getKey().isAlive() && each.getValue().stream().allMatch(Planner::close));
      own.addLast(Link.to(address, until));
    }
    return own.getLast();
  }

  private Answer answer(Set<String> understood, String... fields) throws Failed, InterruptedException {
    String text = ask(fields);
    Answer answer = text == null ? null : Answer.parse(text, understood);
    if (answer == null) {
      throw new Failed(text == null ? "it answered null" : "unknown answer \"" + text + "\"");
    }
    return answer;
  }

  private String ask(String... fields) throws Failed, InterruptedException {
    return askUntil(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Shim.callBudgetMillis()), fields);
  }

  private String askUntil(long until, String... fields) throws Failed, InterruptedException {
    try {
      String[] answer = link(until).ask(until, fields);
      PlannerProcess.answered();
      if (answer.length == 2 && "stranger".equals(answer[0])) {
        PlannerProcess.attachAnew(this);
        throw new Failed("the planner's process is another one, which is told of this driver now");
      }
      if (answer.length != 2 || !"ok".equals(answer[0])) {
        throw new Failed(answer.length == 2 ? answer[1] : "an answer of " + answer.length + " fields");
      }
      return answer[1];
    } catch (TimeoutException e) {
      PlannerProcess.unanswered();
      throw new Failed("no answer within " + Shim.callBudgetMillis() + " ms");
    } catch (IOException e) {
      throw new Failed("the planner's process cannot be reached: " + e);
    }
  }

  private static boolean close(Link link) {
    try {
      link.close();
    } catch (IOException e) {
      // it is given up anyway
    }
    return true;
  }
}
