package org.apache.spark.sql.kafka010.consumer;

import java.util.Map;
import org.apache.kafka.common.TopicPartition;

public class KafkaDataConsumer {
  public static native KafkaDataConsumer acquire(TopicPartition partition, Map<String, Object> params);

  public native InternalKafkaConsumer getOrRetrieveConsumer();

  public native void release();
}
