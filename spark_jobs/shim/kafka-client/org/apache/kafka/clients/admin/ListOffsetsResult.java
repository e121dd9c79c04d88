package org.apache.kafka.clients.admin;

import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

public abstract class ListOffsetsResult {
  public abstract KafkaFuture<ListOffsetsResultInfo> partitionResult(TopicPartition partition);

  public static class ListOffsetsResultInfo {
    public native long offset();

    public native long timestamp();
  }
}
