"""What a governed query is compared with: a table, of which each scenario takes its rows.

Spark has its default, caps of several sizes, and a batch job. Flink has each of its state backends with a checkpoint
every few seconds and every minute, and where SQL combines rows, with mini-batches and without; all with object reuse,
and RocksDB with bloom filters, which its documentation advises. ForSt has asynchronous state, on the local disk, with
the longer interval and no mini-batches. The fastest of a group in each round is what counts.
A screening runs all of them once, and says which take part in the rounds (`screening`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import product
from typing import Final

from benchmarks.backlog.flink.settings import BATCH, MINI_BATCH, STREAMING
from benchmarks.backlog.rounds import Variant

SMALLEST: Final = "plain_50k"
CAPS: Final = {SMALLEST: 50_000, "plain_500k": 500_000, "plain_5m": 5_000_000}
BACKENDS: Final = ("hashmap", "rocksdb")
CHECKPOINTS: Final = {"5s": "5 s", "60s": "60 s"}
TUNED: Final = {"pipeline.object-reuse": "true", "state.backend.rocksdb.use-bloom-filter": "true"}
"""Both are off by default; the second is `RocksDBConfigurableOptions.USE_BLOOM_FILTER` of Flink 2.3.0."""
COMBINED: Final = ("", "mini")
"""Without mini-batches and with them."""
ASYNCHRONOUS: Final = "flink_forst_60s"
FLINK_BATCH: Final = "flink_batch"
REAL_TIME, PLAIN_REAL_TIME = "headgate_real_time", "plain_real_time"
"""Governed and live in real-time mode, and that mode alone."""


def name(backend: str, checkpoint: str, combined: str) -> str:
    """Return what a way to set Flink is called."""
    return "_".join(part for part in ("flink", backend, checkpoint, combined) if part)


def settings(backend: str, checkpoint: str, combined: str) -> dict[str, str]:
    """Return what Flink is set to in one way, but what is ForSt's own."""
    return {
        **(MINI_BATCH if combined else STREAMING),
        **TUNED,
        "state.backend.type": backend,
        "execution.checkpointing.interval": CHECKPOINTS[checkpoint],
        "execution.checkpointing.incremental": str(backend != "hashmap").lower(),
    }


FLINK: Final[Mapping[str, Mapping[str, str]]] = {
    name(*way): settings(*way) for way in product(BACKENDS, CHECKPOINTS, COMBINED)
} | {
    ASYNCHRONOUS: {
        **settings("forst", "60s", ""),
        "state.backend.forst.primary-dir": "local-dir",
        "state.backend.forst.use-bloom-filter": "true",
        "table.exec.async-state.enabled": "true",
    },
    FLINK_BATCH: BATCH | {"pipeline.object-reuse": "true"},
}
"""All ways to set Flink, by their names, which are those of engines, too."""


def ways(backends: tuple[str, ...] = BACKENDS, *, combined: bool) -> tuple[str, ...]:
    """Return the names of the ways with some backends, and with mini-batches where they apply."""
    return tuple(name(*way) for way in product(backends, CHECKPOINTS, COMBINED if combined else COMBINED[:1]))


def streams(*, combined: bool) -> tuple[str, ...]:
    """Return the names of all ways to stream: on each backend, and with asynchronous state."""
    return (*ways(combined=combined), ASYNCHRONOUS)


def streaming(names: Iterable[str], *, once: Collection[str] = ()) -> tuple[Variant, ...]:
    """Return the variants of some ways, of which those of `once` run in the first round alone."""
    return tuple(Variant(way, way, one_by_one=True, once=way in once) for way in names)


def capped(names: Iterable[str] = tuple(CAPS), *, once: bool = False) -> tuple[Variant, ...]:
    """Return plain Spark with some caps, which run in each round, or `once`."""
    return tuple(Variant(name, records_per_batch=CAPS[name], once=once) for name in names)
