import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.Trigger

/** A plain job with a trigger of an hour. It ends well after several batches, which plain Spark takes hours for. */
object HourlyInScala {
  def main(arguments: Array[String]): Unit = {
    val spark = SparkSession.builder().appName("hourly").getOrCreate()
    val stream = spark.readStream.format("rate").option("rowsPerSecond", 100).load().writeStream.format("noop")
    val query = stream.queryName("hourly").option("checkpointLocation", arguments(0))
    val running = query.trigger(Trigger.ProcessingTime("1 hour")).start()
    def done = running.recentProgress.count(_.numInputRows > 0)
    val deadline = System.currentTimeMillis() + 120000
    while (done < 4) {
      if (System.currentTimeMillis() > deadline) throw new IllegalStateException(s"$done batches")
      running.awaitTermination(1000)
    }
    println(s"$done batches")
    running.stop()
    spark.stop()
  }
}
