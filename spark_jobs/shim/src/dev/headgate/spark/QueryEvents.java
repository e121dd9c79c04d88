package dev.headgate.spark;

import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryStartedEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent;

/** Tells of queries that start and end, whatever becomes of them: some never have a stream, or none that is planned. */
final class QueryEvents extends SparkListener {
  private static SparkContext heard;

  private QueryEvents() {}

  /** Listens to a context from now on; asked again, it changes nothing. */
  static synchronized void of(SparkContext context) {
    if (context != heard) {
      heard = context;
      context.addSparkListener(new QueryEvents());
    }
  }

  /** The context is being stopped: a query of it that waits for the end of a lease is to notice. */
  @Override
  public void onApplicationEnd(SparkListenerApplicationEnd event) {
    Shim.recall();
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    if (event instanceof QueryStartedEvent started) {
      var session = SparkSession.getDefaultSession();
      String query = session.isEmpty() ? null : RunningQuery.noticed(session.get(), started.id());
      if (query != null) {
        Teller.tell("of a query that has started", planner -> planner.noticed(query));
      }
    } else if (event instanceof QueryTerminatedEvent ended) {
      String failure = ended.exception().isEmpty() ? null : Origin.json(Map.of("failure", ended.exception().get(), "causes", ""));
      Teller.tell("of a query that has ended", planner -> planner.ended(ended.runId().toString(), failure));
    }
  }
}
