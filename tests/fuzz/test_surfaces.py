"""Text of others, nearly right: it is read, or refused in words. Nothing else is raised, and nothing hangs.

Each surface is fed its examples, those that once found something among them, and changes of them that hypothesis
draws; `make chaos` feeds a million.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import fuzzing
from support.fuzzing import Defect, HangError, feed, kept, tried
from support.mutations import KINDS, Change, mutated
from support.surfaces import EXAMPLES, SURFACES, Surface

SHARES = st.floats(0, 1)
CHANGES = st.lists(
    st.tuples(st.integers(0, KINDS - 1), SHARES, SHARES, st.integers(0, 9_999)), min_size=1, max_size=4
)

by_surface = pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.name)


def test_every_surface_has_examples_and_every_example_its_surface() -> None:
    assert {folder.name for folder in EXAMPLES.iterdir()} == {surface.name for surface in SURFACES}
    assert all(surface.examples for surface in SURFACES)


@by_surface
def test_what_has_once_found_something_is_read_or_refused(surface: Surface) -> None:
    for example in surface.examples:
        defect = tried(surface, example)
        assert defect is None, defect.told


@by_surface
def test_what_is_nearly_right_is_read_or_refused(surface: Surface) -> None:
    examples = surface.examples

    @given(which=st.integers(0, len(examples) - 1), changes=CHANGES)
    def read_or_refused(which: int, changes: list[Change]) -> None:
        defect = tried(surface, mutated(examples[which], changes))
        assert defect is None, defect.told

    read_or_refused()


def test_a_defect_is_told_and_kept(tmp_path) -> None:
    def fails(raw: bytes) -> None:
        if len(raw) % 2:
            raise KeyError(len(raw))

    surface = Surface("duration", fails)
    fed = feed(surface, 100, seed=1, most_defects=3)
    file = kept(tmp_path, surface.name, fed.defects[0].content)

    assert len(fed.defects) == 3
    assert "KeyError" in fed.defects[0].told
    assert file.read_bytes() == fed.defects[0].content
    assert tried(Surface("duration", fails, (KeyError,)), fed.defects[0].content) is None


def test_the_input_that_takes_longest_whenever_it_is_fed_is_known(monkeypatch) -> None:
    fed_before: set[bytes] = set()

    def timed(_: Surface, content: bytes) -> tuple[Defect | None, float]:
        is_first_use = not fed_before
        fed_before.add(content)
        return None, 1e9 if is_first_use else len(content)

    monkeypatch.setattr(fuzzing, "_timed", timed)
    fed = feed(Surface("duration", len), 200, seed=1)

    assert fed.slowest_seconds == len(fed.slowest) == max(map(len, fed_before)) > 0


def test_what_hangs_is_a_defect(monkeypatch) -> None:
    def hangs(_raw: bytes) -> None:
        while True:
            pass

    monkeypatch.setattr("support.fuzzing.PROCESSOR_SECONDS", 0.05)
    defect = tried(Surface("duration", hangs), b"")

    assert defect is not None
    assert HangError.__name__ in defect.told


KEEPS = """
from support.fuzzing import feed
from support.surfaces import Surface
kept = []
for reader in (len, lambda _: kept.append(b"x" * 2**20)):
    print(round(feed(Surface("duration", reader), 100, seed=1).grown_mib))
"""


@pytest.mark.processes
def test_what_a_surface_keeps_of_its_inputs_is_counted() -> None:
    """In a process of its own, since it is counted by the most that a process has ever had."""
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", KEEPS], capture_output=True, text=True, check=True, env=os.environ | paths
    )
    nothing, everything = map(int, done.stdout.split())
    assert nothing < 50 < everything


def test_a_seed_draws_the_same_inputs_each_time() -> None:
    seen: list[list[bytes]] = [[], []]
    for one in seen:
        feed(Surface("duration", one.append), 50, seed=7)
    first = [list(dict.fromkeys(one)) for one in seen]  # one that takes long is fed again
    assert first[0] == first[1]
    assert len(first[0]) > 30
