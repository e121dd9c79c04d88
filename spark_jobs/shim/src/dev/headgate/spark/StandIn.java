package dev.headgate.spark;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.Type;
import org.apache.xbean.asm9.commons.GeneratorAdapter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes {@link Governed} stand-ins for tables, scans and streams of any class.
 *
 * <p>Spark asks for each of a dozen optional interfaces with {@code instanceof}, so a stand-in has exactly those of its delegate. Why the
 * class is generated, and is no {@link java.lang.reflect.Proxy}, is in the README of the shim.
 */
final class StandIn {
  private static final Logger LOG = LoggerFactory.getLogger(StandIn.class);
  private static final Type BASE = Type.getType(Governed.class);
  private static final Type HANDLER = Type.getType(Governed.Handler.class);
  private static final Type METHODS = Type.getType(Method[].class);
  private static final org.apache.xbean.asm9.commons.Method CALL = org.apache.xbean.asm9.commons.Method.getMethod("Object call (java.lang.reflect.Method, Object[])");
  private static final org.apache.xbean.asm9.commons.Method CONSTRUCTOR = org.apache.xbean.asm9.commons.Method.getMethod("void <init> (Object, Object)");

  private StandIn() {}

  /**
   * Returns an object with the public interfaces of the delegate and the added ones, which sends each call to the handler. Where
   * that cannot be made, it returns the delegate: a source that runs ungoverned, and says so, is better than one that is broken.
   */
  static Object of(Object delegate, Governed.Handler handler, Class<?>... added) {
    LinkedBelow loader = new LinkedBelow(delegate.getClass().getClassLoader());
    Set<Class<?>> interfaces = new LinkedHashSet<>(Arrays.asList(added));
    for (Class<?> c = delegate.getClass(); c != null; c = c.getSuperclass()) {
      collect(c.getInterfaces(), loader, interfaces);
    }
    List<Method> methods = methodsOf(interfaces);
    String name = "dev.headgate.spark.generated." + delegate.getClass().getSimpleName().replaceAll("\\W", "_") + "StandIn";
    try {
      Class<?> type = loader.define(name, bytes(name.replace('.', '/'), interfaces, methods));
      type.getField("METHODS").set(null, methods.toArray(new Method[0]));
      return type.getConstructor(Object.class, Object.class).newInstance(delegate, handler);
    } catch (ReflectiveOperationException | LinkageError e) {
      LOG.warn("Headgate cannot stand in for {}, which therefore runs ungoverned", delegate.getClass().getName(), e);
      return delegate;
    }
  }

  private static void collect(Class<?>[] candidates, LinkedBelow loader, Set<Class<?>> into) {
    for (Class<?> c : candidates) {
      if (Modifier.isPublic(c.getModifiers()) && !c.isSealed() && loader.sees(c)) {
        into.add(c);
      }
      collect(c.getInterfaces(), loader, into);
    }
  }

  private static List<Method> methodsOf(Set<Class<?>> interfaces) {
    Map<String, Method> bySignature = new LinkedHashMap<>();
    for (Class<?> c : interfaces) {
      for (Method m : c.getMethods()) {
        if (!Modifier.isStatic(m.getModifiers()) && !isObjects(m)) {
          bySignature.putIfAbsent(m.getName() + Type.getMethodDescriptor(m), m);
        }
      }
    }
    return new ArrayList<>(bySignature.values());
  }

  private static boolean isObjects(Method m) {
    return Arrays.stream(Governed.class.getMethods())
        .anyMatch(o -> o.getName().equals(m.getName()) && Arrays.equals(o.getParameterTypes(), m.getParameterTypes()));
  }

  private static byte[] bytes(String name, Set<Class<?>> interfaces, List<Method> methods) {
    ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
    String[] parents = interfaces.stream().map(Type::getInternalName).toArray(String[]::new);
    writer.visit(Opcodes.V17, Opcodes.ACC_PUBLIC | Opcodes.ACC_FINAL, name, null, BASE.getInternalName(), parents);
    writer.visitField(Opcodes.ACC_PUBLIC | Opcodes.ACC_STATIC, "METHODS", METHODS.getDescriptor(), null, null).visitEnd();
    constructor(writer);
    for (int i = 0; i < methods.size(); i++) {
      forwarder(writer, Type.getObjectType(name), methods.get(i), i);
    }
    writer.visitEnd();
    return writer.toByteArray();
  }

  private static void constructor(ClassWriter writer) {
    var code = new GeneratorAdapter(Opcodes.ACC_PUBLIC, CONSTRUCTOR, null, null, writer);
    code.loadThis();
    code.loadArgs();
    code.invokeConstructor(BASE, CONSTRUCTOR);
    code.returnValue();
    code.endMethod();
  }

  /** {@code return (R) handler.call(METHODS[index], new Object[] {arguments});} */
  private static void forwarder(ClassWriter writer, Type self, Method method, int index) {
    var signature = org.apache.xbean.asm9.commons.Method.getMethod(method);
    var code = new GeneratorAdapter(Opcodes.ACC_PUBLIC, signature, null, null, writer);
    code.loadThis();
    code.getField(BASE, "handler", HANDLER);
    code.getStatic(self, "METHODS", METHODS);
    code.push(index);
    code.arrayLoad(Type.getType(Method.class));
    code.loadArgArray();
    code.invokeInterface(HANDLER, CALL);
    if (signature.getReturnType() == Type.VOID_TYPE) {
      code.pop();
    } else {
      code.unbox(signature.getReturnType());
    }
    code.returnValue();
    code.endMethod();
  }
}
