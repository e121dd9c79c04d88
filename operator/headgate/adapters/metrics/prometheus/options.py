"""How Prometheus is reached, and how much it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """Address, credentials and limits. Files are read again for each request, so that they may be rotated."""

    url: str
    """Base of the API, without `/api/v1`; may have a path: `https://thanos.example/prometheus`."""
    bearer_token_file: Path | None = None
    username: str | None = None
    """For basic authentication, with the content of `password_file`."""
    password_file: Path | None = None
    ca_file: Path | None = None
    """Certificates that the server is trusted by; `None`: those of the system."""
    timeout_seconds: float = 10.0
    """For one answer, from the connection to its last byte. Prometheus is told, and gives up as well."""
    matchers: str = ""
    """Label matchers for every query of the operator, as `cluster="a"`: where one server knows several
    clusters. Expressions of users are left as they are."""
    expressions_per_tick: int = 20
    """Different expressions of users that are evaluated in one tick at most; the others wait for their turn."""
    expression_timeout_seconds: float = 2.0
    tick_seconds: float = 5.0
    """Between two ticks: how many can be evaluated in a time depends on it."""
    tenant_header: str = ""
    """Header that tells the server of which namespace an expression is; empty: none does."""
