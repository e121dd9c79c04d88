"""Whether the CRD in the cluster is that of this operator: its fields, and the values that one may have.

Two versions meet whenever one of them is upgraded first. A field that only the operator knows is dropped by the API
server where a person sets it, and a status that has one is refused as a whole, so that no driver would ever start. So
is a status with a value that only the operator knows: nothing could be done for an application that comes to it. A
field that only the CRD knows is a setting that this operator would not act on: a resource that sets it is refused
(`InvalidSpec`), and its driver left as it is. With its default, which the API server fills in, it counts as not set.

The API server publishes the fields of a CRD to whoever may sign in, so that no right to CRDs is needed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from headgate.api.crd import custom_resource_definition, described
from headgate.api.schema import Schema
from headgate.api.wording import listed

INSTALL_CRD = "install this version's: headgate crd | kubectl apply --server-side -f -"

Path: TypeAlias = tuple[str, ...]
"""Where a field is, or a value of it: `spec` or `status`, and each step from there as it is shown (`.queries`, `[]`,
`.live`, `.mode`, `: RealTime`)."""


@dataclass(frozen=True, slots=True)
class CrdDifference:
    """The fields that one side has and the other has not, and the values of a field."""

    lacking: tuple[Path, ...]
    """Known to the operator alone."""
    unheard_of: tuple[Path, ...]
    """Known to the CRD alone."""

    def in_the_way(self, version: str) -> str:
        """Return why this operator cannot work with the CRD; empty: it can."""
        of_status = [path for path in self.lacking if path[0] == "status"]
        if not of_status:
            return ""
        return (
            f"the CRD is older than this operator ({version}): it lacks {shown(of_status)}, so that a status "
            f"could not be written; {INSTALL_CRD}"
        )

    def warnings(self, version: str) -> Iterator[str]:
        """Yield what people should know of the difference, although it is in nobody's way."""
        of_spec = [path for path in self.lacking if path[0] == "spec"]
        if of_spec:
            yield (
                f"the CRD is older than this operator ({version}): no resource can have {shown(of_spec)}, which "
                f"the API server drops or refuses; {INSTALL_CRD}"
            )
        if new := [path for path in self.unheard_of if path[0] == "spec"]:
            yield (
                f"the CRD is newer than this operator ({version}), which does not know {shown(new)}; a resource "
                "that sets one of them is refused (InvalidSpec) until the operator is upgraded"
            )


def difference(document: Mapping[str, Any]) -> CrdDifference | None:
    """Compare the CRD that is described by an OpenAPI document with ours; `None` where it describes none."""
    found = described(document)
    if found is None:
        return None
    (version,) = custom_resource_definition()["spec"]["versions"]
    ours = version["schema"]["openAPIV3Schema"]
    return CrdDifference(lacking=_only_in(ours, found), unheard_of=_only_in(found, ours))


def shown(paths: Iterable[Path]) -> str:
    return listed("".join(path) for path in paths)


def _only_in(one: Schema, other: Schema) -> tuple[Path, ...]:
    """Return what one schema has and the other has not; of a field that is not there, nothing that is in it."""
    fields, others = one.get("properties", {}), other.get("properties", {})
    parts = ("spec", "status")
    return tuple(
        sorted(path for part in parts for path in _below((part,), fields.get(part, {}), others.get(part, {})))
    )


def _below(path: Path, one: Schema, other: Schema) -> Iterator[Path]:
    if values := other.get("enum"):  # else it takes any
        yield from ((*path, f": {value}") for value in one.get("enum", ()) if value not in values)
    others = other.get("properties", {})
    for name, child in one.get("properties", {}).items():
        field = (*path, f".{name}")
        if name in others:
            yield from _below(field, child, others[name])
        else:
            yield field
    if "items" in one:
        yield from _below((*path, "[]"), one["items"], other.get("items", {}))
