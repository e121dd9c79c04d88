package org.apache.spark.sql.kafka010.consumer;

import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;

public class InternalKafkaConsumer {
  public native List<ConsumerRecord<byte[], byte[]>> poll(long pollTimeoutMs);

  public native void seek(long offset);
}
