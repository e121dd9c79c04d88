"""Where the JVM looks for the classes that the planner's process names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_name_like_a_package_is_not_asked_of_the_session_whose_shell_may_be_compiling(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`IMain`, the shell of Scala, looks a bare name up in its compiler, which takes one thread at a time."""
    for package, name in (("", "bare"), ("", "Handler"), ("package there;", "Packaged")):
        source = tmp_path / f"{name}.java"
        source.write_text(f"{package} public class {name} {{}}")
        subprocess.run(["javac", "-d", tmp_path, source], check=True)
    jvm, new_array = spark._jvm, spark.sparkContext._gateway.new_array
    urls = new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(tmp_path)).toURI().toURL()
    session = jvm.java.net.URLClassLoader(urls)
    make = jvm.java.lang.Class.forName("dev.headgate.spark.SourceClasses").getDeclaredConstructors()[0]
    make.setAccessible(True)
    given = new_array(jvm.java.lang.Object, 1)
    given[0] = session
    planner = make.newInstance(given)

    assert planner.loadClass("Handler").getName() == "Handler"
    assert planner.loadClass("there.Packaged").getName() == "there.Packaged"
    assert session.loadClass("bare").getName() == "bare"
    with pytest.raises(Py4JJavaError, match="ClassNotFoundException: bare"):
        planner.loadClass("bare")
