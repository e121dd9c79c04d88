"""What a release hands out: made twice the same, and enough for a machine that has Spark and some Python."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from docs import notebook

from support import packaged, pythons
from support.driver import QUICK, QUICK_START, SHARING
from support.guide import Guide
from support.packaged import copy_of_the_checkout

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 600
BARE = ["-I", "-S", "-u"]
"""A Python that sees its standard library alone, whatever is installed with it or named in the environment."""
PYTHONS = pythons.found()
"""What older ones lack is checked where there is none, too: `tests/contract/test_oldest_python.py`."""
START = "import sys; sys.path.insert(0, sys.argv[1]); from headgate_spark.runtime.main import main; main()"
IMPORT = "import sys; sys.path.insert(0, sys.argv[1]); [__import__(name) for name in sys.argv[2:]]"
MINE = "mine.txt"
OLDER = ("headgate-spark_2.13-0.0.1.jar", "headgate-0.0.1-py3-none-any.whl", "maven/older.pom", MINE)
"""What is where a build is to go."""


@dataclass(frozen=True)
class Built:
    """The folder that a build has written."""

    folder: Path

    @property
    def jar(self) -> Path:
        """The jar for any Spark job."""
        return next(self.folder.glob("headgate-spark_2.13-*.jar"))

    @property
    def wheel(self) -> Path:
        """The wheel."""
        return next(self.folder.glob("headgate-*.whl"))

    @property
    def contents(self) -> dict[str, str]:
        """Digests of all files, by their paths."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): digest(path) for path in files}


def digest(path: Path, name: str = "sha256") -> str:
    return hashlib.new(name, path.read_bytes()).hexdigest()


def command(checkout: Path) -> list[str]:
    return [sys.executable, str(checkout / "spark_jobs" / "shim" / "dist.py")]


