package dev.headgate.tests;

import java.io.IOException;

/** Called as S3A's own: a store does not know what it is asked for (405, 415, 501). */
public class AWSUnsupportedFeatureException extends IOException {
  private static final long serialVersionUID = 1L;

  public AWSUnsupportedFeatureException(String message) {
    super(message);
  }
}
