package dev.headgate.spark;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Method;

/**
 * An entry of the offset log, after which the epoch is looked at once more, where the last look is old by then: before its batch runs.
 *
 * <p>Who has stood still since that look may have written what another driver has written, run and deleted long before: Spark keeps the
 * last hundred entries ({@code spark.sql.streaming.minBatchesToRetain}). Its batch would be another one of the same number, in the sink
 * and in the state.
 */
final class PlannedEntry extends FilterOutputStream {
  private final Fence fence;

  private PlannedEntry(OutputStream entry, Fence fence) {
    super(entry);
    this.fence = fence;
  }

  /**
   * @param type {@code CancellableFSDataOutputStream}
   * @return one of it, which writes to {@code entry}, one as well
   */
  static Object of(Class<?> type, Object entry, Fence fence) throws ReflectiveOperationException {
    Method cancel = type.getMethod("cancel");
    return ConditionalEntry.stream(type, new PlannedEntry((OutputStream) entry, fence), () -> Governed.forwarded(entry, cancel, null));
  }

  @Override
  public void write(byte[] bytes, int from, int count) throws IOException {
    out.write(bytes, from, count); // not one by one
  }

  @Override
  public void close() throws IOException {
    out.close();
    fence.check();
  }
}
