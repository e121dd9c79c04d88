"""Numbers of records as people read them."""

from typing import Final

_SCALES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


LARGEST = 1e30
"""More than any log holds. A whole number of hundreds of digits, in a status of somebody else, is no float."""


def amount_text(value: float) -> str:
    """Write a number of records: `950`, `12.3k`, `4.05M`."""
    value = min(value, LARGEST)
    for scale, unit in _SCALES:
        if abs(value) >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}" if value % 1 else f"{value:.0f}"


def rate_text(value: float) -> str:
    """Write records per second: `68k/s`."""
    return f"{amount_text(value)}/s"
