"""Headgate: clears a Structured Streaming backlog at batch speed and runs live at stream latency."""

__version__ = "0.1.0"
