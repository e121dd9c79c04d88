package org.apache.kafka.common.record;

public enum TimestampType {
  CREATE_TIME(0);

  public final int id;

  TimestampType(int id) {
    this.id = id;
  }
}
