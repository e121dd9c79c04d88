package dev.headgate.spark;

import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * Classes as the planner's process names them: those that the session's first thread saw, and those that sources have brought.
 *
 * <p>The planner asks Kafka by the client of the connector, and that may have come with {@code ADD JAR} or an artifact of Connect,
 * through a loader that there was not yet when the gateway was opened. Then the source that was made of it knows the way.
 */
final class SourceClasses extends ClassLoader {
  private static final Set<ClassLoader> LOADERS = Collections.newSetFromMap(Collections.synchronizedMap(new WeakHashMap<>()));

  SourceClasses(ClassLoader first) {
    super(first);
  }

  /**
   * Finds none that is named like the first part of a package. Py4J asks for {@code org} and {@code org.apache} on the way to a class,
   * and the loader of a Scala shell looks a bare name up in its compiler, which breaks what the shell's own thread compiles just then.
   * A class without a package may well be asked for: a callback or a login module that Kafka's options name.
   */
  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (name.indexOf('.') < 0 && Character.isLowerCase(name.charAt(0))) {
      throw new ClassNotFoundException(name);
    }
    return super.loadClass(name, resolve);
  }

  /** Notes where a source has come from. */
  static void of(Object source) {
    ClassLoader loader = source.getClass().getClassLoader();
    if (loader != null) {
      LOADERS.add(loader);
    }
  }

  @Override
  protected Class<?> findClass(String name) throws ClassNotFoundException {
    for (ClassLoader loader : LOADERS.toArray(new ClassLoader[0])) {
      try {
        return loader.loadClass(name);
      } catch (ClassNotFoundException e) {
        continue; // perhaps by another one
      }
    }
    throw new ClassNotFoundException(name);
  }
}
