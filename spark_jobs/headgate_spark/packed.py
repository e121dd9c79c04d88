"""Long text from the JVM, which the shim deflates so that Py4J sends it at once (`Packed.java` says why)."""

from __future__ import annotations

import base64
import zlib

_MARK = "deflated:"


def unpacked(text: str) -> str:
    """Return a text as it was before the shim made it shorter; one that was short enough is as it was."""
    if not text.startswith(_MARK):
        return text
    return zlib.decompress(base64.b64decode(text.removeprefix(_MARK))).decode()
