"""What an API server has said to Spark, as a sentence that is the same for each executor."""

from __future__ import annotations

import pytest

from headgate_spark.engine.executors import LONGEST_REFUSAL, REFUSAL_SECONDS, current

AT = 1_700_000_000.0
OF_SPARK = (
    'Failure executing: POST at: https://10.96.0.1/api/v1/namespaces/etl/pods. Message: pods "flights-1-exec-{n}" '
    "is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2. Received status: "
    "Status(apiVersion=v1, code=403, details=StatusDetails(causes=[], group=null, kind=pods), status=Failure)."
)


def heard(said: str, at: float = AT) -> str:
    return f"{at * 1000:.0f} {said}"


def test_it_is_the_api_servers_own_sentence_and_names_no_pod() -> None:
    told = {current(heard(OF_SPARK.format(n=n)), AT) for n in range(3)}
    assert told == {
        "pods is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"
    }


def test_what_does_not_come_from_the_api_server_is_told_as_it_is() -> None:
    assert current(heard("Connection refused:\n  10.96.0.1"), AT) == "Connection refused: 10.96.0.1"


@pytest.mark.parametrize(
    ("age", "counts"), [(-5.0, True), (REFUSAL_SECONDS, True), (REFUSAL_SECONDS + 1, False)]
)
def test_it_counts_for_a_minute(age: float, counts: bool) -> None:
    assert (current(heard("no", AT - age), AT) is not None) == counts


def test_nothing_was_said() -> None:
    assert current("", AT) is None


def test_a_long_one_is_cut() -> None:
    told = current(heard("x" * 10_000), AT)
    assert told is not None
    assert len(told) == LONGEST_REFUSAL
