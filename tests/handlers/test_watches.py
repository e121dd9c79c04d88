"""What Kopf is given: it keeps nothing of the objects that it hands on."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any
from unittest.mock import Mock

import kopf
import pytest
from kopf._core.reactor.inventory import ResourceMemories

from headgate.handlers.service import Service
from headgate.settings import Settings


def test_kopf_remembers_no_object_which_it_would_for_ever_where_one_vanished_unheard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}

    async def spawn_tasks(**arguments: Any) -> Collection[asyncio.Task[Any]]:
        given.update(arguments)
        return []

    async def run_tasks(*_: Any, **__: Any) -> None:
        """There are none."""

    async def heard() -> None:
        settings = Settings(namespaces=("team",))
        await Service(Mock(), settings, Mock(), Mock(), Mock(), Mock(), Mock(), lambda: None)._watch()
        memories: ResourceMemories = given["memories"]
        for uid in ("1", "2"):
            body: Any = {"metadata": {"uid": uid}}
            assert (await memories.recall(body, noticed_by_listing=True)).noticed_by_listing
        assert not list(memories.iter_all_memories())

    monkeypatch.setattr(kopf, "spawn_tasks", spawn_tasks)
    monkeypatch.setattr(kopf, "run_tasks", run_tasks)
    asyncio.run(heard())
