"""Local checkpoints are written as Hadoop writes them, and no process is started for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from support.spark import local_files

pytestmark = pytest.mark.spark

TEMPORARY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@contextmanager
def written_by_us(spark: SparkSession, *, ours: bool = True) -> Iterator[None]:
    local_files(spark, spark_headgate_localFiles=str(ours).lower())
    try:
        yield
    finally:
        local_files(spark)


def writer(spark: SparkSession, hadoop: Any = None) -> str:
    contexts = spark._jvm.org.apache.hadoop.fs.FileContext
    context = contexts.getFileContext(hadoop or spark._jsc.hadoopConfiguration())
    return str(context.getDefaultFileSystem().getClass().getSimpleName())


class Manager:
    """Spark's own manager of a checkpoint, asked as its logs and stores do."""

    def __init__(self, spark: SparkSession, folder: Path, umask: str) -> None:
        self._jvm, self._folder = spark._jvm, folder
        conf = self._jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
        conf.set("fs.permissions.umask-mode", umask)
        self._conf = conf
        package = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing
        self._manager = package.FileContextBasedCheckpointFileManager(self._path(""), conf)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"file:{self._folder}/{name}")

    def write(self, name: str, text: str, *, overwrite: bool = False, cancel: bool = False) -> str:
        def written() -> None:
            stream = self._manager.createAtomic(self._path(name), overwrite)
            stream.write(text.encode())
            stream.cancel() if cancel else stream.close()

        return told(written)

    def read(self, name: str) -> str:
        def text() -> Any:
            stream = self._manager.open(self._path(name))
            found = bytes(stream.readAllBytes()).decode()
            stream.close()
            return found

        return told(text)

    def names(self, name: str) -> str:
        return told(lambda: sorted(str(s.getPath().getName()) for s in self._manager.list(self._path(name))))

    def mkdirs(self, name: str) -> str:
        return told(lambda: self._manager.mkdirs(self._path(name)))

    def exists(self, name: str) -> str:
        return told(lambda: self._manager.exists(self._path(name)))

    def delete(self, name: str) -> str:
        return told(lambda: self._manager.delete(self._path(name)))

    def copied(self, name: str, to: str) -> str:
        """There and back, as stores of RocksDB do."""

        def copies() -> None:
            files = self._path(to).getFileSystem(self._conf)
            files.copyFromLocalFile(self._path(name), self._path(to))
            files.copyToLocalFile(self._path(to), self._path(f"{to}-back"))

        return told(copies)


def told(step: Callable[[], Any]) -> str:
    try:
        return TEMPORARY.sub("random", str(step()))
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getName())


