"""One namespace's trouble stays there: an operator of two, to one of which the rights come and go."""

from __future__ import annotations

import pytest

from support.served import Served
from support.waiting import wait_until

pytestmark = pytest.mark.cluster
UNSERVED = "headgate_operator_namespaces_unserved"


@pytest.fixture
def other(served: Served) -> Served:
    """A second namespace, of another tenant."""
    return Served(served.cluster, served.cluster.namespace())


def test_a_namespace_without_its_rights_stops_no_other_and_is_taken_up_when_they_come(
    start, served: Served, other: Served
) -> None:
    kubeconfig = served.account()
    served.grant(other)
    both = f"{served.namespace},{other.namespace}"
    operator = start("--namespaces", both, kubeconfig=kubeconfig)
    assert other.namespace in operator.line("is not served")["event"]
    operator.begin_leading()
    other.declare("theirs")
    served.declare("ours")
    served.driver("ours")
    assert operator.metric(UNSERVED) == 1
    assert operator.probe("/readyz")[0] == 200
    assert other.pods("theirs") == []

    served.grant(other, to=other)
    other.driver("theirs")
    wait_until(lambda: operator.metric(UNSERVED) == 0, "nothing to be unserved")

    other.kubectl("delete", "rolebinding", "--all")
    wait_until(lambda: operator.metric(UNSERVED) == 1, "the loss of the rights to be noticed")
    served.declare("late")
    served.driver("late")
    assert operator.probe("/readyz")[0] == operator.probe("/healthz")[0] == 200

    served.grant(other, to=other)
    wait_until(lambda: operator.metric(UNSERVED) == 0, "the namespace to be served again")
    other.declare("again")
    other.driver("again")
    assert operator.stop() == 0
