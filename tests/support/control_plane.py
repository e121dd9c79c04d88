"""A real Kubernetes control plane for tests: etcd and kube-apiserver, and the controllers where a test needs them.

Nothing of it runs pods: without controllers an object stays as it was written, so that a test plays the kubelet
itself by writing a pod's status. Everything listens on one loopback address, the state is in one folder, RBAC is on.

A cluster of your own is used instead if HEADGATE_TEST_CLUSTER=kubeconfig is set: the one that KUBECONFIG leads to.
The tests install our CRD there and make namespaces. KUBEBUILDER_ASSETS names a folder of prebuilt programs, as for
controller-runtime's envtest; what it does not hold is built.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from support.certificates import Authority, Certificate, SigningKey
from support.cluster import KUBECTL_SECONDS, Cluster
from support.go_tools import go_tool
from support.kubeconfig import inline, write_kubeconfig
from support.servers import Server, answers, free_port
from support.waiting import wait_until

LOOPBACK = "127.0.0.1"
SERVICES = "10.86.0.0/16"
FIRST_SERVICE = "10.86.0.1"
ADMINISTRATORS = "system:masters"
KUBERNETES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@contextmanager
def control_plane_in(folder: Path, *, controllers: bool = False) -> Iterator[Cluster]:
    """Run a control plane whose files are in `folder`, our CRD installed; it is gone afterwards.

    `controllers` adds kube-controller-manager and kube-scheduler: garbage collection by owner references,
    Deployments, Jobs, namespaces that really go away. A user's own cluster has them always.
    """
    if own := _users_cluster(folder):
        own.install_crds()
        yield own
        return
    plane = ControlPlane(folder, controllers=controllers)
    try:
        plane.start()
        plane.install_crds()
        yield plane
    finally:
        plane.stop()


class ControlPlane(Cluster):
    """etcd, kube-apiserver and perhaps the controllers, as processes of this test run."""

    def __init__(self, folder: Path, *, controllers: bool = False, address: str = LOOPBACK, port: int = 0):
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder / "kubeconfig", program("kubectl"), folder)
        self._url = f"https://{address}:{port or free_port()}"
        self._authority = Authority.create(folder / "pki")
        self._tokens = SigningKey.create(folder / "pki")
        self._admin = self._authority.user("admin", (ADMINISTRATORS,))
        self._kubeconfig("kubeconfig", self._admin)
        self._etcd_url = f"http://{LOOPBACK}:{free_port()}"
        self._etcd = self._server("etcd", *self._etcd_flags())
        self._api = self._server("kube-apiserver", *self._api_flags(address))
        self._controllers = (self._controller_manager(), self._scheduler()) if controllers else ()

    @property
    def url(self) -> str:
        """Where the API server is."""
        return self._url

    def start(self) -> None:
        """Start everything and wait until it is ready; pods are admitted to `default`."""
        self._etcd.start()
        self._etcd.wait_until(lambda: answers(f"{self._etcd_url}/health"))
        self.start_api_server()
        for controller in self._controllers:
            controller.start()
        self.admit_pods("default")

    def stop(self) -> None:
        """End every process, in the order in which they need each other."""
        for server in self._controllers:
            server.stop()
        self.stop_api_server()
        self._etcd.stop()

    def start_api_server(self) -> None:
        """Start the API server, and wait until it is ready."""
        self._api.start()
        self._api.wait_until(lambda: answers(f"{self._url}/readyz", self._as_admin))

    def stop_api_server(self) -> None:
        """End the API server at once; what is stored stays, and so does its address.

        Asked to end it would wait for everybody who watches.
        """
        self._api.kill()

    def restart_store(self, pause_seconds: float = 0.0) -> None:
        """Kill etcd, and start it again after a pause; what it has stored is there."""
        self._etcd.kill()
        time.sleep(pause_seconds)
        self._etcd.start()
        self._etcd.wait_until(lambda: answers(f"{self._etcd_url}/health"))

    def admit_pods(self, namespace: str) -> None:
        """See that the namespace has the service account without which the API server refuses pods."""
        if not self._controllers:
            made = ("get", "namespace", namespace, "--ignore-not-found", "-o", "name")
            wait_until(lambda: self.kubectl(*made), f"the namespace {namespace}")
            self.kubectl("create", "serviceaccount", "default", "--namespace", namespace)
        super().admit_pods(namespace)

    def _make_namespace(self, name: str) -> None:
        if self._controllers:
            super()._make_namespace(name)
            return
        # Tests have one each: four calls of kubectl took more than half a second of a core.
        self._make("namespaces", name)
        self._make(f"namespaces/{name}/serviceaccounts", "default")

    def read(self, path: str) -> dict[str, Any] | None:
        """Return what is at a path of the API, without a process, for whoever looks again and again."""
        try:
            return self._ask(path)
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise

    def _make(self, kind: str, name: str) -> None:
        self._ask(f"/api/v1/{kind}", json.dumps({"metadata": {"name": name}}).encode())

    def _ask(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}{path}", body, headers)
        with urllib.request.urlopen(request, context=self._as_admin, timeout=KUBECTL_SECONDS) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    @cached_property
    def _as_admin(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._authority.own.certificate)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as the product does: ours have no key identifiers
        context.load_cert_chain(self._admin.certificate, self._admin.key)
        return context

    def _person(self, name: str, groups: tuple[str, ...]) -> dict[str, str]:
        return _by_certificate(self._authority.user(name, groups))

    def _kubeconfig(self, name: str, user: Certificate) -> Path:
        authority = inline(self._authority.own.certificate)
        return write_kubeconfig(self.folder / name, self._url, authority, _by_certificate(user))

    def _server(self, name: str, *flags: str | Path) -> Server:
        return Server([program(name), *flags], self.folder / f"{name}.log")

    def _etcd_flags(self) -> list[str | Path]:
        peers = f"http://{LOOPBACK}:{free_port()}"
        return [
            *("--data-dir", self.folder / "etcd"),
            *("--listen-client-urls", self._etcd_url, "--advertise-client-urls", self._etcd_url),
            *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
            *("--initial-cluster", f"default={peers}"),
            *("--log-level", "warn", "--unsafe-no-fsync"),
        ]

    def _api_flags(self, address: str) -> list[str | Path]:
        names = [f"DNS:{name}" for name in (*KUBERNETES, "localhost")]
        addresses = [f"IP:{ip}" for ip in {address, LOOPBACK, FIRST_SERVICE}]
        served = self._authority.server("kube-apiserver", names + addresses)
        # An API server on a loopback address cannot announce itself to pods, and would say so every few seconds.
        announce = ["--endpoint-reconciler-type", "none"] if address == LOOPBACK else []
        return [
            *("--etcd-servers", self._etcd_url),
            *("--bind-address", address, "--advertise-address", address),
            *("--secure-port", self._url.rpartition(":")[2]),
            *("--tls-cert-file", served.certificate, "--tls-private-key-file", served.key),
            *("--client-ca-file", self._authority.own.certificate),
            *("--service-account-key-file", self._tokens.public),
            *("--service-account-signing-key-file", self._tokens.private),
            *("--service-account-issuer", "https://kubernetes.default.svc"),
            *("--service-cluster-ip-range", SERVICES, "--authorization-mode", "Node,RBAC"),
            *("--allow-privileged=true", "--kubelet-preferred-address-types", "InternalIP"),
            *("--profiling=false", *announce),
        ]

    def _controller_manager(self) -> Server:
        # An administrator: with one service account for each controller it starts 5 s later.
        return self._controller(
            "kube-controller-manager",
            self._authority.user("system:kube-controller-manager", (ADMINISTRATORS,)),
            *("--use-service-account-credentials=false", "--allocate-node-cidrs=false"),
            *("--service-account-private-key-file", self._tokens.private),
            *("--root-ca-file", self._authority.own.certificate),
        )

    def _scheduler(self) -> Server:
        return self._controller("kube-scheduler", self._authority.user("system:kube-scheduler"))

    def _controller(self, name: str, user: Certificate, *flags: str | Path) -> Server:
        return self._server(
            name,
            *("--kubeconfig", self._kubeconfig(f"{name}.kubeconfig", user), "--leader-elect=false"),
            *("--bind-address", LOOPBACK, "--secure-port", str(free_port())),
            *("--cert-dir", self.folder / f"{name}.pki", *flags),
        )


def program(name: str) -> Path:
    """Return one of Kubernetes' programs: a prebuilt one, or else ours."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    prebuilt = Path(assets, name) if assets else None
    return prebuilt if prebuilt and prebuilt.exists() else go_tool(name)


def _users_cluster(folder: Path) -> Cluster | None:
    match os.environ.get("HEADGATE_TEST_CLUSTER", ""):
        case "":
            return None
        case "kubeconfig" if "KUBECONFIG" in os.environ:
            installed = shutil.which("kubectl")
            kubectl = Path(installed) if installed else program("kubectl")
            return Cluster(Path(os.environ["KUBECONFIG"]), kubectl, folder)
        case said:
            pytest.fail(f"HEADGATE_TEST_CLUSTER is {said!r}; set it to 'kubeconfig', and KUBECONFIG with it")


def _by_certificate(user: Certificate) -> dict[str, str]:
    return {"client-certificate-data": inline(user.certificate), "client-key-data": inline(user.key)}
