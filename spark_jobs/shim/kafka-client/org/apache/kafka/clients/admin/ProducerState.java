package org.apache.kafka.clients.admin;

import java.util.OptionalInt;
import java.util.OptionalLong;

public abstract class ProducerState {
  public abstract OptionalInt coordinatorEpoch();

  public abstract OptionalLong currentTransactionStartOffset();
}
