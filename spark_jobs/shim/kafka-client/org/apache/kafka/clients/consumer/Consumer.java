package org.apache.kafka.clients.consumer;

import java.time.Duration;
import java.util.Collection;
import java.util.OptionalLong;
import org.apache.kafka.common.TopicPartition;

public interface Consumer<K, V> {
  void assign(Collection<TopicPartition> partitions);

  void resume(Collection<TopicPartition> partitions);

  void pause(Collection<TopicPartition> partitions);

  void seek(TopicPartition partition, long offset);

  long position(TopicPartition partition);

  OptionalLong currentLag(TopicPartition partition);

  ConsumerRecords<K, V> poll(Duration timeout);
}
