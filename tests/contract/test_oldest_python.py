"""What the planner's process is on an older Python: any that is on the machine, and what is known of 3.9 anyway."""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib.util
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate_contract import newer
from support.parsing import parsed

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "spark_jobs"
OF_JOBS = ("headgate_spark/backfill/", "headgate_spark/launch/", "headgate_spark/sources/")
VERMIN = [Path(sys.executable).with_name("vermin"), "--no-tips", "--violations"]

TYPE = r"None|bool|bytes|dict|float|int|list|set|str|tuple|\w+\[.*\]|(\w+\.)*[A-Z]+[a-z]\w*"


def sources() -> list[str]:
    """The modules of the planner's process, but for the one that has what is newer."""
    files = [path for name in ("contract", "spark") for path in (SOURCES / f"headgate_{name}").rglob("*.py")]
    names = {path: path.relative_to(SOURCES).as_posix() for path in files}
    return [
        str(path) for path in files if not names[path].startswith(OF_JOBS) and path != Path(newer.__file__)
    ]


def evaluated_unions(text: str) -> list[str]:
    """The unions of types that are no annotations: Python 3.9 fails there, and Vermin does not see them."""
    tree = parsed(text)
    annotations = [
        part
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if part is not None
    ]
    left_alone = {id(node) for part in annotations for node in ast.walk(part)}
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and id(node) not in left_alone
        if any(re.fullmatch(TYPE, ast.unparse(side)) for side in (node.left, node.right))
    ]


@pytest.fixture(params=[(3, 9), (3, 10)], ids=["3.9", "3.10"])
def old(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What is newer, as an older Python has it."""
    return as_on(request.param, monkeypatch)


def as_on(version: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("newer_on_an_older_python", newer.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "version_info", version)
        spec.loader.exec_module(module)
    return module


def oldest() -> str:
    """The oldest Python with which the shim starts the planner's process."""
    text = (SOURCES / "shim" / "src" / "dev" / "headgate" / "spark" / "PlannerProgram.java").read_text()
    [found] = re.findall(r"sys\.version_info >= \((\d+), (\d+)\)", text)
    return ".".join(found)


def test_nothing_in_the_planner_needs_a_newer_python_than_the_shim_asks_for() -> None:
    done = subprocess.run(
        [*VERMIN, f"-t={oldest()}-", *sources()], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout


def test_no_union_of_types_is_evaluated() -> None:
    """A dictionary and a set have the same operator."""
    assert evaluated_unions(
        "X = str | None; isinstance(x, A | m.Bc); f(Y[int | None]); d | {1}; AB | {C.D}"
    ) == [
        "str | None",
        "A | m.Bc",
        "int | None",
    ]
    assert evaluated_unions("def f(x: int | None) -> A | None:\n  y: Bc | None = g") == []
    found = {path: evaluated_unions(Path(path).read_text()) for path in sources()}
    assert {path: unions for path, unions in found.items() if unions} == {}


def test_what_is_carried_and_what_is_checked_goes_as_far_back_as_the_shim() -> None:
    assert f'OLDEST_PYTHON = "{oldest()}"' in (SOURCES / "shim" / "vendored.py").read_text()
    targets = re.findall(r'"spark_jobs/\S+" = "(py\d+)"', (ROOT / "pyproject.toml").read_text())
    assert {*targets} == {f"py{oldest().replace('.', '')}"}


def test_on_this_python_it_is_what_the_standard_library_has() -> None:
    assert newer.StrEnum is enum.StrEnum
    assert newer.dataclass is dataclasses.dataclass
    assert newer.moment_in == datetime.fromisoformat


def test_a_text_of_an_enumeration_is_written_as_what_it_says(old: ModuleType) -> None:
    for kind in (old.StrEnum, enum.StrEnum):

        class Kind(kind):  # type: ignore[misc,valid-type]
            FEW = "a few"
            MANY = enum.auto()

        assert (str(Kind.FEW), f"{Kind.FEW:>6}", "%s" % Kind.MANY) == ("a few", " a few", "many")  # noqa: UP031
        assert Kind.FEW == "a few"
        assert Kind("many") is Kind.MANY
        assert {"a few": 1}[Kind.FEW] == 1


def test_a_class_of_fields_keeps_what_else_was_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    old = as_on((3, 9), monkeypatch)

    @old.dataclass(frozen=True, slots=True, kw_only=True)  # type: ignore[untyped-decorator]
    class Point:
        x: int
        y: int = 2

    point = Point(x=1)
    assert dataclasses.replace(point, y=3) == Point(x=1, y=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2


def clocks(separator: str) -> st.SearchStrategy[str]:
    part = st.integers(0, 61).map("{:02}".format)
    parts = st.tuples(st.integers(0, 25).map("{:02}".format), part, part)
    digits = st.sampled_from(["", ".5", ",25", ".123", ".123456", ".123456789"])
    whole = st.builds(lambda p, d: separator.join(p) + d, parts, digits)
    return st.one_of(whole, parts.map(lambda p: separator.join(p[:2])), parts.map(lambda p: p[0]))


DATES = st.one_of(
    st.dates().map(lambda day: day.isoformat()),
    st.dates().map(lambda day: f"{day:%Y%m%d}".rjust(8, "0")),
    st.builds("{:04}-W{:02}-{}".format, st.integers(1, 9999), st.integers(0, 54), st.integers(0, 8)),
    st.builds("{:04}W{:02}{}".format, st.integers(1, 9999), st.integers(0, 54), st.integers(0, 8)),
    st.builds("{:04}-{:02}-{:02}".format, st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32)),
)
CLOCKS = st.sampled_from([":", ""]).flatmap(clocks)
ZONES = st.one_of(st.sampled_from(["", "Z"]), st.builds("{}{}".format, st.sampled_from("+-"), CLOCKS))
TEXTS = st.one_of(
    DATES,
    st.builds("{}{}{}{}".format, DATES, st.sampled_from("T t_"), CLOCKS, ZONES),
    st.text("0123456789-:+TWZ.", max_size=30),
)


def read(by: object, text: str) -> datetime | None:
    try:
        return by(text)  # type: ignore[operator,no-any-return]
    except ValueError:
        return None


@example("2013-11-25T08:00:00.000Z")
@example("20131125T080000,5+0530")
@example("2013-W48-1T08")
@given(TEXTS)
def test_moments_are_read_in_all_forms_that_a_newer_python_reads(text: str) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        old = as_on((3, 9), monkeypatch)
    ours, theirs = read(old.moment_in, text), read(datetime.fromisoformat, text)
    assert ours == theirs
    assert (ours and ours.utcoffset()) == (theirs and theirs.utcoffset())
