package org.apache.kafka.clients.admin;

import org.apache.kafka.common.IsolationLevel;

public class ListOffsetsOptions {
  public ListOffsetsOptions(IsolationLevel level) {}
}
