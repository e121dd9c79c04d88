// What is entered into spark-shell, line by line: many queries, of two sessions.
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.Trigger
def topic(session: SparkSession, name: String) = session.readStream.format("kafka").option("kafka.bootstrap.servers", sys.env("BROKER")).option("subscribe", name).option("startingOffsets", "earliest").load()
def start(session: SparkSession, of: Array[String]) = of(1).split(",").map(topic(session, _)).reduce(_ union _).selectExpr("topic", "CAST(value AS STRING) AS value", "timestamp", s"${of(2)} AS worked").writeStream.format("parquet").queryName(of(0)).option("path", of(4)).option("checkpointLocation", of(3)).trigger(Trigger.ProcessingTime(of(5))).start()
val lines = scala.io.Source.fromFile(sys.env("QUERIES")).getLines().map(_.split("\t")).toSeq
val sessions = Seq(spark, spark.newSession())
val started = lines.zipWithIndex.map { case (of, number) => start(sessions(number % 2), of) }
