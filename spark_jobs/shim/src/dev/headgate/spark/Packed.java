package dev.headgate.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.zip.DeflaterOutputStream;

/**
 * Long text in the form in which Python is told it: deflated.
 *
 * <p>Py4J sends what is longer than a buffer of 8 KB in several writes, with Nagle's algorithm on: all but the first wait until
 * Python's end has acknowledged that one, which it puts off for 40 ms, as it has nothing to say. The offsets of 512 partitions are
 * longer than that, and a tenth of it when deflated.
 */
public final class Packed {
  /** Two of these, and what is around them, fit into one write. */
  private static final int LONGEST = 3_500;

  private static final String MARK = "deflated:";

  private Packed() {}

  /** The text itself if it is short, or null; otherwise {@code deflated:} and the zlib stream of its UTF-8 bytes in base 64. */
  public static String of(String text) {
    if (text == null || text.length() <= LONGEST && !text.startsWith(MARK)) {
      return text;
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DeflaterOutputStream deflater = new DeflaterOutputStream(bytes)) {
      deflater.write(text.getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return MARK + Base64.getEncoder().encodeToString(bytes.toByteArray());
  }
}
