package dev.headgate.spark;

/** Classes of ours that refer to what another loader sees, and to this package even where the jar was added beside that loader. */
class LinkedBelow extends ClassLoader {
  LinkedBelow(ClassLoader parent) {
    super(parent);
  }

  /** Whether a name leads to this very class there. */
  boolean sees(Class<?> type) {
    try {
      return loadClass(type.getName()) == type;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }

  Class<?> define(String name, byte[] code) {
    return defineClass(name, code, 0, code.length);
  }

  @Override
  protected Class<?> findClass(String name) throws ClassNotFoundException {
    return name.startsWith("dev.headgate.spark.") ? Class.forName(name) : super.findClass(name);
  }
}
