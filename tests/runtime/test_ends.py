"""What is said at the end of a driver, and with which code it ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headgate_spark.launch.command import SCRIPT_CUT, out_of_memory, report
from headgate_spark.runtime.answers import End

CUT = "query now was stopped before its end; start it again, and it goes on where it was stopped"
IN_USE = "checkpoint file:/ck is in use by the run with pid 4711"
TOO_LARGE = "query copy: batch 7 has failed 2 times for want of memory"
FAILED = "query copy: no such file"


@pytest.mark.parametrize(
    ("end", "code", "ends_with", "says"),
    [
        (End(), 0, 0, []),
        (End(), 3, 3, []),
        (End(explanations=[FAILED]), 1, 1, [FAILED]),
        (End(explanations=[FAILED]), 0, 0, []),
        (End(checkpoint_in_use=IN_USE), 1, 75, [IN_USE]),
        (End(checkpoint_in_use=IN_USE), 0, 0, []),
        (End(too_large=[TOO_LARGE]), 1, 76, [TOO_LARGE]),
        (End(too_large=[TOO_LARGE]), 0, 0, []),
        (End(too_large=[TOO_LARGE], gave_up=True), 0, 76, [TOO_LARGE]),
        (End(unnoted_memory=["copy"]), 1, 80, [out_of_memory(["copy"])]),
        (End(unnoted_memory=["copy"]), 0, 0, []),
        (End(unnoted_memory=["copy"], too_large=[TOO_LARGE]), 1, 76, [TOO_LARGE]),
        (End(cut_short=[CUT]), 0, 0, []),
    ],
)
def test_a_driver_that_nobody_stopped_ends_as_its_script_has_unless_there_is_more_to_tell(
    end: End, code: int, ends_with: int, says: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    stopper = SimpleNamespace(asked=False, is_unfinished=False)
    assert report(end, code, stopper) == ends_with  # type: ignore[arg-type]
    assert capsys.readouterr().err == "".join(f"headgate-run: error: {sentence}\n" for sentence in says)


@pytest.mark.parametrize(
    ("end", "unfinished", "code", "ends_with", "says"),
    [
        (End(), False, 0, 0, []),
        (End(), False, 1, 0, []),
        (End(), True, 79, 79, [SCRIPT_CUT]),
        (End(cut_short=[CUT]), True, 79, 79, [CUT]),
        (End(cut_short=[CUT]), False, 1, 79, [CUT]),
        (End(too_large=[TOO_LARGE]), False, 1, 0, []),
        (End(too_large=[TOO_LARGE], gave_up=True), False, 0, 76, [TOO_LARGE]),
        (End(unnoted_memory=["copy"]), False, 1, 0, []),
    ],
)
def test_a_driver_that_was_stopped_ends_well_unless_its_work_was_to_have_an_end(
    end: End, unfinished: bool, code: int, ends_with: int, says: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    stopper = SimpleNamespace(asked=True, is_unfinished=unfinished)
    assert report(end, code, stopper) == ends_with  # type: ignore[arg-type]
    assert capsys.readouterr().err == "".join(f"headgate-run: error: {sentence}\n" for sentence in says)
