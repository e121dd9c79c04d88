"""`make docs`: a site of all pages, in `build/site`; a link that leads nowhere fails it.

Pages link to one another, to code and to examples by their paths, so that they can be read in a checkout. The site
therefore has the tree of the repository: each page, and each file that a page links to, at its path.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from locks.make import tool

ROOT: Final = Path(__file__).resolve().parents[1]
STAGED: Final = ROOT / "build" / "pages"
CONFIGURATION: Final = ROOT / "mkdocs.yml"
TREES: Final = ("docs", "operator", "spark_jobs", "charts", "images", "benchmarks")
LINK: Final = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)")
QUIET: Final = {"NO_MKDOCS_2_WARNING": "1"}
"""Material is maintained until May 2027. Zensical, its successor, reads the same `mkdocs.yml`."""
FENCE: Final = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Return all pages, by their paths in the repository."""
    found = [*ROOT.glob("*.md"), *(page for tree in TREES for page in (ROOT / tree).rglob("*.md"))]
    return sorted(page.relative_to(ROOT) for page in found)


def linked(page: Path) -> Iterator[Path]:
    """Yield the files that a page links to, by their paths in the repository."""
    for target in LINK.findall(FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))):
        file = ((ROOT / page).parent / target).resolve()
        if file.is_file():
            yield file.relative_to(ROOT)


def stage() -> None:
    """Copy what the site is made of to `STAGED`."""
    shutil.rmtree(STAGED, ignore_errors=True)
    for file in {*pages(), *(each for page in pages() for each in linked(page))}:
        copy = STAGED / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, copy)


def main() -> int:
    """Make the site; returns the exit code of MkDocs."""
    stage()
    command = [str(tool("mkdocs", "docs")), "build", "--strict", "--config-file", str(CONFIGURATION)]
    return subprocess.run(command, check=False, env={**os.environ, **QUIET}).returncode


if __name__ == "__main__":
    sys.exit(main())
