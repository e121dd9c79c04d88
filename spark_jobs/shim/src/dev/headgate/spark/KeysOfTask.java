package dev.headgate.spark;

import java.io.Serializable;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.Arrays;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import org.apache.spark.memory.SparkOutOfMemoryError;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.map.BytesToBytesMap;
import org.apache.spark.util.TaskCompletionListener;
import scala.Function2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction2;

/**
 * What a task of a deduplication sees of its state: the store, and before it the keys that the task has found to be new.
 *
 * <p>Such a key is written later, with others and in about the order in which RocksDB keeps them, which takes half as long as in the order
 * in which they come. Until then it is found here, so that a second row of a key costs no lookup. A store of version 0 is empty, so nothing
 * is looked up there until something is written, and what has ended is searched only if a key that is held can have ended.
 *
 * <p>All is written before anything else happens to the store. A task that does not come to its commit has written less than in plain Spark,
 * of what is thrown away then.
 */
final class KeysOfTask implements InvocationHandler {
  /** What keys may take before they are written. Spark cannot take it away from a task, as it cannot take a map that aggregates. */
  private static final long MOST_BYTES = 64L << 20;

  /** The same in pages of Spark's, of which a task's share of memory has eight or more: a small heap has small ones. */
  private static final long MOST_PAGES = 4;

  /** Two regions of the G1 collector, header included, and so not three of them. */
  private static final long PAGE_BYTES = (2L << 20) - Platform.LONG_ARRAY_OFFSET;

  private static final int FIRST_KEYS = 1 << 14;

  /** How many bytes, of the first that differ between keys, these are sorted by; what else is in a number says which key it is. */
  private static final int SORTED_BY = 5;

  private static final int BITS_OF_PLACE = Long.SIZE - SORTED_BY * Byte.SIZE;

  /** How far keys are searched for bytes that differ. */
  private static final int LONGEST = 64;

  /** What does not read or change what is in a store. */
  private static final Set<String> OF_NO_KEY = Set.of("id", "version", "metrics", "abort", "release", "hasCommitted", "getStateStoreCheckpointInfo", "hashCode", "equals", "toString");

  private final StateStore store;
  private final TaskMemoryManager memory;
  private final long ended;
  private boolean isEmpty;
  private boolean holds = true;
  private BytesToBytesMap held;
  private int keyFields;
  private int valueFields;
  private long firstEnd = Long.MAX_VALUE;

  private KeysOfTask(StateStore store, TaskMemoryManager memory, long ended) {
    this.store = store;
    this.memory = memory;
    this.ended = ended;
    isEmpty = store.version() == 0;
  }

  /** What Spark has a task do with its store, done with ours before it. */
  static final class Function extends AbstractFunction2<StateStore, Iterator<InternalRow>, Iterator<InternalRow>> implements Serializable {
    private static final long serialVersionUID = 1;

    private final Function2<StateStore, Iterator<InternalRow>, Iterator<InternalRow>> spark;
    private final long ended;

    /** {@code ended}: which values, if they are times, have ended in this batch: those up to it, in microseconds. */
    Function(Function2<StateStore, Iterator<InternalRow>, Iterator<InternalRow>> spark, long ended) {
      this.spark = spark;
      this.ended = ended;
    }

    @Override
    public Iterator<InternalRow> apply(StateStore store, Iterator<InternalRow> rows) {
      TaskContext task = TaskContext.get();
      KeysOfTask keys = new KeysOfTask(store, task.taskMemoryManager(), ended);
      task.addTaskCompletionListener((TaskCompletionListener) over -> keys.forget());
      var before = (StateStore) Proxy.newProxyInstance(KeysOfTask.class.getClassLoader(), new Class<?>[] {StateStore.class}, keys);
      return asThrown(() -> new Rows(spark.apply(before, rows)));
    }
  }

  /** What the task gives out, while its store may fail. */
  private static final class Rows extends AbstractIterator<InternalRow> {
    private final Iterator<InternalRow> rows;

    private Rows(Iterator<InternalRow> rows) {
      this.rows = rows;
    }

    @Override
    public boolean hasNext() {
      return asThrown(rows::hasNext);
    }

    @Override
    public InternalRow next() {
      return asThrown(rows::next);
    }
  }

