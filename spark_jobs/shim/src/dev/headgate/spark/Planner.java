package dev.headgate.spark;

/**
 * Decides, per stream and per planning of a micro-batch, what Spark may read next.
 *
 * <p>This is the whole language between the engine and whoever governs it; the implementation lives in the driver's Python
 * process and is reached through Py4J. Everything is a string, because a callback can return nothing richer cheaply, and because
 * an offset's JSON is the one form that every source can read back. Offsets that are long are {@link Packed}.
 *
 * <p>A <em>handle</em> names one stream of one run of a query; handles rise in the order in which streams are opened. Calls for
 * different queries overlap. A call that throws, answers something unknown or is slow counts as failed, see {@link Patience}; the
 * same is asked again then, also while the slow one is still under way.
 */
public interface Planner {
  /**
   * A stream was created, or was running already when this planner was registered.
   *
   * @param descriptor JSON object: {@code handle}, {@code thread} (holds the query's name, id and run id), {@code checkpoint}
   *     (root of the query's checkpoint), {@code index} (of the source in it), {@code name} (given by the job, or null), {@code
   *     format}, {@code options}, {@code api} ("v1" or "v2"), {@code class}, {@code admission} (whether the source takes read
   *     limits), {@code defaultLimit} ("all", "rows", "files", "bytes", "other" or null),
   *     {@code shufflePartitions} of the query's session
   * @return {@code ok}; {@code resume:<json>}, the offset at which it goes on by the checkpoint, so that it can be surveyed before
   *     Spark asks it; or {@code refuse:<message>}: the query fails with that message
   */
  String opened(long handle, String descriptor);

  /**
   * Asked at each planning, before the source is touched. In one trigger Spark asks every stream of a query once, in an order that
   * is not known; a stream may be asked about again in the same trigger, after {@code wait:} and after a call that has failed.
   *
   * @param trigger {@code <number>.<number>:<handle>=<number>,…}: the trigger of the query in which Spark asks, and which of the
   *     query's questions this is, numbers that only grow; and for each stream of which Spark has been told to read, or {@code none}, by an answer of a planner, in which trigger that
   *     was last. An answer whose trigger is not there has not reached Spark, and the stream was held
   * @param start the offset that the batch would start from, as JSON; null before the first batch of a V1 source
   * @return {@code hold}, {@code none} (as {@code hold}, but it counts as planned, so that a query without a batch has an empty
   *     first one), {@code all}, {@code rows:<n>}, {@code files:<n>}, {@code bytes:<n>}, {@code offset:<json>}, {@code
   *     survey:<handle>,<handle>,…}, {@code lease:<milliseconds>:<milliseconds>:<handle>,<handle>,…}, {@code wait:<milliseconds>}
   *     (then this is asked again, in the same trigger) or {@code fail:<message>}. {@code all} leaves the source to the limit
   *     that it has of its own. {@code lease} holds all streams of the query for the first time without a question, unless
   *     {@link Shim#recall} is called, or one of the named streams (there may be none), looked at once per second time, has
   *     something else than when it was last surveyed
   */
  String admit(long handle, String trigger, String start);

  /**
   * Asked after {@code survey:}, with what the surveyed sources have.
   *
   * @param latest JSON object from handle to latest offset (JSON text, or null where the source has nothing). Streams that have
   *     not been asked to plan yet, that run in another query or are of the V1 kind are left out
   * @return as {@link #admit}, without {@code survey:}; after {@code wait:} it is {@code admit} that is asked again
   */
  String plan(long handle, String trigger, String start, String latest);

  /**
   * The stream cannot be asked what it has. If it has been asked for the first time, its query waits for it, else it is held.
   *
   * @param failure what it has thrown, class and message of it and of each cause on lines of their own; empty while it has only
   *     not answered for long; null: it answers again
   */
  void outage(long handle, String failure);

  /** The stream has thrown this, a text as that of {@link #outage}, when it was asked for something, and its query fails. */
  void thrown(long handle, String failure);

  /** The stream was stopped; its handle will not be heard of again. */
  void closed(long handle);
}