def tree(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Every name below a folder, with its permissions and what is in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = TEMPORARY.sub("random", str(path.relative_to(folder)))
        content = path.read_bytes() if path.is_file() else b""
        found[name] = f"{path.lstat().st_mode:o}", content
    return found


def story(manager: Manager, folder: Path) -> list[str]:
    """All that a checkpoint goes through, and some that it should not."""
    (folder / "shared").mkdir()
    (folder / "shared").chmod(0o2775)  # as volumes with an fsGroup
    (folder / "elsewhere").mkdir()
    (folder / "linked").symlink_to(folder / "elsewhere")
    (folder / "dangling").symlink_to(folder / "nowhere")
    return [
        manager.mkdirs("offsets/deep"),
        manager.mkdirs("offsets"),
        manager.mkdirs("shared/state"),
        manager.write("shared/state/1.delta", "state"),
        manager.write("offsets/0", "first"),
        manager.write("offsets/0", "second"),
        manager.read("offsets/0"),
        manager.write("offsets/0", "third", overwrite=True),
        manager.read("offsets/0"),
        manager.write("offsets/1", "cancelled", cancel=True),
        damaged(folder / "offsets" / "0", b"fourt"),
        manager.read("offsets/0"),
        manager.write("offsets/deep", "over a directory", overwrite=True),
        manager.write("offsets/0/below", "a file"),
        manager.mkdirs("offsets/0"),
        manager.write("new/0", "in a directory that is not there"),
        manager.write("linked/0", "through a link"),
        manager.write("linked", "over a link"),
        manager.write("dangling", "over a link to nothing"),
        manager.write("with space and ü %20", "a name"),
        manager.read("with space and ü %20"),
        manager.names("offsets"),
        manager.names("nothing"),
        manager.exists("offsets/0"),
        manager.exists("dangling"),
        manager.copied("offsets/0", "SSTs/0.sst"),
        manager.copied("offsets/0", "SSTs/0.sst"),
        manager.copied("nothing", "SSTs/1.sst"),
        manager.copied("new/0", "linked/copy"),
        manager.delete("linked/0"),
        manager.delete("new"),
        manager.delete("new"),
        manager.read("nothing"),
    ]


def damaged(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    return "changed on the disk, by nobody that knows of checksums"


@pytest.mark.parametrize("umask", ["022", "077"])
def test_what_comes_of_each_step_is_what_hadoop_makes_of_it(
    spark: SparkSession, tmp_path: Path, umask: str
) -> None:
    came = []
    for name, ours in (("hadoop", False), ("ours", True)):
        folder = tmp_path / name
        folder.mkdir()
        with written_by_us(spark, ours=ours):
            came.append((story(Manager(spark, folder, umask), folder), tree(folder)))
    assert came[1] == came[0]


def test_a_name_that_java_cannot_have_is_told_as_hadoop_tells_it(spark: SparkSession, tmp_path: Path) -> None:
    """As one with letters that the locale of the JVM has not: Hadoop asks for another name then."""
    hadoop = spark._jvm.org.apache.hadoop
    path = hadoop.fs.Path(f"file:{tmp_path}/a\0b")

    def status() -> Any:
        return hadoop.fs.FileContext.getFileContext(spark._jsc.hadoopConfiguration()).getFileLinkStatus(path)

    for ours in (False, True):
        with written_by_us(spark, ours=ours):
            assert told(status) == "java.io.FileNotFoundException"


@contextmanager
def processes(spark: SparkSession, folder: Path) -> Iterator[list[str]]:
    """Programs that the JVM starts for files in a folder; Spark, and what ran before in this session, have others."""
    jvm = spark._jvm
    recording, found = jvm.jdk.jfr.Recording(), []
    recording.enable("jdk.ProcessStart")
    recording.start()
    yield found
    recording.stop()
    file = jvm.java.io.File(str(folder / "recorded.jfr")).toPath()
    recording.dump(file)
    events = jvm.jdk.jfr.consumer.RecordingFile.readAllEvents(file)
    started = [str(event.getString("command")) for event in events]
    found += [command for command in started if str(folder) in command]
    recording.close()


@pytest.fixture
def rocksdb(spark: SparkSession) -> Iterator[None]:
    """A state whose files are copied, beside the logs that are written."""
    name = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(name, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    yield
    spark.conf.unset(name)


@pytest.mark.usefixtures("one_task_a_stage", "rocksdb")
def test_plain_spark_goes_on_with_a_checkpoint_of_ours_and_back(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    started: dict[bool, list[str]] = {True: [], False: []}
    distinct = 0
    for number, ours in enumerate((False, True, True, False, True)):
        values = pa.array([number, number + 1], pa.int64())
        pq.write_table(pa.table({"value": values}), source / f"{number}.parquet")
        rows = spark.readStream.schema("value long").parquet(str(source)).dropDuplicates()
        writing = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        with written_by_us(spark, ours=ours), processes(spark, tmp_path) as programs:
            query = writing.trigger(availableNow=True).start()
            assert query.awaitTermination(240)
        assert query.exception() is None
        distinct += sum(p["stateOperators"][0]["numRowsUpdated"] for p in query.recentProgress)
        started[ours] += programs
    assert distinct == 6
    assert any(".sst" in command for command in started[False])
    assert started[True] == []


def below(spark: SparkSession) -> str:
    """What the file system writes by that all of the JVM share."""
    files = spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())
    return str(files.getRawFileSystem().getClass().getSimpleName())


def test_what_somebody_has_chosen_stays(spark: SparkSession) -> None:
    hadoop = spark._jvm.org.apache.hadoop.conf.Configuration
    chosen, other = (hadoop(spark._jsc.hadoopConfiguration()) for _ in range(2))
    chosen.set("fs.AbstractFileSystem.file.impl", "org.apache.hadoop.fs.local.LocalFs")
    other.set("fs.file.impl", "org.apache.hadoop.fs.LocalFileSystem")

    def writers(hadoop: Any = None) -> tuple[str, str]:
        return writer(spark, hadoop), below(spark)

    with written_by_us(spark):
        ours, hadoops = ("LocalFiles", "Forkless"), ("LocalFs", "RawLocalFileSystem")
        assert writers() == ours
        local_files(spark, chosen)
        assert writers(chosen) == hadoops
        local_files(spark)
        assert writers() == ours
        local_files(spark, other)
        assert writers() == hadoops
        local_files(spark, spark_sql_streaming_checkpointFileManagerClass="org.example.Manager")
        assert writers() == hadoops
        local_files(spark, spark_headgate_enabled="false")
        assert writers() == hadoops
