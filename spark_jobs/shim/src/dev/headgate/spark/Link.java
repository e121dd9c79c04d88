package dev.headgate.spark;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * One connection to the planner's process: a question, then its answer.
 *
 * <p>Each query has one of its own, so that none waits for another's answer. A frame is its length and the number of its fields, and
 * of each field its length and its UTF-8 bytes; -1 stands for a field that is null. All numbers have four bytes. The socket does not
 * block: who asks can be interrupted, as a query is that is stopped, and waits no longer than its budget. A connection whose answer
 * has not come in time is asked nothing more, or that answer would be taken for the next one.
 */
final class Link implements AutoCloseable {
  private static final int MOST_BYTES = 256 << 20;

  private final SocketChannel channel;
  private final Selector selector;
  private final SelectionKey key;
  private boolean owes;

  /** Where the planner's process listens, and what it takes from nobody but us. */
  record Address(int port, String token) {}

  private Link(SocketChannel channel, Selector selector, SelectionKey key) {
    this.channel = channel;
    this.selector = selector;
    this.key = key;
  }

  /** Connects, and says who calls: nothing is answered to anybody else. */
  static Link to(Address address, long until) throws IOException, TimeoutException, InterruptedException {
    SocketChannel channel = SocketChannel.open();
    Selector selector = null;
    try {
      channel.configureBlocking(false);
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      selector = Selector.open();
      Link link = new Link(channel, selector, channel.register(selector, 0));
      channel.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), address.port()));
      while (!channel.finishConnect()) {
        link.await(SelectionKey.OP_CONNECT, until);
      }
      link.send(frame(address.token()), until);
      return link;
    } catch (Throwable e) {
      channel.close();
      if (selector != null) {
        selector.close();
      }
      throw e;
    }
  }

  /**
   * Asks, and returns the fields of the answer.
   *
   * @param until a time of {@link System#nanoTime}; after it the answer is owed. After any other failure the connection is closed, also where
   *     the question could not be sent by then: nobody answers half of one
   */
  String[] ask(long until, String... fields) throws IOException, TimeoutException, InterruptedException {
    boolean sent = false;
    boolean answered = false;
    try {
      send(frame(fields), until);
      sent = true;
      int length = receive(Integer.BYTES, until).getInt();
      if (length < 0 || length > MOST_BYTES) {
        throw new IOException("an answer of " + length + " bytes");
      }
      String[] answer = fields(receive(length, until));
      answered = true;
      return answer;
    } catch (TimeoutException e) {
      owes = sent;
      throw e;
    } finally {
      if (!answered && !owes) {
        close();
      }
    }
  }

  /** Whether it can be asked. */
  boolean isFree() {
    return channel.isOpen() && !owes;
  }

  /** Whether an answer that is owed has come, or will not. */
  boolean isBack() {
    try {
      return !channel.isOpen() || channel.read(ByteBuffer.allocate(1)) != 0;
    } catch (IOException e) {
      return true;
    }
  }

  /** Waits until an answer that is owed has come. */
  void awaitBack(long until) throws IOException, TimeoutException, InterruptedException {
    while (!isBack()) {
      await(SelectionKey.OP_READ, until);
    }
  }

  @Override
  public void close() throws IOException {
    selector.close();
    channel.close();
  }

  private void send(ByteBuffer frame, long until) throws IOException, TimeoutException, InterruptedException {
    while (frame.hasRemaining()) {
      if (channel.write(frame) == 0) {
        await(SelectionKey.OP_WRITE, until);
      }
    }
  }

  private ByteBuffer receive(int length, long until) throws IOException, TimeoutException, InterruptedException {
    ByteBuffer bytes = ByteBuffer.allocate(length);
    while (bytes.hasRemaining()) {
      int read = channel.read(bytes);
      if (read < 0) {
        throw new EOFException("the planner's process has closed the connection");
      }
      if (read == 0) {
        await(SelectionKey.OP_READ, until);
      }
    }
    return bytes.flip();
  }

  private void await(int operation, long until) throws IOException, TimeoutException, InterruptedException {
    long left = TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime());
    if (left <= 0) {
      throw new TimeoutException();
    }
    key.interestOps(operation);
    selector.select(left);
    selector.selectedKeys().clear();
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
  }

  private static ByteBuffer frame(String... fields) {
    byte[][] encoded = new byte[fields.length][];
    int length = Integer.BYTES;
    for (int i = 0; i < fields.length; i++) {
      encoded[i] = fields[i] == null ? null : fields[i].getBytes(StandardCharsets.UTF_8);
      length += Integer.BYTES + (encoded[i] == null ? 0 : encoded[i].length);
    }
    ByteBuffer frame = ByteBuffer.allocate(Integer.BYTES + length).putInt(length).putInt(fields.length);
    for (byte[] field : encoded) {
      frame.putInt(field == null ? -1 : field.length);
      if (field != null) {
        frame.put(field);
      }
    }
    return frame.flip();
  }

  private static String[] fields(ByteBuffer frame) {
    String[] fields = new String[frame.getInt()];
    for (int i = 0; i < fields.length; i++) {
      int length = frame.getInt();
      if (length >= 0) {
        fields[i] = new String(frame.array(), frame.position(), length, StandardCharsets.UTF_8);
        frame.position(frame.position() + length);
      }
    }
    return fields;
  }
}
