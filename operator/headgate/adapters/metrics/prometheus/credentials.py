"""Who the operator is to Prometheus: a bearer token, a user with a password, or nobody.

Tokens of service accounts are rotated within the hour, so files are read for each request: a few kilobytes at a
few requests in five seconds, and no moment at which the old one is still in use.
"""

from __future__ import annotations

from pathlib import Path

from requests import PreparedRequest
from requests.auth import AuthBase, HTTPBasicAuth

from headgate.adapters.metrics.prometheus.failure import QueryFailure
from headgate.adapters.metrics.prometheus.options import PrometheusOptions
from headgate.reconcile.ports import OutageReason


class Credentials(AuthBase):
    """Signs each request with what the files hold at that moment."""

    def __init__(self, options: PrometheusOptions) -> None:
        self._options = options

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the header; raises QueryFailure when a file cannot be read."""
        options = self._options
        if options.bearer_token_file is not None:
            request.headers["Authorization"] = f"Bearer {_secret(options.bearer_token_file)}"
        elif options.username is not None:
            password = "" if options.password_file is None else _secret(options.password_file)
            HTTPBasicAuth(options.username, password)(request)
        return request


def _secret(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no text"
        raise QueryFailure(
            OutageReason.CREDENTIALS_UNREADABLE, f"cannot read {file} to sign in to Prometheus: {reason}"
        ) from problem
