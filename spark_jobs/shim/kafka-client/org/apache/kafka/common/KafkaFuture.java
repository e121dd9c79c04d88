package org.apache.kafka.common;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

public abstract class KafkaFuture<T> {
  public abstract T get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException;
}
