package org.apache.spark.sql.kafka010.consumer;

import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

public class KafkaDataConsumer {
  public static native KafkaDataConsumer acquire(TopicPartition partition, Map<String, Object> params);

  public native InternalKafkaConsumer getOrRetrieveConsumer();

  public native ConsumerRecord<byte[], byte[]> get(long offset, long untilOffset, long pollTimeoutMs, boolean failOnDataLoss);

  public native long getNumOffsetOutOfRange();

  public native long getNumDataLoss();

  public native void release();
}
