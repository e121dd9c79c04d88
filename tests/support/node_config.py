"""Configuration files of a test node: containerd, kubelet, the pods' network, DNS."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

ADDRESS = "10.87.0.1"
"""Of every node, the API server and DNS."""
NODE_NETWORK = "10.87.0.0/24"
PODS = "10.88.0.0/16"
SERVICES = "10.86.0.0/16"
DOMAIN = "cluster.local"
SANDBOX_IMAGE = "headgate.test/pause:1"


@dataclass(frozen=True)
class Layout:
    """Where the files of one node are, and what tells it from others on the same address."""

    name: str
    folder: Path
    shared: Path
    """Folder of the cluster: addresses are handed out to the pods of all nodes from here."""
    group: str
    number: int

    @property
    def socket(self) -> Path:
        """Where containerd listens."""
        return self.folder / "containerd.sock"


def write_containerd(layout: Layout, cni_plugins: Path, runc: Path) -> Path:
    """Write containerd's configuration and return its path."""
    path = layout.folder / "containerd.toml"
    path.write_text(
        f"""
version = 3
root = "{layout.folder}/containerd"
state = "{layout.folder}/containerd-state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.nri.v1.nri",
]

[grpc]
address = "{layout.socket}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{SANDBOX_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true  # machines that are containers themselves may not lower it

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{cni_plugins}"]
conf_dir = "{layout.folder}/cni"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
options = {{ BinaryName = "{runc}", SystemdCgroup = false }}
""",
        encoding="utf-8",
    )
    return path


def write_network(layout: Layout) -> None:
    """Write how pods are connected: one bridge for all nodes, addresses from one range."""
    folder = layout.folder / "cni"
    folder.mkdir()
    addresses = {
        "type": "host-local",
        "dataDir": str(layout.shared / "addresses"),
        "ranges": [[{"subnet": PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True, "ipam": addresses}
    network = {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, {"type": "loopback"}]}
    (folder / "pods.conflist").write_text(json.dumps(network), encoding="utf-8")


def write_kubelet(layout: Layout) -> Path:
    """Write the kubelet's configuration and return its path.

    Whoever reaches the kubelet's own port may do everything there; nobody can from outside the namespaces.
    """
    resolver = layout.folder / "resolv.conf"
    resolver.write_text(f"nameserver {ADDRESS}\n", encoding="utf-8")
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "port": 10250 + 100 * layout.number,
        "healthzPort": 10248 + 100 * layout.number,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{layout.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.group}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [ADDRESS],
        "clusterDomain": DOMAIN,
        "resolvConf": str(resolver),
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(layout.folder / "pods"),
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
    }
    path = layout.folder / "kubelet.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path


def write_dns(folder: Path, kubeconfig: Path) -> Path:
    """Write CoreDNS' configuration and return its path."""
    path = folder / "Corefile"
    path.write_text(
        f"{DOMAIN}:53 {{\n"
        f"  bind {ADDRESS}\n"
        f"  errors\n"
        f"  kubernetes {DOMAIN} {{\n    kubeconfig {kubeconfig}\n  }}\n"
        f"}}\n",
        encoding="utf-8",
    )
    return path
