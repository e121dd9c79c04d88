"""What tests do with a cluster, whoever runs it: kubectl, our CRD, users, namespaces."""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.go_tools import ROOT
from support.kubeconfig import write_kubeconfig
from support.waiting import wait_until

CRDS = ROOT / "crds"
KUBECTL_SECONDS = 300.0
SERVICE_ACCOUNT = "system:serviceaccount:"


class KubectlError(AssertionError):
    """kubectl did not do it; the text is what it wrote to standard error."""


class Cluster:
    """A cluster that a kubeconfig leads to.

    This class is a user's own cluster, which tests use but never stop; `ControlPlane` is one of ours.
    """

    def __init__(self, kubeconfig: Path, kubectl: Path, folder: Path):
        self.kubeconfig = kubeconfig
        """Kubeconfig of an administrator."""
        self.folder = folder
        """Where files of this cluster are written."""
        self._kubectl = kubectl

    @property
    def url(self) -> str:
        """Where the API server is."""
        return self._configured("server")

    def kubectl(
        self,
        *arguments: str | Path,
        input: str | None = None,  # noqa: A002 - as subprocess calls it
        kubeconfig: Path | None = None,
    ) -> str:
        """Run kubectl and return its standard output; raise KubectlError with its standard error.

        `input` is what `-f -` reads; `kubeconfig` is that of another user than the administrator.
        """
        done = subprocess.run(
            [self._kubectl, "--kubeconfig", kubeconfig or self.kubeconfig, *arguments],
            input=input,
            capture_output=True,
            text=True,
            timeout=KUBECTL_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise KubectlError(done.stderr.strip())
        return done.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        """Return what `kubectl get …` is answered: an object, or a list with its objects in `items`."""
        answer: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "-o", "json"))
        return answer

    def read(self, path: str) -> dict[str, Any] | None:
        """Return what is at a path of the API; `None` where nothing is."""
        try:
            answer: dict[str, Any] = json.loads(self.kubectl("get", "--raw", path))
        except KubectlError as error:
            if "NotFound" in str(error):
                return None
            raise
        return answer

    def install_crds(self) -> None:
        """Install the CRDs of `crds/` and wait until the API server serves them."""
        self.kubectl("apply", "--server-side", "-f", CRDS)
        self.wait_for_crds("-f", str(CRDS))

    def wait_for_crds(self, *definitions: str) -> None:
        """Wait until the API server serves these CRDs, named as for `kubectl get`.

        `kubectl wait` gives up on one whose conditions are still null, as they are for a moment after it was made.
        """
        wait_until(lambda: self._are_established(*definitions), f"{' '.join(definitions)} to be established")

    def _are_established(self, *definitions: str) -> bool:
        found = self.get(*definitions)
        return all(_is_established(definition) for definition in found.get("items", [found]))

    def namespace(self) -> str:
        """Make a namespace of a new name and return that; pods are admitted to it."""
        name = f"test-{secrets.token_hex(4)}"
        self._make_namespace(name)
        return name

    def admit_pods(self, namespace: str) -> None:
        """Wait for the service account without which the API server refuses pods."""
        account = ("get", "serviceaccount", "default", "-n", namespace, "--ignore-not-found", "-o", "name")
        wait_until(lambda: self.kubectl(*account), f"the default service account of {namespace}")

    def fill_quota(self, namespace: str) -> None:
        """Give the namespace a quota, `small`, that has room for no pod.

        Who counts what is used is a controller, and the API server admits nothing before it has.
        """
        none = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
        self.kubectl("create", "quota", "small", "--hard=pods=0", "-n", namespace)
        patch = ("patch", "quota", "small", "-n", namespace, "--subresource=status", "--type=merge")
        self.kubectl(*patch, "-p", json.dumps(none))

    def user(self, name: str, *groups: str) -> Path:
        """Return a kubeconfig of another user: `system:serviceaccount:NAMESPACE:NAME`, or any name.

        A service account has to exist; a person is known to the API server by name and groups, and may do what RBAC
        gives to them.
        """
        path = self.folder / f"{name.replace(':', '-')}.kubeconfig"  # a colon ends a path in KUBECONFIG
        if name.startswith(SERVICE_ACCOUNT):
            credentials = self._service_account(*name.removeprefix(SERVICE_ACCOUNT).split(":"))
        else:
            credentials = self._person(name, groups)
        return write_kubeconfig(path, self.url, self._configured("certificate-authority-data"), credentials)

    def _make_namespace(self, name: str) -> None:
        self.kubectl("create", "namespace", name)
        self.admit_pods(name)

    def _service_account(self, namespace: str, name: str) -> dict[str, str]:
        token = ("create", "token", name, "--namespace", namespace, "--duration=24h")
        return {"token": self.kubectl(*token).strip()}

    def _person(self, name: str, groups: tuple[str, ...]) -> dict[str, str]:
        pytest.skip(f"{name} cannot be made a user of your own cluster; unset HEADGATE_TEST_CLUSTER")

    def _configured(self, field: str) -> str:
        form = f"jsonpath={{.clusters[0].cluster.{field}}}"
        return self.kubectl("config", "view", "--minify", "--raw", "--flatten", "-o", form)

    def start_api_server(self) -> None:
        """Start the API server after `stop_api_server`, and wait until it is ready."""
        pytest.skip("the API server of your own cluster is not restarted; unset HEADGATE_TEST_CLUSTER")

    def stop_api_server(self) -> None:
        """Stop the API server; what is stored stays."""
        pytest.skip("the API server of your own cluster is not stopped; unset HEADGATE_TEST_CLUSTER")

    def restart_api_server(self) -> None:
        """Stop the API server and start it again."""
        self.stop_api_server()
        self.start_api_server()


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
