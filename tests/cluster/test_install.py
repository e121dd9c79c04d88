"""docs/install.md, followed literally: what it tells a newcomer to type works, and shows what it says."""

from __future__ import annotations

import json
import re

import pytest

from support.guide import Guide, Terminal
from support.node import NodeCluster
from support.schemas import prometheus_operator_crds
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.node, pytest.mark.spark]
CHAPTERS = True


@pytest.fixture(scope="module")
def terminal(nodes: NodeCluster, guide: Guide, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    return Terminal(nodes, tmp_path_factory.mktemp("checkout"), guide.variables())


def shown(table: str) -> list[str]:
    """The state, backlog and interval of each row: what does not differ each time. The example has no lag."""
    return re.findall(r"^readings +(\w+ +\w+ +\w+)", re.sub(" +", " ", table), re.MULTILINE)


def test_the_operator_is_installed(terminal: Terminal, guide: Guide) -> None:
    printed = terminal.follow(guide.commands("2. The operator"))

    assert 'deployment "headgate" successfully rolled out' in "".join(printed.values())


def test_the_example_clears_its_backlog_and_looks_as_the_page_shows_it(
    terminal: Terminal, guide: Guide
) -> None:
    apply, look = guide.commands("3. An application")[:2], guide.commands("3. An application")[2:]
    terminal.follow(apply)
    printed = terminal.follow(look, until=r"PendingRecords +20s .*Running +No +2s ")

    (table,) = [text for command, text in printed.items() if "--watch" in command]
    missing = [row for row in shown(guide.shown("3. An application")) if row not in shown(table)]
    assert missing == [], table
    assert "BacklogLeft" in printed["kubectl describe hgapp readings"]
    assert "readings-driver-1" in printed["kubectl get pods -l headgate.dev/application=readings"]
    assert "hot" in printed["kubectl headgate status readings"]


def test_it_changes_live_and_stops_and_goes_on(terminal: Terminal, guide: Guide) -> None:
    printed = terminal.follow(guide.commands("4. Changing it live"))

    assert re.search(
        r"live .*intervalDuringBacklog", printed["headgate explain --diff app/readings readings.yaml"]
    )


def test_monitoring_is_turned_on(terminal: Terminal, guide: Guide, nodes: NodeCluster) -> None:
    for definition in prometheus_operator_crds():
        nodes.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition))

    printed = terminal.follow(guide.commands("5. With Prometheus"))

    assert "has been upgraded" in "".join(printed.values())


def test_it_is_left_again(terminal: Terminal, guide: Guide, nodes: NodeCluster) -> None:
    terminal.follow(guide.commands("6. Leaving"))

    of_it = ("pods,configmaps", "-l", "headgate.dev/application=readings", "-o", "name")
    wait_until(lambda: not nodes.kubectl("get", *of_it), "the end of what was the example's")
