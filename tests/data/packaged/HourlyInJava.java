import java.util.Arrays;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.Trigger;

/** A plain job with a trigger of an hour. It ends well after several batches, which plain Spark takes hours for. */
public class HourlyInJava {
  private static final int BATCHES = 4;
  private static final long DEADLINE_MILLIS = 120_000;

  public static void main(String[] arguments) throws Exception {
    SparkSession spark = SparkSession.builder().appName("hourly").getOrCreate();
    StreamingQuery running =
        spark
            .readStream()
            .format("rate")
            .option("rowsPerSecond", 100)
            .load()
            .writeStream()
            .format("noop")
            .queryName("hourly")
            .option("checkpointLocation", arguments[0])
            .trigger(Trigger.ProcessingTime("1 hour"))
            .start();
    long deadline = System.currentTimeMillis() + DEADLINE_MILLIS;
    while (done(running) < BATCHES) {
      if (System.currentTimeMillis() > deadline) {
        throw new IllegalStateException(done(running) + " batches");
      }
      running.awaitTermination(1000);
    }
    System.out.println(done(running) + " batches");
    running.stop();
    spark.stop();
  }

  private static long done(StreamingQuery query) {
    return Arrays.stream(query.recentProgress()).filter(each -> each.numInputRows() > 0).count();
  }
}
