"""How many examples of a property a run of the tests tries."""

from hypothesis import settings

_USUAL = 100
"""Examples of a property that says nothing, in `make test`."""


def examples(usual: int) -> int:
    """Return how many to try of a property of which `make test` tries `usual`: fewer or more as the profile says."""
    return max(1, usual * settings.default.max_examples // _USUAL)
