package org.apache.spark.sql.kafka010;

import org.apache.kafka.common.TopicPartition;
import scala.Option;

public class KafkaOffsetRange {
  public KafkaOffsetRange(TopicPartition topicPartition, long fromOffset, long untilOffset, Option<String> preferredLoc) {}

  public native TopicPartition topicPartition();

  public native String topic();

  public native long fromOffset();

  public native long untilOffset();

  public native Option<String> preferredLoc();
}
