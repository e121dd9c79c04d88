import static org.apache.spark.sql.functions.expr;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/** A plain job in Java that counts a topic by key into another one, and prints what its handle and its listener say. */
public class LiveInJava {
  private static SparkSession spark;
  private static String broker;
  private static String topic;
  private static String out;
  private static Path folder;

  public static void main(String[] arguments) throws Exception {
    broker = arguments[0];
    topic = arguments[1];
    out = arguments[2];
    folder = Path.of(arguments[3]);
    spark = SparkSession.builder().getOrCreate();
    spark.streams().addListener(new Heard());
    StreamingQuery query = start();
    while (!Files.exists(folder.resolve("stop"))) {
      tell(query, query.awaitTermination(200));
    }
    query.stop();
    tell(query, query.awaitTermination(200));
    StreamingQuery again = start();
    try {
      while (true) {
        tell(again, again.awaitTermination(200));
      }
    } catch (StreamingQueryException e) {
      say("threw", again, e.getMessage());
      say("has", again, again.exception().get().getMessage());
    }
    spark.stop();
  }

  private static StreamingQuery start() throws Exception {
    return spark
        .readStream()
        .format("kafka")
        .option("kafka.bootstrap.servers", broker)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .groupBy(expr("CAST(CAST(value AS STRING) AS BIGINT) % 5").alias("key"))
        .count()
        .selectExpr("concat_ws('=', key, count) AS value")
        .writeStream()
        .format("kafka")
        .queryName("counts")
        .outputMode("update")
        .option("kafka.bootstrap.servers", broker)
        .option("topic", out)
        .option("checkpointLocation", folder.resolve("checkpoint").toString())
        .start();
  }

  private static void tell(StreamingQuery query, boolean isOver) {
    String batch = query.lastProgress() == null ? "none" : String.valueOf(query.lastProgress().batchId());
    say("handle", query, "over=" + isOver + " active=" + query.isActive() + " batch=" + batch + " failed=" + query.exception().isDefined());
  }

  private static void say(String what, StreamingQuery query, String more) {
    System.out.println("@" + what + " " + query.runId() + " " + more.replace("\n", " "));
  }

  private static class Heard extends StreamingQueryListener {
    @Override
    public void onQueryStarted(QueryStartedEvent event) {
      System.out.println("@started " + event.runId());
    }

    @Override
    public void onQueryProgress(QueryProgressEvent event) {
      System.out.println("@progress " + event.progress().runId() + " " + event.progress().batchId());
    }

    @Override
    public void onQueryTerminated(QueryTerminatedEvent event) {
      System.out.println("@terminated " + event.runId() + " " + event.exception().isDefined());
    }
  }
}