@pytest.fixture(scope="session")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Built, Built]:
    """Two builds, side by side, of the same sources; the second one for its user alone, and over older ones."""
    checkouts = [copy_of_the_checkout(tmp_path_factory.mktemp(name)) for name in ("one", "another-place")]
    (checkouts[1] / "dist" / "maven").mkdir(parents=True)
    for name in OLDER:
        (checkouts[1] / "dist" / name).touch()
    builds = [
        subprocess.Popen(
            command(checkout),
            env=os.environ | QUICK,
            umask=umask,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for checkout, umask in zip(checkouts, (0o022, 0o077), strict=True)
    ]
    for build in builds:
        said, _ = build.communicate(timeout=BUILD_SECONDS)
        assert build.returncode == 0, said.decode()
    one, other = (Built(checkout / "dist") for checkout in checkouts)
    return one, other


@pytest.fixture(scope="session")
def built(twice: tuple[Built, Built]) -> Built:
    """One of them."""
    return twice[0]


def test_two_builds_in_two_places_give_the_same_bytes(twice: tuple[Built, Built]) -> None:
    one, other = (built.contents for built in twice)
    assert len(one) > 20
    assert one == {name: found for name, found in other.items() if name != MINE}


def test_a_build_leaves_nothing_of_an_older_version(twice: tuple[Built, Built]) -> None:
    one, other = (built.contents for built in twice)
    assert other.keys() - one.keys() == {MINE}


# The jar -------------------------------------------------------------------------------------


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)
def test_a_bare_python_runs_the_planner_out_of_the_jar_and_unpacks_nothing(
    python: Path, built: Built, tmp_path: Path
) -> None:
    properties = {"spark.headgate.metrics.port": "0", "spark.headgate.metrics.address": "127.0.0.1"}
    settings = {"token": "t", "pid": os.getpid(), "application": "bare", "properties": properties}
    process = subprocess.Popen(
        [python, *BARE, "-c", START, f"{built.jar}/python"],
        cwd=tmp_path,
        env={"TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said, logged = process.communicate(json.dumps(settings) + "\n", timeout=120)
    assert process.returncode == 0, logged
    assert json.loads(said).keys() == {"port", "metricsPort"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)
def test_all_of_ours_in_the_jar_can_be_imported_with_what_is_in_there(python: Path, built: Built) -> None:
    with zipfile.ZipFile(built.jar) as jar:
        files = [name for name in jar.namelist() if name.startswith("python/headgate_")]
    modules = [
        name.removeprefix("python/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in files
        if not name.endswith("__main__.py")
    ]
    assert "headgate_spark.runtime.driver" in modules
    run = [python, *BARE, "-c", IMPORT, f"{built.jar}/python", *modules]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_what_only_jobs_call_and_what_is_compiled_or_a_test_is_not_in_the_jar(built: Built) -> None:
    with zipfile.ZipFile(built.jar) as jar:
        names = [name for name in jar.namelist() if name.startswith("python/")]
    assert {name.rpartition(".")[2] for name in names} == {"py"}
    assert not [name for name in names if "/tests/" in name or "/backfill/" in name or "/sources/" in name]


def test_the_jar_has_the_licence_of_each_package_that_it_carries(built: Built) -> None:
    with zipfile.ZipFile(built.jar) as jar:
        names = jar.namelist()
    packages = {
        name.split("/")[1] for name in names if name.startswith("python/") and "headgate_" not in name
    }
    with_licence = {name.split("/")[2].partition("-")[0] for name in names if "/licenses/" in name}
    assert packages == with_licence == {"prometheus_client", "py4j", "structlog"}
    assert "META-INF/LICENSE" in names


@pytest.mark.parametrize(
    ("pin", "remedy"),
    [
        (
            "structlog==26.1.0 --hash=sha256:e081a26d6c373e6d201eca24eede26d8ffab07f88f477822e679183428d3d91e",
            "needs Python >=3.10: pin one that runs on 3.9.",
        ),
        (
            "structlog==25.5.0 --hash=sha256:a8453e9b9e636ec59bd9e79bbd4a72f025981b3ba0f5837aebf48f02f37a7f9f",
            'needs typing-extensions; python_version < "3.11": pin one that needs nothing.',
        ),
        (f"structlog==24.4.0 --hash=sha256:{64 * '0'}", f"Expected sha256 {64 * '0'}"),
    ],
)
def test_a_package_that_would_not_run_on_every_python_or_is_another_one_is_not_carried(
    pin: str, remedy: str, tmp_path: Path
) -> None:
    checkout = copy_of_the_checkout(tmp_path)
    (checkout / "spark_jobs" / "shim" / "vendored.txt").write_text(f"# another\n{pin}\n")
    done = subprocess.run(
        command(checkout), capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    assert done.returncode == 1
    assert remedy in done.stderr
    assert not (checkout / "dist").exists()


# What is beside it ---------------------------------------------------------------------------


def test_the_bills_of_materials_name_the_very_files_and_what_is_in_them(built: Built) -> None:
    for artefact in (built.jar, built.wheel):
        bill = json.loads(artefact.with_suffix(".cdx.json").read_text())
        subject = bill["metadata"]["component"]
        assert subject["hashes"] == [{"alg": "SHA-256", "content": digest(artefact)}]
        listed = {part["bom-ref"] for part in bill["components"]}
        assert {*bill["dependencies"][0]["dependsOn"]} == listed
    of_jar = json.loads(built.jar.with_suffix(".cdx.json").read_text())
    with zipfile.ZipFile(built.jar) as jar:
        carried = {name.split("/")[2] for name in jar.namelist() if "/licenses/" in name}
    assert {f"{part['name']}-{part['version']}" for part in of_jar["components"]} == carried


def test_each_file_of_the_maven_repository_has_its_checksums(built: Built) -> None:
    files = [path for path in (built.folder / "maven").rglob("*") if path.is_file()]
    contents = [path for path in files if path.suffix in {".jar", ".pom", ".xml", ".json"}]
    assert len(files) == 5 * len(contents) == 20
    for path in contents:
        for name in ("md5", "sha1", "sha256", "sha512"):
            assert path.with_name(f"{path.name}.{name}").read_text() == digest(path, name)


@pytest.mark.spark
def test_a_plain_job_that_names_it_in_packages_is_governed_from_its_first_batch(
    built: Built, tmp_path: Path
) -> None:
    """Its trigger is an hour, and the control document's interval half a second. Others: `make test-spark-versions`.

    The planner's process is of the oldest Python that is here.
    """
    packaged.check(Path(sys.executable), built.folder, tmp_path, planner=next(iter(PYTHONS.values())))


# The wheel -----------------------------------------------------------------------------------


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Path]:
    """The programs of an environment in which nothing is installed: pip would take four seconds of processor."""
    venv.create(tmp_path / "venv")
    yield tmp_path / "venv" / "bin"
    shutil.rmtree(tmp_path / "venv")


def test_the_wheel_is_installed_without_a_jdk_and_has_its_jar(built: Built, fresh: Path) -> None:
    environ = {"PATH": str(fresh), "HOME": str(fresh)}
    install = [
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--disable-pip-version-check",
        str(built.wheel),
    ]
    pip = [sys.executable, "-m", "pip", "--python", fresh / "python"]
    subprocess.run([*pip, *install], env=environ, check=True, timeout=120)
    libraries = {
        "PYTHONPATH": sysconfig.get_path("purelib")
    }  # its dependencies; the checkout is not in there
    ask = "import pathlib, headgate_spark; print(pathlib.Path(headgate_spark.__file__).parent)"
    asked = [[fresh / "headgate-run", "--version"], [fresh / "python", "-c", ask]]
    version, home = (
        subprocess.run(
            words, env=environ | libraries, capture_output=True, text=True, check=True, timeout=120
        ).stdout.strip()
        for words in asked
    )
    assert built.wheel.name == f"headgate-{version}-py3-none-any.whl"
    assert Path(home).is_relative_to(fresh.parent)
    with zipfile.ZipFile(Path(home) / "jars" / "headgate-shim.jar") as jar:
        assert "dev/headgate/spark/PlannerProcess.class" in jar.namelist()


def commands() -> list[str]:
    """Every `spark-submit` of the README, in one line."""
    text = (ROOT / "README.md").read_text().replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.strip().startswith("spark-submit --jars")]


def like_a_newcomer(spark: Path) -> dict[str, str]:
    """An environment with PySpark's programs in its path, and nothing of ours."""
    hidden = ("SPARK_", "PYTHONPATH", "HEADGATE")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)} | {
        "PATH": f"{Path(sys.executable).parent}:{spark / 'bin'}:{os.environ['PATH']}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "JDK_JAVA_OPTIONS": f"{QUICK_START} {SHARING}",
    }


