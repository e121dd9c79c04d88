import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.Trigger;

/** A plain job in Java: one query per line of a table, each of one topic or a union of several, into files. */
public class Job {
  public static void main(String[] arguments) throws Exception {
    SparkSession spark = SparkSession.builder().getOrCreate();
    for (String line : Files.readAllLines(Path.of(arguments[0]))) {
      String[] of = line.split("\t");
      Dataset<Row> rows = null;
      for (String topic : of[1].split(",")) {
        Dataset<Row> one =
            spark
                .readStream()
                .format("kafka")
                .option("kafka.bootstrap.servers", arguments[1])
                .option("subscribe", topic)
                .option("startingOffsets", "earliest")
                .load();
        rows = rows == null ? one : rows.union(one);
      }
      rows.selectExpr("topic", "CAST(value AS STRING) AS value", "timestamp", of[2] + " AS worked")
          .writeStream()
          .format("parquet")
          .queryName(of[0])
          .option("path", of[4])
          .option("checkpointLocation", of[3])
          .trigger(Trigger.ProcessingTime(of[5]))
          .start();
    }
    spark.streams().awaitAnyTermination();
  }
}