  /** Calls what calls the store. Exceptions of Spark's are checked, and a proxy may throw none that is not declared. */
  private static <T> T asThrown(Supplier<T> call) {
    try {
      return call.get();
    } catch (UndeclaredThrowableException e) {
      Platform.throwException(e.getUndeclaredThrowable());
      throw e;
    }
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
    String name = method.getName();
    if (args != null && args[0] instanceof UnsafeRow key) {
      switch (name) {
        case "keyExists", "get":
          BytesToBytesMap.Location found = held == null ? null : found(key);
          boolean isHeld = found != null && found.isDefined();
          if (isHeld || isEmpty) {
            return name.equals("keyExists") ? (Object) isHeld : isHeld ? value(found) : null;
          }
          return asked(method, args);
        case "put":
          if (holds && hold(key, (UnsafeRow) args[1])) {
            return null;
          }
          break;
        case "remove": // of another key, as Spark removes what has ended while rows come
          if (held == null || !found(key).isDefined()) {
            return asked(method, args);
          }
          break;
        default:
          break;
      }
    }
    boolean findsNothing = name.equals("iterator") && isEmpty && firstEnd > ended;
    if (!findsNothing && !OF_NO_KEY.contains(name) && !name.contains("$default$")) {
      write();
    }
    return asked(method, args);
  }

  private Object asked(Method method, Object[] args) throws Throwable {
    try {
      return method.invoke(store, args);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** Whether a key and its value are kept, to be written later; where there is no memory for them, none is from then on. */
  private boolean hold(UnsafeRow key, UnsafeRow value) {
    if (held != null && held.getUsed() > Math.min(MOST_BYTES, MOST_PAGES * memory.pageSizeBytes())) {
      write();
    }
    keyFields = key.numFields();
    valueFields = value.numFields();
    firstEnd = Math.min(firstEnd, value.getLong(0));
    try {
      if (held == null) {
        held = new BytesToBytesMap(memory, FIRST_KEYS, PAGE_BYTES);
      }
      holds = found(key).append(key.getBaseObject(), key.getBaseOffset(), key.getSizeInBytes(), value.getBaseObject(), value.getBaseOffset(), value.getSizeInBytes());
    } catch (SparkOutOfMemoryError e) {
      holds = false;
    }
    return holds;
  }

  private BytesToBytesMap.Location found(UnsafeRow key) {
    return held.lookup(key.getBaseObject(), key.getBaseOffset(), key.getSizeInBytes());
  }

  private UnsafeRow value(BytesToBytesMap.Location found) {
    return row(valueFields, found.getValueBase(), found.getValueOffset(), found.getValueLength());
  }

  /** Has the store write what is held, which is forgotten then. */
  private void write() {
    isEmpty = false;
    if (held == null) {
      return;
    }
    UnsafeRow[] keys = new UnsafeRow[held.numKeys()];
    var all = held.iterator();
    for (int i = 0; all.hasNext(); i++) {
      BytesToBytesMap.Location each = all.next();
      keys[i] = row(keyFields, each.getKeyBase(), each.getKeyOffset(), each.getKeyLength());
    }
    for (int place : order(keys)) {
      store.put(keys[place], value(found(keys[place])), StateStore.DEFAULT_COL_FAMILY_NAME());
    }
    forget();
  }

  private void forget() {
    if (held != null) {
      held.free();
      held = null;
    }
  }

  /** The places of keys in about the order of their bytes, as RocksDB has it: by the first few of those in which not all are alike. */
  private static int[] order(UnsafeRow[] keys) {
    int length = Math.min(LONGEST, Arrays.stream(keys).mapToInt(UnsafeRow::getSizeInBytes).min().orElse(0));
    boolean[] differ = new boolean[length];
    for (UnsafeRow key : keys) {
      for (int i = 0; i < length; i++) {
        differ[i] |= byteOf(key, i) != byteOf(keys[0], i);
      }
    }
    int[] telling = IntStream.range(0, length).filter(i -> differ[i]).limit(SORTED_BY).toArray();
    long[] sorted = new long[keys.length];
    for (int place = 0; place < keys.length; place++) {
      long bytes = 0;
      for (int i : telling) {
        bytes = bytes << Byte.SIZE | byteOf(keys[place], i);
      }
      sorted[place] = (bytes << BITS_OF_PLACE | place) ^ Long.MIN_VALUE;
    }
    Arrays.sort(sorted);
    return Arrays.stream(sorted).mapToInt(each -> (int) (each & ((1L << BITS_OF_PLACE) - 1))).toArray();
  }

  private static int byteOf(UnsafeRow key, int place) {
    return Platform.getByte(key.getBaseObject(), key.getBaseOffset() + place) & 0xff;
  }

  private static UnsafeRow row(int fields, Object base, long offset, int length) {
    UnsafeRow row = new UnsafeRow(fields);
    row.pointTo(base, offset, length);
    return row;
  }
}
