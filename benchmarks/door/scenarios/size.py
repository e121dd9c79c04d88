"""How large the driver side is, beside what it was before jobs were governed by one jar and one property.

Lines of Python and Java are counted in both trees by one rule: what is committed under `spark_jobs`, but for the
jobs, which are examples, and the scripts that build the jar; blank lines do not count, all others do. The largest
class is that with the most methods, in Python by `def` in its body, in Java by the methods and constructors that the
compiled class has, but for those that the compiler makes.
"""

from __future__ import annotations

import ast
import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.door.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Goal, Measured
from headgate_spark.engine.shim import jar_path

BEFORE = "884de7b"
ROOT = "spark_jobs"
LEFT_OUT = re.compile(r"spark_jobs/(jobs/.*|shim/[^/]*)")
KINDS = (".py", ".java")


def measure(bench: Bench) -> dict[str, Measured]:
    """Count."""
    now, before = lines("HEAD"), lines(BEFORE)
    methods = dict(sorted([*of_python(), *of_java()], key=lambda each: each[1]))
    largest = list(methods)[-5:]
    bench.tell(f"{sum(now.values())} lines, before {sum(before.values())}; largest class {largest[-1]}")
    details = {
        f"{name}{kind}": count[kind] for name, count in (("now", now), ("before", before)) for kind in KINDS
    }
    return {
        "driver_side_lines": Measured(
            [sum(now.values()) / sum(before.values())], details | {"before_is": BEFORE}
        ),
        "largest_class_methods": Measured(
            [methods[largest[-1]]], {"largest": {name: methods[name] for name in largest}}
        ),
    }


def lines(commit: str) -> dict[str, int]:
    """Return how many lines a commit has, by the ending of the file. Raises CalledProcessError if there is none."""
    found = dict.fromkeys(KINDS, 0)
    for name in git("ls-tree", "-r", "--name-only", commit, ROOT).splitlines():
        if name.endswith(KINDS) and not LEFT_OUT.fullmatch(name):
            text = git("show", f"{commit}:{name}")
            found[Path(name).suffix] += sum(1 for line in text.splitlines() if line.strip())
    return found


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=60, check=True).stdout


def of_python(root: str = ROOT) -> Iterator[tuple[str, int]]:
    """Yield each class of Python and how many methods are written in it."""
    for file in Path(root).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                written = [
                    each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
                yield f"{file.stem}.{node.name}", len(written)


def of_java() -> Iterator[tuple[str, int]]:
    """Yield each class of the shim and how many methods are written in it."""
    with zipfile.ZipFile(jar_path()) as jar:
        names = [name for name in jar.namelist() if name.endswith(".class")]
    command = ["javap", "-p", "-cp", str(jar_path()), *(name[:-6].replace("/", ".") for name in names)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    for text in answer.split("Compiled from")[1:]:
        name = re.search(r"(?:class|interface) ([\w.$]+)", text)
        if name is not None:
            methods = [
                line
                for line in text.splitlines()
                if "(" in line and not re.search(r"lambda\$|access\$", line)
            ]
            yield name[1].removeprefix("dev.headgate.spark."), len(methods)


SCENARIO = Scenario(
    "size",
    (
        Figure("driver_side_lines", "ratio", Goal("<=", 0.8)),
        Figure("largest_class_methods", "methods", Goal("<=", 25)),
    ),
    measure,
    ("spark_jobs",),
)
