"""Publishes where the sources of one run are, of those for which a group is named.

Spark asks for more of a source when the last batch has been committed. After the last one the checkpoint tells.
"""

from __future__ import annotations

from headgate_spark.engine.checkpoint_state import CheckpointState
from headgate_spark.engine.open_source import OpenSource
from headgate_spark.engine.open_sources import OpenSources
from headgate_spark.engine.services import Positions
from headgate_spark.engine.settings import Settings


class RunPositions:
    """The positions of one run; nothing is published where `positions` is missing."""

    def __init__(self, query: str, settings: Settings, positions: Positions | None) -> None:
        self._query = query
        self._settings = settings
        self._positions = positions

    def committed(self, opened: OpenSource, offset: str | None) -> None:
        """A source has committed up to `offset`, its own JSON; `None`: it has none yet."""
        group = self._settings.of_source(opened.name).publish_group
        if self._positions is None or group is None or offset is None or opened.descriptor.format != "kafka":
            return
        self._positions.committed(
            query=self._query,
            source=opened.name,
            group=group,
            options=opened.descriptor.options,
            offset=offset,
        )

    def ended(self, sources: OpenSources, state: CheckpointState) -> None:
        """The run has ended: publish where its last batch did. Raises what the file system raises."""
        if all(self._settings.of_source(opened.name).publish_group is None for opened in sources):
            return
        left = state.left()
        if not left.repeats:
            for opened, offset in sources.ends(left):
                self.committed(opened, offset)
