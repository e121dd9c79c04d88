"""What the kernel's counts tell of a process that was killed."""

import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.engine.oom_kills import Kills, OomKills, is_among
from support.node_cgroups import ControlGroup
from support.requirements import missing, need_root

PID = 4711


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (Kills(0, 0), Kills(1, 1), True),
        (Kills(3, 9), Kills(3, 9), False),
        (Kills(3, 9), Kills(3, 10), False),
        (Kills(None, 9), Kills(None, 9), False),
        (Kills(None, 9), Kills(None, 10), None),
        (Kills(), Kills(), None),
        (Kills(3, None), Kills(None, None), None),
        (Kills(3, 9), Kills(None, 9), False),
        (Kills(3, 9), Kills(None, None), None),
    ],
    ids=[
        "counted for its group",
        "counted for nobody",
        "another group's",
        "no count for its group, none on the machine",
        "no count for its group, one on the machine: anybody's",
        "nothing counts",
        "the group is gone",
        "the group is gone, none on the machine",
        "all is gone",
    ],
)
def test_a_kill_is_for_want_of_memory_if_the_kernel_counts_it(before, after, told):
    assert is_among(before, after) is told


counts = st.none() | st.integers(0, 5)


@given(st.builds(Kills, counts, counts), st.builds(Kills, counts, counts))
def test_what_nobody_counts_is_unknown_and_a_count_of_others_accuses_nobody(before, after):
    told = is_among(before, after)
    if told:
        assert after.of_group > before.of_group
    if None in (before.of_group, after.of_group) and None in (before.of_machine, after.of_machine):
        assert told is None


def machine(root, cgroup, mounts, files):
    """Write what the kernel shows of a process and its group."""
    contents = {f"proc/{PID}/cgroup": cgroup, "proc/self/mountinfo": mounts, **files}
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


V2 = "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "34 31 0:31 {root} /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)
MEMORY = "sys/fs/cgroup/memory"
EVENTS = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"
MACHINE = "nr_free_pages 1\noom_kill 7\n"


@pytest.mark.parametrize(
    ("cgroup", "mounts", "file", "text"),
    [
        ("0::/\n", V2, "sys/fs/cgroup/memory.events", EVENTS),
        ("0::/user.slice/a:b\n", V2, "sys/fs/cgroup/user.slice/a:b/memory.events", EVENTS),
        ("9:cpu:/x\n4:memory:/x\n0::/\n", V1.format(root="/") + V2, f"{MEMORY}/x/memory.oom_control", CONTROL),
        ("4:memory:/pods/x\n", V1.format(root="/pods/x"), f"{MEMORY}/memory.oom_control", CONTROL),
    ],
    ids=["2, in a container", "2", "1, beside a 2 without memory", "1, in a container"],
)  # fmt: skip
def test_the_count_of_a_group_is_found_in_both_versions(tmp_path, cgroup, mounts, file, text):
    root = machine(tmp_path, cgroup, mounts, {file: text, "proc/vmstat": MACHINE})
    kills = OomKills(PID, root)
    assert kills.tell() is False
    (root / file).write_text(text.replace("oom_kill 2", "oom_kill 3"))
    assert kills.tell() is True


@pytest.mark.parametrize(
    ("cgroup", "mounts", "files"),
    [
        ("0::/\n", V2, {}),
        ("0::/../other\n", V2, {"sys/fs/cgroup/memory.events": EVENTS}),
        ("4:memory:/x\n", V1.format(root="/y"), {f"{MEMORY}/memory.oom_control": CONTROL}),
        ("4:memory:/x\n", V1.format(root="/"), {f"{MEMORY}/x/memory.oom_control": "under_oom 0\n"}),
        ("", "", {}),
    ],
    ids=["the root group", "another namespace's", "mounted in part", "an old kernel", "no groups"],
)
def test_without_a_count_of_its_group_the_machine_can_only_rule_it_out(tmp_path, cgroup, mounts, files):
    root = machine(tmp_path, cgroup, mounts, files | {"proc/vmstat": MACHINE})
    kills = OomKills(PID, root)
    assert kills.tell() is False
    (root / "proc/vmstat").write_text("oom_kill 8\n")
    assert kills.tell() is None


def test_where_there_is_no_linux_nothing_is_known(tmp_path):
    assert OomKills(PID, tmp_path).tell() is None


# On this machine's kernel

LIMIT = 64 * 2**20
HOARDER = "print(flush=True)\ninput()\nhoard = []\nwhile True: hoard.append(bytearray(2**20))"


@pytest.fixture
def small_group(tmp_path):
    """A control group with little memory."""
    need_root("limit the memory of a control group")
    if OomKills(os.getpid()).tell() is None:
        missing("this kernel does not count what it kills for want of memory")
    try:
        group = ControlGroup(f"headgate-{os.getpid()}")
        group.limit_memory(LIMIT)
    except OSError as error:
        missing(f"the memory of a control group cannot be limited here: {error}")
    yield group
    group.kill()
    group.remove()


@pytest.mark.parametrize("wants_memory", [True, False], ids=["by the kernel", "by hand"])
def test_a_real_kill_for_want_of_memory_is_told_from_one_by_hand(small_group, wants_memory):
    command = [*small_group.command_to_join(), sys.executable, "-c", HOARDER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        kills = OomKills(process.pid)
        if wants_memory:
            process.stdin.write(b"\n")
            process.stdin.close()
        else:
            process.kill()
        assert process.wait(60) == -signal.SIGKILL
        assert kills.tell() is wants_memory
