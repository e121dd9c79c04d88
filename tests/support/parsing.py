"""Python text as a tree, whatever other threads do.

Until 3.11.8 Python counts how deep a tree is in one place for all threads
(https://github.com/python/cpython/issues/106905). A finalizer that the garbage collector runs in the middle gives
another thread its turn, and where that parses, as `traceback` does to place its carets, the first one fails:
`SystemError: AST constructor recursion depth mismatch`.
"""

from __future__ import annotations

import ast
import gc


def parsed(text: str) -> ast.Module:
    """Return the tree; nothing is collected meanwhile, so that no other thread has a turn. Raises SyntaxError."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if collects:
            gc.enable()
