"""A certificate authority for test servers and their users; P-256 throughout, made by openssl."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
DAYS = "30"


@dataclass(frozen=True)
class Certificate:
    """Two PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """Signs certificates into its folder."""

    folder: Path
    own: Certificate

    @classmethod
    def create(cls, folder: Path) -> Authority:
        """Make a new authority in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        authority = cls(folder, Certificate(folder / "ca.crt", folder / "ca.key"))
        usage = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,digitalSignature")
        _request(authority.own, "/CN=headgate-tests", usage)
        return authority

    def server(self, name: str, addresses: Sequence[str]) -> Certificate:
        """Issue a certificate for a server that is reached as one of `addresses` (`DNS:…` or `IP:…`)."""
        extensions = ("subjectAltName=" + ",".join(addresses), "extendedKeyUsage=serverAuth")
        return self._issue(name, f"/CN={name}", extensions)

    def user(self, name: str, groups: Sequence[str] = ()) -> Certificate:
        """Issue a certificate for a user of the API server, who has `name` and is in `groups`."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={name}"
        return self._issue(name.replace("/", "_"), subject, ("extendedKeyUsage=clientAuth",))

    def _issue(self, file: str, subject: str, extensions: Sequence[str]) -> Certificate:
        issued = Certificate(self.folder / f"{file}.crt", self.folder / f"{file}.key")
        _request(issued, subject, extensions, signed_by=self.own)
        return issued


@dataclass(frozen=True)
class SigningKey:
    """The key pair of service account tokens: two PEM files."""

    private: Path
    public: Path

    @classmethod
    def create(cls, folder: Path) -> SigningKey:
        """Make a new pair in `folder`."""
        pair = cls(folder / "service-accounts.key", folder / "service-accounts.pub")
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", pair.private)
        _openssl("pkey", "-in", pair.private, "-pubout", "-out", pair.public)
        return pair


def _request(
    made: Certificate, subject: str, extensions: Sequence[str], signed_by: Certificate | None = None
) -> None:
    options: list[str | Path] = [word for extension in extensions for word in ("-addext", extension)]
    if signed_by is not None:
        options += ["-CA", signed_by.certificate, "-CAkey", signed_by.key]
    out = ("-keyout", made.key, "-out", made.certificate, "-days", DAYS, "-subj", subject)
    _openssl("req", "-x509", *NEW_KEY, *out, *options)


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"openssl {arguments[0]} failed:\n{done.stderr}"
