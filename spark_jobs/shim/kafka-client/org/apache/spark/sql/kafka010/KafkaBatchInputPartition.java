package org.apache.spark.sql.kafka010;

import java.util.Map;
import org.apache.spark.sql.connector.read.InputPartition;

public class KafkaBatchInputPartition implements InputPartition {
  public KafkaBatchInputPartition(
      KafkaOffsetRange offsetRange, Map<String, Object> executorKafkaParams, long pollTimeoutMs, boolean failOnDataLoss, boolean includeHeaders) {}

  public native KafkaOffsetRange offsetRange();

  public native Map<String, Object> executorKafkaParams();

  public native long pollTimeoutMs();

  public native boolean failOnDataLoss();

  public native boolean includeHeaders();
}
