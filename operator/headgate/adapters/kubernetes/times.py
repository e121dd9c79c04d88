"""Moments as the API server writes them, and as Unix time."""

from datetime import UTC, datetime


def unix_time(text: str) -> float:
    """Return an RFC 3339 moment as Unix time."""
    return datetime.fromisoformat(text).timestamp()


def rfc3339(unix: float) -> str:
    """Return a Unix time to the second, as `metav1.Time` has it."""
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
