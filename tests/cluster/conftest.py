"""Nodes that all tests of real pods share, and tests that are chapters of one story."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import copies
from support.guide import Guide
from support.node import NodeCluster, nodes_in
from support.node_images import our_images
from support.stock_image import stock_image


@pytest.fixture(scope="session")
def guide() -> Guide:
    """The way from nothing to a first application, as docs/install.md tells it."""
    return Guide.read()


@pytest.fixture(scope="package")
def nodes(tmp_path_factory: pytest.TempPathFactory, guide: Guide) -> Iterator[NodeCluster]:
    """Two nodes with our images, that of a job, and those that the guide pushes; the first has a stock Spark, too.

    A chart is to install our CRD.
    """
    operator, spark = our_images()
    folder = tmp_path_factory.mktemp("nodes")
    images = [operator, spark, copies.image(spark, folder), *guide.images(operator, spark, folder)]
    with nodes_in(folder, images=images, first=[stock_image(folder)], count=2, crds=False) as cluster:
        yield cluster


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Note that a chapter has failed: none that follows can be told."""
    if _is_chapter(item) and call.excinfo is not None and item.parent is not None:
        item.parent.stash.setdefault(FAILED, item.name)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Do not wait in vain for what a chapter before should have brought about."""
    if _is_chapter(item) and item.parent is not None and (failed := item.parent.stash.get(FAILED, None)):
        pytest.fail(f"{failed} has failed, and this goes on where that ends", pytrace=False)


FAILED = pytest.StashKey[str]()


def _is_chapter(item: pytest.Item) -> bool:
    return getattr(getattr(item, "module", None), "CHAPTERS", False)
