package dev.headgate.spark;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
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

/**
 * Writes an entry of a log in one step that fails where the entry is there: by a conditional write of the store.
 *
 * <p>Spark writes entries under another name and renames them, which on S3 is a look and then a copy: of two writers both may succeed.
 * S3A has had conditional writes since Hadoop 3.4.2 (Spark 4.1), and says so by a path capability; an entry is small, and seen whole
 * or not at all. The name that the entry has is the same.
 */
final class ConditionalEntry {
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
  private static final Map<Class<?>, Constructor<?>> STREAMS = new ConcurrentHashMap<>();
  private static final Type RUNNABLE = Type.getType(Runnable.class);
  private static final Method CONSTRUCTOR = Method.getMethod("void <init> (java.io.OutputStream, Runnable)");

  private ConditionalEntry() {}

  static boolean canBeWritten(FileSystem files, Path path) throws IOException {
    return files.hasPathCapability(path, CONDITIONAL);
  }

  /**
   * @param type {@code CancellableFSDataOutputStream}, an abstract class that has moved between versions of Spark
   * @return one of it
   */
  static Object create(FileSystem files, Path path, Class<?> type) throws IOException, ReflectiveOperationException {
    FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path);
    builder.recursive().overwrite(true);
    builder.must(CONDITIONAL, true);
    FSDataOutputStream entry = builder.build();
    Constructor<?> constructor = STREAMS.get(type);
    if (constructor == null) {
      STREAMS.put(type, constructor = generated(type).getConstructor(OutputStream.class, Runnable.class));
    }
    return constructor.newInstance(new Published(entry, path), (Runnable) () -> cancel(entry));
  }

  /** Nothing is seen of an entry that is not closed; what was sent of it may be thrown away now. */
  private static void cancel(FSDataOutputStream entry) {
    if (entry.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) {
      entry.abort();
    }
  }

  /** Says as Spark understands it that the entry is another writer's. */
  private static final class Published extends FilterOutputStream {
    private final Path path;

    Published(FSDataOutputStream entry, Path path) {
      super(entry);
      this.path = path;
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      out.write(bytes, offset, length);
    }

    @Override
    public void close() throws IOException {
      try {
        out.close();
      } catch (IOException e) {
        if (e instanceof FileAlreadyExistsException || !e.getClass().getName().endsWith(".RemoteFileChangedException")) {
          throw e;
        }
        var taken = new FileAlreadyExistsException(path + " is there already");
        taken.initCause(e);
        throw taken;
      }
    }
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
    return new ClassLoader(type.getClassLoader()) {
      Class<?> define() {
        return defineClass(name, code, 0, code.length);
      }
    }.define();
  }
}
