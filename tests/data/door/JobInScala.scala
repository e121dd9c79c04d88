import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.Trigger

/** A plain job in Scala: one query per line of a table, each of one topic or a union of several, into files. */
object JobInScala {
  def main(arguments: Array[String]): Unit = {
    val spark = SparkSession.builder().getOrCreate()
    for (line <- scala.io.Source.fromFile(arguments(0)).getLines()) {
      val Array(name, topics, work, checkpoint, out, trigger) = line.split("\t")
      val rows = topics.split(",").map { topic =>
        spark.readStream
          .format("kafka")
          .option("kafka.bootstrap.servers", arguments(1))
          .option("subscribe", topic)
          .option("startingOffsets", "earliest")
          .load()
      }
      rows.reduce(_ union _)
        .selectExpr("topic", "CAST(value AS STRING) AS value", "timestamp", s"$work AS worked")
        .writeStream
        .format("parquet")
        .queryName(name)
        .option("path", out)
        .option("checkpointLocation", checkpoint)
        .trigger(Trigger.ProcessingTime(trigger))
        .start()
    }
    spark.streams.awaitAnyTermination()
  }
}
