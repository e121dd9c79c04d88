"""Writes go.mod anew for another version of Kubernetes: `python upgrade.py 1.36.3`.

k8s.io/kubernetes asks for its own libraries at v0.0.0 and resolves them by `replace` lines, which Go ignores in a
dependency; so our go.mod has to repeat them with the published versions. `go mod tidy` adds the rest from the imports
of our programs, etcd included.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MODULE = "headgate.dev/tests/support/tools/kube"
OTHERS = {"github.com/fluxcd/cli-utils": "v1.2.2", "helm.sh/helm/v4": "v4.3.0"}


def main() -> None:
    """Write go.mod and go.sum for the version given as the only argument."""
    version = sys.argv[1].removeprefix("v")
    HERE.joinpath("go.mod").write_text(gomod(version, staging_modules(version)), encoding="utf-8")
    HERE.joinpath("go.sum").unlink(missing_ok=True)
    subprocess.run(["go", "mod", "tidy"], cwd=HERE, check=True)


def staging_modules(version: str) -> list[str]:
    """Return the libraries that live in the repository of Kubernetes itself."""
    command = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{version}"]
    told = subprocess.run(command, cwd="/", check=True, capture_output=True, text=True)
    upstream = Path(json.loads(told.stdout)["GoMod"]).read_text(encoding="utf-8")
    return re.findall(r"^\s+(k8s\.io/\S+) => \./staging/", upstream, re.MULTILINE)


def gomod(version: str, modules: list[str]) -> str:
    """Return a go.mod with Kubernetes at `version` and each of its own `modules` at the same."""
    library = f"v0.{version.partition('.')[2]}"
    required = "".join(f"\t{name} {pinned}\n" for name, pinned in OTHERS.items())
    replaced = "".join(f"\t{name} => {name} {library}\n" for name in modules)
    return (
        f"module {MODULE}\n\ngo 1.26.0\n\ntool helm.sh/helm/v4/cmd/helm\n\n"
        f"require (\n\tk8s.io/kubernetes v{version}\n{required})\n\nreplace (\n{replaced})\n"
    )


if __name__ == "__main__":
    main()
