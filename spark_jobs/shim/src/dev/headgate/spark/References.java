package dev.headgate.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.Handle;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;

/** What a class file of ours names: fields, methods and constructors, each with the signature that it was compiled against. */
final class References extends ClassVisitor {
  private static final String CONSTRUCTOR = "<init>";

  private final Set<Handle> named = new LinkedHashSet<>();

  private References() {
    super(Opcodes.ASM9);
  }

  /**
   * Looks for all that a class names, and for what it leaves abstract, as the JVM does where it comes to it: in a task.
   *
   * @throws ReflectiveOperationException as {@link LinkageError}, or {@link TypeNotPresentException}: this is not there
   */
  static void check(Class<?> type, byte[] code) throws ReflectiveOperationException {
    var found = new References();
    new ClassReader(code).accept(found, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
    Lookup from = MethodHandles.privateLookupIn(type, MethodHandles.lookup());
    for (Handle each : found.named) {
      look(each, from);
    }
    for (Method each : type.getMethods()) {
      if (Modifier.isAbstract(each.getModifiers())) {
        throw new AbstractMethodError(each.toString());
      }
    }
  }

  private static void look(Handle named, Lookup from) throws ReflectiveOperationException {
    Class<?> owner = from.findClass(named.getOwner().replace('/', '.'));
    String name = named.getName();
    boolean isMethod = named.getDesc().startsWith("(");
    var type = MethodType.fromMethodDescriptorString(isMethod ? named.getDesc() : "()" + named.getDesc(), from.lookupClass().getClassLoader());
    if (name.equals(CONSTRUCTOR)) {
      owner.getDeclaredConstructor(type.parameterArray()); // one of a superclass may be protected, and is not found otherwise
    } else if (isMethod && named.getTag() == Opcodes.H_INVOKESTATIC) {
      from.findStatic(owner, name, type);
    } else if (isMethod) {
      from.findVirtual(owner, name, type);
    } else if (named.getTag() == Opcodes.H_GETSTATIC) {
      from.findStaticGetter(owner, name, type.returnType());
    } else {
      from.findGetter(owner, name, type.returnType());
    }
  }

  @Override
  public MethodVisitor visitMethod(int access, String method, String signature, String generic, String[] exceptions) {
    return new MethodVisitor(Opcodes.ASM9) {
      @Override
      public void visitFieldInsn(int opcode, String owner, String name, String type) {
        boolean isStatic = opcode == Opcodes.GETSTATIC || opcode == Opcodes.PUTSTATIC;
        named.add(new Handle(isStatic ? Opcodes.H_GETSTATIC : Opcodes.H_GETFIELD, owner, name, type, false));
      }

      @Override
      public void visitMethodInsn(int opcode, String owner, String name, String type, boolean isInterface) {
        int tag = opcode == Opcodes.INVOKESTATIC ? Opcodes.H_INVOKESTATIC : Opcodes.H_INVOKEVIRTUAL;
        named.add(new Handle(tag, owner, name, type, isInterface));
      }

      @Override
      public void visitInvokeDynamicInsn(String name, String type, Handle maker, Object... arguments) {
        for (Object each : arguments) {
          if (each instanceof Handle handle) {
            named.add(handle);
          }
        }
      }
    };
  }
}
