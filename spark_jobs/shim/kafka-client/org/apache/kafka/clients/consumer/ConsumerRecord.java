package org.apache.kafka.clients.consumer;

import org.apache.kafka.common.record.TimestampType;

public abstract class ConsumerRecord<K, V> {
  public abstract String topic();

  public abstract int partition();

  public abstract long offset();

  public abstract long timestamp();

  public abstract TimestampType timestampType();

  public abstract K key();

  public abstract V value();
}
