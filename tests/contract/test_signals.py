"""Which signals ask for a stop once more: a fake clock, and no signal."""

from signal import SIGINT, SIGTERM

import pytest

from headgate_contract.signals import StopSignals


@pytest.mark.parametrize(
    ("came", "wishes"),
    [
        ([(0.0, SIGTERM)], 1),
        ([(0.0, SIGTERM), (0.0, SIGTERM)], 1),
        ([(0.0, SIGTERM), (0.9, SIGTERM)], 1),
        ([(0.0, SIGTERM), (1.0, SIGTERM)], 2),
        ([(0.0, SIGINT), (0.0, SIGTERM)], 2),
        ([(0.0, SIGINT), (0.1, SIGTERM), (0.2, SIGINT), (0.3, SIGTERM)], 2),
        ([(0.4 * presses, SIGINT) for presses in range(4)], 2),
    ],
    ids=[
        "one",
        "delivered to the process and to its group",
        "shortly after",
        "later",
        "another kind is another wish",
        "two kinds, each delivered twice",
        "who presses again and again is heard",
    ],
)
def test_a_signal_right_after_one_of_its_kind_is_the_same_wish(
    came: list[tuple[float, int]], wishes: int
) -> None:
    times = iter(at for at, _ in came)
    signals = StopSignals(clock=lambda: next(times))
    assert sum(signals.is_new_wish(number) for _, number in came) == wishes
