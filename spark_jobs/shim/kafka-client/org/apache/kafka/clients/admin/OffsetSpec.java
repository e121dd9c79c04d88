package org.apache.kafka.clients.admin;

public abstract class OffsetSpec {
  public static native OffsetSpec latest();

  public static native OffsetSpec earliest();

  public static native OffsetSpec maxTimestamp();

  public static native OffsetSpec forTimestamp(long timestamp);
}
