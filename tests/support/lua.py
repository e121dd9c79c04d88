"""Argo CD's Lua, run as Argo CD runs it: an object as the global `obj`, the script's value as the answer.

Argo CD has Lua 5.1 in Go; this is the original Lua 5.1, so scripts keep to what both have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lupa.lua51 import LuaRuntime, lua_type


def run(script: str, obj: Mapping[str, Any]) -> Any:
    """Run a script over an object and return what it returns; a list that is empty comes back as an object."""
    lua = LuaRuntime(register_eval=False)
    lua.globals().obj = _to_lua(lua, obj)
    return _from_lua(lua.execute(script))


def _to_lua(lua: LuaRuntime, value: Any) -> Any:
    if isinstance(value, Mapping):
        return lua.table_from({name: _to_lua(lua, child) for name, child in value.items()})
    if isinstance(value, list):
        return lua.table_from([_to_lua(lua, child) for child in value])
    return value


def _from_lua(value: Any) -> Any:
    if lua_type(value) != "table":
        return value
    items = {key: _from_lua(child) for key, child in value.items()}
    if items and set(items) == set(range(1, len(items) + 1)):
        return [items[place] for place in sorted(items)]
    return items
