package org.apache.kafka.clients.admin;

import java.util.List;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

public abstract class DescribeProducersResult {
  public abstract KafkaFuture<PartitionProducerState> partitionResult(TopicPartition partition);

  public static class PartitionProducerState {
    public native List<ProducerState> activeProducers();
  }
}
