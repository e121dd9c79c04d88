"""Writes the bill of materials of an image into it: `python spark_jobs/shim/image_sbom.py LIBRARIES KIND`.

It has what `images/build/rootfs.sh` has put below LIBRARIES: Python's libraries, and Spark's jars. The distribution's
packages are in its own list, `/var/lib/dpkg/status`, which scanners read beside this.
"""

import sys
from importlib.metadata import distributions
from pathlib import Path

import sbom


def main() -> None:
    """Write it."""
    libraries, kind = Path(sys.argv[1]), sys.argv[2]
    (own,) = distributions(name="headgate", path=[str(libraries)])
    bill = sbom.document_of_image(f"headgate-{kind}", own.version, sbom.of_folder(libraries))
    (libraries / f"headgate-{kind}.cdx.json").write_bytes(bill)


if __name__ == "__main__":
    main()
