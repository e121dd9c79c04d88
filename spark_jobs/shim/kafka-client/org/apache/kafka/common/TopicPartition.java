package org.apache.kafka.common;

public final class TopicPartition {
  public TopicPartition(String topic, int partition) {}
}
