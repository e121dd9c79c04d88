package org.apache.kafka.clients.admin;

import java.util.Collection;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

public interface Admin {
  ListOffsetsResult listOffsets(Map<TopicPartition, OffsetSpec> asked, ListOffsetsOptions options);

  DescribeProducersResult describeProducers(Collection<TopicPartition> partitions);
}
