package dev.headgate.spark;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.Type;
import org.apache.xbean.asm9.commons.GeneratorAdapter;
import org.apache.xbean.asm9.commons.Method;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes an entry of a log in one step that fails where the entry is there: by a conditional write of the store.
 *
 * <p>Spark writes entries under another name and renames them, which on S3 is a look and then a copy: of two writers both may succeed.
 * S3A has had conditional writes since Hadoop 3.4.2 (Spark 4.1), and says so by a path capability; an entry is small, and seen whole
 * or not at all. The name that the entry has is the same.
 *
 * <p>S3A says so of every store, and a store may refuse them: 405, 415 and 501 become {@code AWSUnsupportedFeatureException}, 400 and 409
 * {@code AWSBadRequestException}, 412 {@code RemoteFileChangedException} ({@code S3AUtils.translateException}, Hadoop 3.5.0). Then the
 * entry is written as Spark would, and so are all later ones of the run. Any other failure may be of a write that was carried out, and is
 * sent again by the client after its answer was lost: so what is there is read back.
 */
final class ConditionalEntry extends ByteArrayOutputStream {
  private static final Logger LOG = LoggerFactory.getLogger(ConditionalEntry.class);
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
  private static final int MOST_TRIES = 3;
  private static final Map<Class<?>, Constructor<?>> STREAMS = new ConcurrentHashMap<>();
  private static final Type RUNNABLE = Type.getType(Runnable.class);
  private static final Method CONSTRUCTOR = Method.getMethod("void <init> (java.io.OutputStream, Runnable)");

  /** Opens the entry as Spark would. */
  interface Plainly {
    OutputStream open() throws Throwable;
  }

  private final Fence fence;
  private final Path path;
  private final Plainly plainly;
  private boolean over;

  private ConditionalEntry(Fence fence, Path path, Plainly plainly) {
    this.fence = fence;
    this.path = path;
    this.plainly = plainly;
  }

  static boolean canBeWritten(FileSystem files, Path path) throws IOException {
    return files.hasPathCapability(path, CONDITIONAL);
  }

  /**
   * @param type {@code CancellableFSDataOutputStream}, an abstract class that has moved between versions of Spark
   * @return one of it
   */
  static Object create(Fence fence, Path path, Class<?> type, Plainly plainly) throws ReflectiveOperationException {
    var entry = new ConditionalEntry(fence, path, plainly);
    return stream(type, entry, () -> entry.over = true);
  }

  /** Returns a {@code CancellableFSDataOutputStream} to {@code out}, whose {@code cancel()} runs {@code cancels}. */
  static Object stream(Class<?> type, OutputStream out, Runnable cancels) throws ReflectiveOperationException {
    Constructor<?> constructor = STREAMS.get(type);
    if (constructor == null) {
      STREAMS.put(type, constructor = generated(type).getConstructor(OutputStream.class, Runnable.class));
    }
    return constructor.newInstance(out, cancels);
  }

  /** Sends it: nothing was before. */
  @Override
  public void close() throws IOException {
    if (over) {
      return;
    }
    over = true;
    FileSystem files = fence.files();
    int tries = 1;
    while (!isWritten(files, tries < MOST_TRIES)) {
      tries++;
    }
  }

  /** Whether it is there now; false: another write of this name was under way (409), and it is to be tried again. */
  private boolean isWritten(FileSystem files, boolean mayTryAgain) throws IOException {
    try {
      write(files);
    } catch (IOException | UnsupportedOperationException | IllegalArgumentException e) {
      if (CheckpointFiles.isThere(files, path)) {
        if (!isOurs(files)) {
          throw taken(e);
        }
        LOG.info("{} was written, although its store has answered otherwise ({})", path, e.toString());
      } else if (isConflict(e) && mayTryAgain) {
        return false;
      } else if (isRefused(e)) {
        writePlainly(e);
      } else {
        throw e;
      }
    }
    return true;
  }

  private void write(FileSystem files) throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path);
    builder.recursive().overwrite(true);
    builder.must(CONDITIONAL, true);
    FSDataOutputStream stream = builder.build();
    try {
      stream.write(buf, 0, count);
    } catch (IOException e) { // half an entry is not to be published, as a close would
      if (stream.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) {
        stream.abort();
      }
      throw e;
    }
    stream.close();
  }

  /**
   * Whether what is there is what was to be written, and this run still holds the checkpoint. Another driver may have written the same
   * bytes; as long as this one holds, that one has lost the checkpoint, and a batch that both have begun alike is one batch.
   */
  private boolean isOurs(FileSystem files) throws IOException {
    byte[] found;
    try (FSDataInputStream stream = files.open(path)) {
      found = stream.readAllBytes();
    } catch (FileNotFoundException e) {
      return false;
    }
    return Arrays.equals(found, toByteArray()) && fence.isHeld() && fence.problem() == null;
  }

  /** Says as Spark understands it that the entry is another writer's. */
  private FileAlreadyExistsException taken(Exception cause) {
    var taken = new FileAlreadyExistsException(path + " is there already");
    taken.initCause(cause);
    return taken;
  }

  /** S3 says so of two conditional writes of one name at the same moment; who then writes as Spark would may replace the other's. */
  private static boolean isConflict(Exception e) {
    String words = String.valueOf(e.getMessage());
    return words.contains("ConditionalRequestConflict") || words.contains("Status Code: 409");
  }

  private static boolean isRefused(Exception e) {
    String name = e.getClass().getSimpleName();
    boolean isKnown = name.equals("AWSUnsupportedFeatureException") || name.equals("AWSBadRequestException");
    return (isKnown || !(e instanceof IOException)) && !isConflict(e);
  }

  private void writePlainly(Exception refusal) throws IOException {
    try {
      OutputStream stream = plainly.open();
      stream.write(buf, 0, count);
      stream.close(); // only of what is whole: it publishes
    } catch (IOException | RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IOException(e);
    }
    fence.hasNoConditionalWrites(refusal);
  }

  /** {@code class … extends CancellableFSDataOutputStream}, whose {@code cancel()} runs what its constructor is given. */
  private static Class<?> generated(Class<?> type) {
    String name = "dev.headgate.spark.generated.ConditionalEntry";
    Type self = Type.getObjectType(name.replace('.', '/'));
    Type parent = Type.getType(type);
    var writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
    writer.visit(Opcodes.V17, Opcodes.ACC_PUBLIC | Opcodes.ACC_FINAL, self.getInternalName(), null, parent.getInternalName(), null);
    writer.visitField(Opcodes.ACC_PRIVATE | Opcodes.ACC_FINAL, "cancels", RUNNABLE.getDescriptor(), null, null).visitEnd();
    var made = new GeneratorAdapter(Opcodes.ACC_PUBLIC, CONSTRUCTOR, null, null, writer);
    made.loadThis();
    made.loadArg(0);
    made.invokeConstructor(parent, Method.getMethod("void <init> (java.io.OutputStream)"));
    made.loadThis();
    made.loadArg(1);
    made.putField(self, "cancels", RUNNABLE);
    made.returnValue();
    made.endMethod();
    var cancel = new GeneratorAdapter(Opcodes.ACC_PUBLIC, Method.getMethod("void cancel ()"), null, null, writer);
    cancel.loadThis();
    cancel.getField(self, "cancels", RUNNABLE);
    cancel.invokeInterface(RUNNABLE, Method.getMethod("void run ()"));
    cancel.returnValue();
    cancel.endMethod();
    writer.visitEnd();
    byte[] code = writer.toByteArray();
    return new LinkedBelow(type.getClassLoader()).define(name, code);
  }
}