def longest() -> list[str]:
    """Those of them that say more than a part of another one."""
    words = {command: set(shlex.split(command, comments=True)) for command in commands()}
    return [command for command in words if not any(words[command] < other for other in words.values())]


@pytest.mark.spark
@pytest.mark.parametrize("command", longest())
def test_the_lines_of_the_readme_govern_a_job_and_are_all_that_it_needs(
    built: Built, tmp_path: Path, command: str
) -> None:
    import pyspark

    (tmp_path / "dist").symlink_to(built.folder)
    shutil.copyfile(packaged.JOB, tmp_path / "your-job.py")
    environment = like_a_newcomer(Path(pyspark.__file__).parent)
    words = [*shlex.split(command, comments=True), str(tmp_path / "checkpoint")]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert " batches" in done.stdout  # of a trigger of an hour


def test_the_first_command_for_ones_own_job_is_one_line() -> None:
    section = (ROOT / "README.md").read_text().partition("## Your own job")[2]
    first = next(line for line in section.splitlines() if line.startswith("    "))
    assert first.strip() in commands()
    assert len(commands()) == 2


# The tutorial --------------------------------------------------------------------------------


@pytest.mark.spark
def test_the_commands_of_the_tutorial_do_what_it_says(built: Built, tmp_path: Path) -> None:
    import pyspark

    for name, target in (("dist", built.folder), ("examples", ROOT / "examples")):
        (tmp_path / name).symlink_to(target)
    environment = like_a_newcomer(Path(pyspark.__file__).parent)
    runs = []
    for command in Guide.read(ROOT / "docs" / "tutorial.md").commands():
        if command.startswith(("python3 -m venv", "pip ", "make dist")):
            continue
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        log = tmp_path / "spark.log"
        assert done.returncode == 0, (log.read_text() if log.exists() else done.stderr)[-4000:]
        if command.startswith("spark-submit "):
            printed = re.findall(r"^batch (\d+): (\d+) orders", done.stdout, re.MULTILINE)
            runs.append([(int(batch), int(orders)) for batch, orders in printed])
    plain, governed, left = runs
    assert plain == [(0, 80_000)]
    orders = [0, *(count for _, count in governed)]
    assert orders[1] <= 5_000
    assert orders[-1] == 80_000
    assert max(after - before for before, after in pairwise(orders)) <= 20_000
    assert left == [(len(governed), 90_000)]


@pytest.mark.spark
def test_the_cells_of_the_notebook_do_what_it_says(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"{QUICK_START} {SHARING}")
    (tmp_path / "dist").symlink_to(built.folder)
    folder = tmp_path / "examples" / "tutorial"
    shutil.copytree(notebook.NOTEBOOK.parent, folder)
    cells = json.loads(notebook.NOTEBOOK.read_text())["cells"]
    shown = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    notebook.run(cells, folder)
    printed = ["".join(cell["outputs"][0]["text"]) for cell in cells if cell.get("outputs")]
    backlog, counted, paces = printed
    orders = [int(count) for count in re.findall(r"(\d+) orders", backlog)]
    assert 0 < orders[0] <= 5_000
    assert max(orders) <= 20_000
    assert sum(orders) == 80_000
    assert counted == "80000 orders\n"
    _, slow = (json.loads(found) for found in re.findall(r"batches: (\[.*\])", paces))
    assert slow[1:]
    assert min(slow[1:]) >= 3.5
    assert "the same run: True" in paces
    assert [bool(each) for each in shown] == [
        bool(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"
    ]
