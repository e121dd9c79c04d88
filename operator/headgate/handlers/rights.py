"""What the operator must find before it can act: its rights, and the CRD in a version that it can write to.

Asked for before anything else, all at once: a right that is missing would otherwise show when it is needed for the
first time, at three in the morning, one at a time. A replica that could serve nobody is not ready and never leads, so
that a bad roll-out stops at its first pod. One namespace without its rights stops nobody but itself: they are in the
hands of whoever runs it. The chart's roles hold the same rights; a test compares them.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from headgate import __version__
from headgate.adapters.kubernetes.client import APPLICATIONS, ApiServer, Kind
from headgate.errors import ApiNotFound, ApiRefused, TransientError
from headgate.handlers.definition import difference
from headgate.handlers.namespaces import Namespaces, Scope

log = structlog.get_logger("headgate.rights")

REVIEWS = "authorization.k8s.io/v1"
NOBODY = "headgate.dev/nobody"
"""A label that nothing bears: a listing by it is empty, and says whether one may list."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Seconds between two tries."""


class PolicyRule(NamedTuple):
    """Rights to one resource, as a Role grants them."""

    group: str
    resource: str
    verbs: tuple[str, ...]


SERVED: tuple[PolicyRule, ...] = (
    PolicyRule("headgate.dev", "sparkapplications", ("get", "list", "watch", "patch", "delete")),
    PolicyRule("headgate.dev", "sparkapplications/status", ("patch",)),
    PolicyRule("headgate.dev", "sparkapplications/finalizers", ("update",)),
    PolicyRule("", "pods", ("get", "list", "watch", "create", "patch", "delete")),
    PolicyRule("", "events", ("create", "patch")),
)
"""Needed in each namespace that is served, or in all of the cluster."""

LEASE: tuple[PolicyRule, ...] = (PolicyRule("coordination.k8s.io", "leases", ("get", "create", "patch")),)
"""Needed in the namespace of the lease, for that one alone."""


class Right(NamedTuple):
    """One verb on one resource in one namespace; `None`: in all of them."""

    verb: str
    group: str
    resource: str
    namespace: str | None
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}"


def rights_to(namespace: Scope) -> tuple[Right, ...]:
    """Return every right that is needed to serve a namespace, or the whole cluster."""
    return tuple(Right(verb, rule.group, rule.resource, namespace) for rule in SERVED for verb in rule.verbs)


def rights_to_lead(lease: tuple[str, str] | None) -> tuple[Right, ...]:
    """Return every right that an election needs; `lease` is namespace and name, where there is one."""
    if lease is None:
        return ()
    return tuple(Right(verb, rule.group, rule.resource, *lease) for rule in LEASE for verb in rule.verbs)


@dataclass(slots=True)
class Preflight:
    """Waits until the operator can do its work, and says what is in the way."""

    api: ApiServer
    namespaces: Namespaces
    lease: tuple[str, str] | None
    """Namespace and name, where there is an election."""
    report: Callable[[str], None]
    """Told what is in the way; empty: nothing any more."""
    _warned: set[str] = field(default_factory=set)

    async def passed(self) -> None:
        """Return once nothing is in the way of some namespace at least; what is in that of others is told."""
        told, pause = "", FIRST_PAUSE
        while obstacle := await self.obstacle():
            self.report(obstacle)
            if obstacle != told:
                log.warning(obstacle)
                told = obstacle
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        self.report("")

    async def obstacle(self) -> str:
        """Return what is in the way of all of them, or of leading."""
        try:
            to_lead = await not_granted(self.api, rights_to_lead(self.lease))
            lacking = {
                scope: await not_granted(self.api, rights_to(scope)) for scope in self.namespaces.scopes
            }
            if to_lead or all(lacking.values()):
                return _said([right for found in (*lacking.values(), to_lead) for right in found])
            reasons = {scope: _said(found) for scope, found in lacking.items()}
            for scope in [scope for scope, reason in reasons.items() if not reason]:
                try:
                    await self.api.list(APPLICATIONS, scope, labels=NOBODY)
                except ApiRefused as error:
                    reasons[scope] = str(error)
            if all(reasons.values()):
                return "; ".join(reasons.values())
            if obstacle := await self._definition():
                return obstacle
        except ApiNotFound:
            return (
                "the API server knows no SparkApplication; install the CRD: headgate crd | kubectl apply -f -"
            )
        except TransientError as error:
            return str(error)
        for scope, reason in reasons.items():
            if reason:
                self.namespaces.lacks(scope, reason)
            else:
                self.namespaces.has_all(scope)
        return ""

    async def missing(self, scope: Scope) -> str:
        """Return which rights to a namespace are missing; empty: none. Raises `TransientError`."""
        return _said(await not_granted(self.api, rights_to(scope)))

    async def _definition(self) -> str:
        """Return why the CRD is of a version that nothing can be done with, and warn of other differences.

        Where the API server describes no CRD, or not to us, it is taken for that of this version.
        """
        try:
            found = difference(await self.api.describe(APPLICATIONS))
        except (ApiNotFound, ApiRefused):
            return ""
        if found is None:
            return ""
        for warning in found.warnings(__version__):
            if warning not in self._warned:
                log.warning(warning)
                self._warned.add(warning)
        return found.in_the_way(__version__)


async def not_granted(api: ApiServer, needed: Sequence[Right], user: str | None = None) -> list[Right]:
    """Return those of the rights that `user` does not have; `None`: who calls. Raises `TransientError`."""
    answers = await asyncio.gather(*(_is_granted(api, right, user) for right in needed))
    return [right for right, is_granted in zip(needed, answers, strict=True) if not is_granted]


async def _is_granted(api: ApiServer, right: Right, user: str | None) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {"verb": right.verb, "group": right.group, "resource": resource}
    optional = {"subresource": subresource, "namespace": right.namespace, "name": right.name}
    attributes |= {name: value for name, value in optional.items() if value}
    kind = "SelfSubjectAccessReview" if user is None else "SubjectAccessReview"
    whom: dict[str, object] = {}
    if user is not None:
        _, _, account = user.partition("system:serviceaccount:")
        own = ["system:serviceaccounts", f"system:serviceaccounts:{account.partition(':')[0]}"]
        # The groups that the API server puts a service account into.
        whom = {"user": user, "groups": ["system:authenticated", *(own if account else [])]}
    spec = {"resourceAttributes": attributes, **whom}
    review = {"apiVersion": REVIEWS, "kind": kind, "metadata": {}, "spec": spec}
    answer = await api.create(Kind(REVIEWS, f"{kind.lower()}s"), review)
    return bool(answer["status"]["allowed"])


def _said(missing: Sequence[Right]) -> str:
    """Return the rights by namespace, as a sentence: `in team-a: patch pods, create events`; empty: none."""
    if not missing:
        return ""
    by_namespace: dict[str | None, list[str]] = {}
    for right in missing:
        by_namespace.setdefault(right.namespace, []).append(str(right))
    listed = "; ".join(
        f"in {f'namespace {namespace}' if namespace else 'all namespaces'}: {', '.join(found)}"
        for namespace, found in by_namespace.items()
    )
    return f"missing rights: {listed}; grant them as in docs/operations.md"
