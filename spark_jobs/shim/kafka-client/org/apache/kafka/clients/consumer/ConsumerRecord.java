package org.apache.kafka.clients.consumer;

public abstract class ConsumerRecord<K, V> {
  public abstract long offset();

  public abstract long timestamp();

  public abstract V value();
}
