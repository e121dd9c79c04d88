package org.apache.kafka.common;

public enum IsolationLevel {
  READ_UNCOMMITTED,
  READ_COMMITTED
}
