import java.nio.file.{Files, Path}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryException, StreamingQueryListener}

/** A plain job in Scala that counts a topic by key into another one, and prints what its handle and its listener say. */
object LiveInScala {
  def main(arguments: Array[String]): Unit = {
    val Array(broker, topic, out, folder) = arguments
    val spark = SparkSession.builder().getOrCreate()
    spark.streams.addListener(new StreamingQueryListener {
      import StreamingQueryListener._
      override def onQueryStarted(event: QueryStartedEvent): Unit = println(s"@started ${event.runId}")
      override def onQueryProgress(event: QueryProgressEvent): Unit =
        println(s"@progress ${event.progress.runId} ${event.progress.batchId}")
      override def onQueryTerminated(event: QueryTerminatedEvent): Unit =
        println(s"@terminated ${event.runId} ${event.exception.isDefined}")
    })

    def start(): StreamingQuery =
      spark.readStream
        .format("kafka")
        .option("kafka.bootstrap.servers", broker)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .groupBy(expr("CAST(CAST(value AS STRING) AS BIGINT) % 5").alias("key"))
        .count()
        .selectExpr("concat_ws('=', key, count) AS value")
        .writeStream
        .format("kafka")
        .queryName("counts")
        .outputMode("update")
        .option("kafka.bootstrap.servers", broker)
        .option("topic", out)
        .option("checkpointLocation", s"$folder/checkpoint")
        .start()

    def say(what: String, query: StreamingQuery, more: String): Unit =
      println(s"@$what ${query.runId} ${more.replace("\n", " ")}")

    def tell(query: StreamingQuery, isOver: Boolean): Unit = {
      val batch = Option(query.lastProgress).map(_.batchId.toString).getOrElse("none")
      say("handle", query, s"over=$isOver active=${query.isActive} batch=$batch failed=${query.exception.isDefined}")
    }

    val query = start()
    while (!Files.exists(Path.of(folder, "stop"))) tell(query, query.awaitTermination(200))
    query.stop()
    tell(query, query.awaitTermination(200))
    val again = start()
    try {
      while (true) tell(again, again.awaitTermination(200))
    } catch {
      case e: StreamingQueryException =>
        say("threw", again, e.getMessage)
        say("has", again, again.exception.get.getMessage)
    }
    spark.stop()
  }
}
