package dev.headgate.bench;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.Type;
import org.apache.xbean.asm9.commons.AdviceAdapter;
import org.apache.xbean.asm9.commons.Method;

/**
 * An agent of the JVM that notes how long each question to the planner took, from the call to the return of {@code Planner.ask}.
 *
 * <p>A line for each, with tabs between: when it ended (ms since 1970), the thread, the verb, the handle or run, the trigger, how long
 * it took (ns), and the first word of the answer. What no answer came to has the word {@code failed}, and the time until the thread
 * has asked again. The code that is measured is what is released: nothing in it knows of this.
 */
public final class Watch {
  private static final String PLANNER = "dev/headgate/spark/Planner";
  private static final Type SELF = Type.getType("Ldev/headgate/bench/Watch;");
  private static final ThreadLocal<Open> OPEN = new ThreadLocal<>();
  private static BufferedWriter file;

  private record Open(String[] fields, long began) {}

  private Watch() {}

  /** Writes to the file that is named behind {@code -javaagent:<jar>=}. */
  public static void premain(String path, Instrumentation instrumentation) throws IOException {
    file = Files.newBufferedWriter(Path.of(path));
    Thread flusher = new Thread(Watch::flush, "watch");
    flusher.setDaemon(true);
    flusher.start();
    instrumentation.addTransformer(new Timed());
  }

  /** A question is asked. */
  public static void begin(String[] fields) {
    Open before = OPEN.get();
    if (before != null) {
      note(before, "failed", System.nanoTime());
    }
    OPEN.set(new Open(fields, System.nanoTime()));
  }

  /** It has been answered. */
  public static void end(String answer) {
    long now = System.nanoTime();
    Open open = OPEN.get();
    OPEN.remove();
    note(open, answer == null ? "" : answer.split(":", 2)[0], now);
  }

  private static void note(Open open, String word, long now) {
    String[] fields = open.fields;
    String trigger = fields.length > 2 && fields[2] != null ? fields[2].split("\\.", 2)[0] : "";
    String line =
        String.join("\t", "" + System.currentTimeMillis(), "" + Thread.currentThread().getId(), fields[0], about(fields),
            trigger.matches("[0-9]+") ? trigger : "", "" + (now - open.began), word);
    synchronized (Watch.class) {
      try {
        file.write(line + "\n");
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static String about(String[] fields) {
    return fields.length > 1 && fields[1] != null && fields[1].length() <= 36 ? fields[1] : "";
  }

  private static void flush() {
    try {
      while (true) {
        Thread.sleep(200);
        synchronized (Watch.class) {
          file.flush();
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Puts a watch around {@code Planner.ask}. */
  private static final class Timed implements ClassFileTransformer {
    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> old, ProtectionDomain domain, byte[] bytes) {
      if (!PLANNER.equals(name)) {
        return null;
      }
      ClassReader reader = new ClassReader(bytes);
      ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
      reader.accept(
          new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(int access, String method, String form, String generic, String[] thrown) {
              MethodVisitor next = super.visitMethod(access, method, form, generic, thrown);
              return method.equals("ask") ? new Around(next, access, method, form) : next;
            }
          },
          ClassReader.EXPAND_FRAMES);
      return writer.toByteArray();
    }
  }

  private static final class Around extends AdviceAdapter {
    Around(MethodVisitor next, int access, String method, String form) {
      super(Opcodes.ASM9, next, access, method, form);
    }

    @Override
    protected void onMethodEnter() {
      loadArg(0);
      invokeStatic(SELF, new Method("begin", "([Ljava/lang/String;)V"));
    }

    @Override
    protected void onMethodExit(int opcode) {
      if (opcode == ARETURN) {
        dup();
        invokeStatic(SELF, new Method("end", "(Ljava/lang/String;)V"));
      }
    }
  }
}
