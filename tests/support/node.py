"""Real nodes: containerd, kubelet, kube-proxy and DNS beside a control plane, in namespaces of their own.

Pods run as on any node: their processes in containers, an address each, Services, DNS, logs, exec, probes, volumes.
Nothing can be pulled, since no way leads out: the nodes have the images that they are given, and pods that name those
say `imagePullPolicy: Never` or `IfNotPresent`. All nodes share one network and one address.

    with nodes_in(tmp_path, images=our_images()) as cluster:
        cluster.kubectl("get", "nodes")
        with cluster.network():
            ...  # connections made here reach pods and services by their addresses; a server started here stays there
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from support.certificates import Certificate
from support.control_plane import ADMINISTRATORS, ControlPlane
from support.debian import debian
from support.go_tools import go_tool
from support.namespaces import Namespaces, run
from support.node_cgroups import ControlGroup
from support.node_config import (
    ADDRESS,
    PODS,
    Layout,
    write_containerd,
    write_dns,
    write_kubelet,
    write_network,
)
from support.node_images import Image, pause_image, write_archive
from support.requirements import need_namespaces
from support.servers import Server

API_PORT = 6443
Manifest = dict[str, Any]


@contextmanager
def nodes_in(
    folder: Path,
    *,
    images: Sequence[Image] = (),
    first: Sequence[Image] = (),
    count: int = 1,
    crds: bool = True,
) -> Iterator[NodeCluster]:
    """Run a cluster of `count` nodes whose files are in `folder`; it is gone afterwards.

    Every node has `images`, and that of `pause_image`; the first one has also those of `first`. `crds` installs our
    CRD, as long as no chart shall do so.
    """
    need_namespaces()
    of_all = (pause_image(), *images)
    cluster = NodeCluster(folder, [(*of_all, *first), *[of_all] * (count - 1)])
    try:
        cluster.start()
        if crds:
            cluster.install_crds()
        yield cluster
    finally:
        cluster.stop()


class NodeCluster(ControlPlane):
    """A control plane with nodes."""

    def __init__(self, folder: Path, images: Sequence[Sequence[Image]]):
        """`images`: those of each node."""
        super().__init__(folder, controllers=True, address=ADDRESS, port=API_PORT)
        self._images = images
        self._namespaces = Namespaces(folder / "namespaces.log")
        self._group = ControlGroup(f"headgate-{secrets.token_hex(4)}")
        self.nodes = [self._node(number) for number in range(len(images))]
        self._proxy = self._inner("kube-proxy", *self._proxy_flags())
        self._dns = self._inner("coredns", "-conf", write_dns(folder, self.kubeconfig))

    def network(self) -> AbstractContextManager[None]:
        """Make connections, and start processes, where pods and services are reached by their addresses."""
        return self._namespaces.network()

    def node_of(self, pod: Manifest) -> Node:
        """Return the node that a pod runs on."""
        return next(node for node in self.nodes if node.name == pod["spec"]["nodeName"])

    def start(self) -> None:
        """Start everything and wait until the nodes are ready."""
        self._namespaces.start()
        with self.network(), ThreadPoolExecutor() as pool:
            _connect()
            for node in self.nodes:
                node.start_runtime(self._namespaces)
            pairs = zip(self.nodes, self._images, strict=True)
            imports = [pool.submit(node.import_images, images) for node, images in pairs]
            super().start()
            for imported in imports:
                imported.result()
            for node in self.nodes:
                node.start_kubelet(self._namespaces)
            self._proxy.start()
            self._dns.start()
        for node in self.nodes:
            node.wait_until_ready(self)

    def stop(self) -> None:
        """End every process, and remove what takes space."""
        for server in (self._proxy, self._dns):
            server.stop()
        self._namespaces.stop()
        super().stop()
        self._group.remove()
        for node in self.nodes:
            node.remove_images()

    def kubectl(
        self,
        *arguments: str | Path,
        input: str | None = None,  # noqa: A002 - as subprocess calls it
        kubeconfig: Path | None = None,
    ) -> str:
        """Run kubectl inside and return its standard output; raise KubectlError with its standard error."""
        with self.network():
            return super().kubectl(*arguments, input=input, kubeconfig=kubeconfig)

    def read(self, path: str) -> Manifest | None:
        """Return what is at a path of the API; `None` where nothing is."""
        with self.network():
            return super().read(path)

    def start_api_server(self) -> None:
        """Start the API server, and wait until it is ready."""
        with self.network():
            super().start_api_server()

    def restart_store(self, pause_seconds: float = 0.0) -> None:
        """Kill etcd, and start it again after a pause; what it has stored is there."""
        with self.network():
            super().restart_store(pause_seconds)

    def _node(self, number: int) -> Node:
        name = f"node{number}"
        layout = Layout(name, self.folder / name, self.folder, f"{self._group.name}/{name}", number)
        layout.folder.mkdir()
        user = self._authority.user(f"system:node:{name}", ("system:nodes",))
        return Node(layout, self._group.child(name), self._inner_kubeconfig("kubelet", user, layout.folder))

    def _proxy_flags(self) -> list[str | Path]:
        user = self._authority.user("system:kube-proxy", (ADMINISTRATORS,))
        return [
            *("--kubeconfig", self._inner_kubeconfig("kube-proxy", user, self.folder)),
            *("--proxy-mode", "nftables", "--hostname-override", "node0", "--cluster-cidr", PODS),
            # One proxy serves all nodes: it would let only pods of its own node reach themselves through a service.
            *("--conntrack-max-per-core", "0", "--masquerade-all"),
        ]

    def _inner_kubeconfig(self, name: str, user: Certificate, folder: Path) -> Path:
        return self._kubeconfig(f"{folder.relative_to(self.folder)}/{name}.kubeconfig", user)

    def _inner(self, name: str, *flags: str | Path) -> Server:
        return Server([go_tool(name), *flags], self.folder / f"{name}.log", debian().environment)


class Node:
    """One kubelet and its container runtime."""

    def __init__(self, layout: Layout, group: ControlGroup, kubeconfig: Path):
        self.name = layout.name
        self._layout = layout
        self._group = group
        self._system = group.child("system")
        self._kubeconfig = kubeconfig
        self._inside: list[str] = []
        """What to put before a command that shall see the processes of the nodes."""

    def start_runtime(self, namespaces: Namespaces) -> None:
        """Start containerd, and wait until it answers. What it stores is in memory, and gone with the namespaces."""
        self._inside = namespaces.enter()
        stored = self._layout.folder / "containerd"
        stored.mkdir()
        run(*namespaces.enter(), "mount", "-t", "tmpfs", "tmpfs", stored)
        write_network(self._layout)
        config = write_containerd(self._layout, debian().cni_plugins, debian().program("runc"))
        runtime = self._server(namespaces, "containerd", "--config", config)
        runtime.start()
        runtime.wait_until(self._answers)

    def start_kubelet(self, namespaces: Namespaces) -> None:
        """Start the kubelet; the node is ready a moment later."""
        config = write_kubelet(self._layout)
        flags = ("--hostname-override", self.name, "--node-ip", ADDRESS)
        folder = self._layout.folder / "kubelet"
        self._server(
            namespaces,
            "kubelet",
            *("--config", config, "--kubeconfig", self._kubeconfig, "--root-dir", folder, *flags),
        ).start()

    def import_images(self, images: Sequence[Image]) -> None:
        """Give this node images."""
        command = self._ctr("images", "import", "--local", "-")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as ctr:
            assert ctr.stdin is not None
            write_archive(images, ctr.stdin)
        assert ctr.returncode == 0, f"{self.name} does not take {', '.join(image.name for image in images)}"

    def wait_until_ready(self, cluster: NodeCluster) -> None:
        """Wait until the API server calls the node ready."""
        cluster.kubectl("wait", "--for=create", "--timeout=240s", f"node/{self.name}")
        cluster.kubectl("wait", "--for=condition=Ready", "--timeout=240s", f"node/{self.name}")

    def kill(self) -> None:
        """End the node as a power cut would: kubelet, runtime and every pod at once, and nobody is told."""
        self._group.kill()

    def kill_container(self, pod: Manifest) -> bool:
        """End every process of a pod's container at once, as the kernel does where memory is short.

        Returns False where it had ended before, of which the pod's status tells a moment later.
        """
        try:
            run(*self._ctr("tasks", "kill", "--signal", "SIGKILL", _container(pod)))
        except AssertionError as error:
            if "not found" not in str(error):
                raise
            return False
        return True

    @contextmanager
    def standing(self, pod: Manifest) -> Iterator[None]:
        """Have every process of a pod's container stand still meanwhile; it may be ended by then."""
        container = _container(pod)
        run(*self._ctr("tasks", "pause", container))
        try:
            yield
        finally:
            with suppress(AssertionError):  # a probe may have ended it
                run(*self._ctr("tasks", "resume", container))

    @contextmanager
    def sending(self, pod: Manifest, *queue: str) -> Iterator[None]:
        """Have what a pod sends go through such a queue of `tc` meanwhile; the pod may be gone afterwards."""
        tasks = run(*self._ctr("tasks", "list")).splitlines()
        process = next(line.split()[1] for line in tasks if line.startswith(_container(pod)))
        there = (*self._inside, "nsenter", "--target", process, "--net", "--", "tc", "qdisc")
        run(*there, "add", "dev", "eth0", "root", *queue)
        try:
            yield
        finally:
            with suppress(AssertionError):
                run(*there, "del", "dev", "eth0", "root")

    def remove_images(self) -> None:
        """Remove what the runtime has stored; it has to be gone."""
        for stored in ("containerd", "containerd-state", "kubelet"):
            shutil.rmtree(self._layout.folder / stored, ignore_errors=True)

    def _answers(self) -> bool:
        done = subprocess.run(self._ctr("version"), capture_output=True, check=False)
        return done.returncode == 0

    def _ctr(self, *arguments: str) -> list[str]:
        address = ("--address", str(self._layout.socket))
        return [str(go_tool("ctr")), *address, "--namespace", "k8s.io", *arguments]

    def _server(self, namespaces: Namespaces, name: str, *flags: str | Path) -> Server:
        command = [*self._system.command_to_join(), *namespaces.enter(), go_tool(name), *flags]
        environment = debian().environment
        # containerd finds its shim beside itself
        environment["PATH"] = f"{go_tool('containerd-shim-runc-v2').parent}:{environment['PATH']}"
        return Server(command, self._layout.folder / f"{name}.log", environment)


def _container(pod: Manifest) -> str:
    """Return what the runtime calls the only container of a pod."""
    (status,) = pod["status"]["containerStatuses"]
    identifier: str = status["containerID"]
    return identifier.removeprefix("containerd://")


def _connect() -> None:
    """Give the namespace an address. The peer of the interface is there because each has one; nothing uses it."""
    run("ip", "link", "add", "nodes", "type", "veth", "peer", "name", "peer")
    run("ip", "link", "set", "peer", "up")
    run("ip", "address", "add", f"{ADDRESS}/24", "dev", "nodes")
    run("ip", "link", "set", "nodes", "up")
    run("ip", "route", "add", "default", "dev", "nodes")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
