"""Whether a tool keeps `spec` as a repository has it, and what it will do to an edit by hand.

Argo CD and Flux mark what they manage, and the API server notes which field was written by whom. A field that the
tool applied is set back at its next sync; one that it does not name stays, because both apply only what they have.
Look before the edit: afterwards the field is noted as written by whoever edited it.

Argo CD's older tracking by `app.kubernetes.io/instance` proves nothing, since every chart sets that label.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_LABELS: Final = {
    "kustomize.toolkit.fluxcd.io/name": "Flux's Kustomization",
    "helm.toolkit.fluxcd.io/name": "Flux's HelmRelease",
    "argocd.argoproj.io/instance": "Argo CD's application",
}
_TRACKING_ID: Final = "argocd.argoproj.io/tracking-id"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MANAGERS: Final = {
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "argocd-controller": "Argo CD",
    "argocd-application-controller": "Argo CD",
}


@dataclass(frozen=True, slots=True)
class GitOwner:
    """The tool that applies an object from Git."""

    words: str
    """`Argo CD's application flights`."""
    declares: bool
    """Whether it applies the field in question."""

    def consequence(self, field: str, value: str) -> str:
        """Say what becomes of an edit that has set `field` to `value`."""
        if self.declares:
            return (
                f"{self.words} applies {field} too and sets it back at its next sync; to keep it, commit "
                f"{field}: {value} to Git"
            )
        return f"{self.words} does not apply {field}, so this stays until somebody changes it back"


def git_owner(manifest: Mapping[str, Any], *field: str) -> GitOwner | None:
    """Return the tool that applies `manifest` from Git and whether it names `field`; None: no sign of one."""
    metadata = manifest["metadata"]
    applied = {
        _MANAGERS[entry["manager"]]: entry.get("fieldsV1") or {}
        for entry in metadata.get("managedFields") or ()
        if entry.get("manager") in _MANAGERS
    }
    words = next(_marks(metadata), None) or next(iter(applied), None)
    if words is None:
        return None
    declares = any(_names(fields, [f"f:{step}" for step in field]) for fields in applied.values())
    return GitOwner(words, declares or _names(_last_applied(metadata), field))


def _marks(metadata: Mapping[str, Any]) -> Iterator[str]:
    tracked = (metadata.get("annotations") or {}).get(_TRACKING_ID)
    if tracked:
        yield f"Argo CD's application {tracked.partition(':')[0]}"
    labels = metadata.get("labels") or {}
    for label, words in _LABELS.items():
        if label in labels:
            yield f"{words} {labels[label]}"


def _last_applied(metadata: Mapping[str, Any]) -> Any:
    """Return the object as it was applied last, where that was by the client (Argo CD's default)."""
    text = (metadata.get("annotations") or {}).get(_LAST_APPLIED, "{}")
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _names(fields: Any, steps: Sequence[str]) -> bool:
    """Whether there is something at the end of `steps`."""
    for step in steps:
        fields = fields.get(step) if isinstance(fields, Mapping) else None
    return fields is not None
