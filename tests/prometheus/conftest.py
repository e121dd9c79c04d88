from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.fleet import Fleet, labelled_scraping
from support.prometheus import Exposed, Prometheus, exposed, prometheus


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, Exposed]]:
    folder: Path = tmp_path_factory.mktemp("prometheus")
    with (
        exposed() as target,
        prometheus(folder, config=labelled_scraping(drivers=[target.address])) as server,
    ):
        yield server, target


@pytest.fixture
def fleet(running: tuple[Prometheus, Exposed]) -> Iterator[Fleet]:
    made = Fleet(*running)
    with ExitStack() as stack:
        yield made
        for poller in made.pollers:
            stack.callback(poller.close)
    made.say()
