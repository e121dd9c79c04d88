package org.apache.kafka.clients.consumer;

import java.util.List;
import org.apache.kafka.common.TopicPartition;

public abstract class ConsumerRecords<K, V> {
  public abstract List<ConsumerRecord<K, V>> records(TopicPartition partition);
}
