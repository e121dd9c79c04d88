"""Whether the CRD in the cluster is that of this operator: its fields, and the values that one may have.

Two versions meet whenever one of them is upgraded first. A field that only the operator knows is dropped by the API
server where a person sets it, and a status that has one is refused as a whole, so that no driver would ever start. So
is a status with a value that only the operator knows: nothing could be done for an application that comes to it. A
field that only the CRD knows is a setting that this operator would not act on: a resource that sets it is refused
(`InvalidSpec`), and its driver left as it is. With its default, which the API server fills in, it counts as not set.

The API server publishes the fields of a CRD to whoever may sign in, so that no right to CRDs is needed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.api.crd import custom_resource_definition, described
from headgate.api.wording import listed

INSTALL_CRD = "install this version's: headgate crd | kubectl apply --server-side -f -"


@dataclass(frozen=True, slots=True)
class CrdDifference:
    """The fields that one side has and the other has not, and the values of a field: `spec.x`, `spec.x: Value`."""

    lacking: tuple[str, ...]
    """Known to the operator alone."""
    unheard_of: tuple[str, ...]
    """Known to the CRD alone."""

    def in_the_way(self, version: str) -> str:
        """Return why this operator cannot work with the CRD; empty: it can."""
        of_status = [path for path in self.lacking if path.startswith("status.")]
        if not of_status:
            return ""
        return (
            f"the CRD is older than this operator ({version}): it lacks {listed(of_status)}, so that a status "
            f"could not be written; {INSTALL_CRD}"
        )

    def warnings(self, version: str) -> Iterator[str]:
        """Yield what people should know of the difference, although it is in nobody's way."""
        of_spec = [path for path in self.lacking if path.startswith("spec.")]
        if of_spec:
            yield (
                f"the CRD is older than this operator ({version}): no resource can have {listed(of_spec)}, which the "
                f"API server drops or refuses; {INSTALL_CRD}"
            )
        if new := [path for path in self.unheard_of if path.startswith("spec.")]:
            yield (
                f"the CRD is newer than this operator ({version}), which does not know {listed(new)}; a resource "
                "that sets one of them is refused (InvalidSpec) until the operator is upgraded"
            )


def difference(document: Mapping[str, Any]) -> CrdDifference | None:
    """Compare the CRD that is described by an OpenAPI document with ours; `None` where it describes none."""
    found = described(document)
    if found is None:
        return None
    (version,) = custom_resource_definition()["spec"]["versions"]
    here, there = set(_fields(version["schema"]["openAPIV3Schema"])), set(_fields(found))
    return CrdDifference(
        lacking=_topmost(_unless_free(here - there, there)),
        unheard_of=_topmost(_unless_free(there - here, here)),
    )


def _fields(root: Mapping[str, Any]) -> Iterator[str]:
    for part in ("spec", "status"):
        yield from _below(part, root.get("properties", {}).get(part, {}))


def _below(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{path}: {value}" for value in schema.get("enum", ()))
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from _below(f"{path}.{name}", child)
    if "items" in schema:
        yield from _below(f"{path}[]", schema["items"])


def _unless_free(paths: set[str], others: set[str]) -> set[str]:
    """Return `paths` less the values of a field for which the other side, which has `others`, names none."""
    chosen = {path.partition(": ")[0] for path in others if ": " in path}
    return {path for path in paths if ": " not in path or path.partition(": ")[0] in chosen}


def _topmost(paths: set[str]) -> tuple[str, ...]:
    """Return the fields, and values of fields, of which the field above is not among them."""
    return tuple(sorted(path for path in paths if _above(path) not in paths))


def _above(path: str) -> str:
    field, is_value, _ = path.partition(": ")
    return field if is_value else path.rpartition(".")[0].removesuffix("[]")
