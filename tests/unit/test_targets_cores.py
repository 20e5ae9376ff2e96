"""Cores, CPU quotas and memory limits of this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneassist.errors import UsageError
from tuneassist.targets import cores
from tuneassist.targets.cgroups import cpu_quota, memory_limit


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_core_list_reads_back_as_it_was_written(ids: set[int]) -> None:
    assert cores.parse_cores(cores.format_cores(ids), allowed=range(301)) == tuple(sorted(ids))


def test_ids_ranges_spaces_and_repetitions() -> None:
    assert cores.parse_cores(" 0, 2-4,3 ", allowed=range(8)) == (0, 2, 3, 4)


@pytest.mark.parametrize("text", ["", "a", "1,", "1-", "-1", "1--2", "0x1", "1.5", "٣", "99999999999"])
def test_what_is_no_core_list_is_refused_with_the_allowed_cores(text: str) -> None:
    with pytest.raises(UsageError, match="core list") as caught:
        cores.parse_cores(text, allowed=(0, 1, 2, 5))
    assert "0-2,5" in caught.value.remedy


def test_a_backward_range_is_refused_with_the_right_way_round() -> None:
    with pytest.raises(UsageError) as caught:
        cores.parse_cores("3-1", allowed=range(8))
    assert "1-3" in caught.value.remedy


def test_only_the_cores_that_are_not_allowed_are_named() -> None:
    with pytest.raises(UsageError, match="asks for 2-3,900000") as caught:
        cores.parse_cores("1-3,900000", allowed=(0, 1))
    assert "0-1" in caught.value.remedy


def test_usable_cores_are_allowed_ones() -> None:
    assert cores.usable_cores()
    assert set(cores.usable_cores()) <= set(cores.allowed_cores())


@pytest.mark.parametrize(("quota", "count"), [(None, 8), (1.5, 2), (2.0, 2), (0.25, 1), (64.0, 8)])
def test_a_quota_limits_the_cores(quota: float | None, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "allowed_cores", lambda: tuple(range(8)))
    monkeypatch.setattr(cores, "cpu_quota", lambda: quota)
    assert cores.usable_cores() == tuple(range(count))


def test_no_control_group_no_limit(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None
    assert memory_limit(tmp_path) is None


def test_version_2_takes_the_tightest_limit_on_the_way_up(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/work/job",
            "sys/fs/cgroup/work/job/cpu.max": "max 100000\n",
            "sys/fs/cgroup/work/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/cpu.max": "400000 100000\n",
            "sys/fs/cgroup/work/job/memory.max": "max\n",
            "sys/fs/cgroup/work/memory.max": "1073741824\n",
        },
    )
    assert cpu_quota(root) == 1.5
    assert memory_limit(root) == 1 << 30


def test_version_1_with_its_own_spelling_of_no_limit(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/box\n3:cpu,cpuacct:/box\n",
            "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "250000",
            "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert cpu_quota(root) == 2.5
    assert memory_limit(root) is None


def test_a_container_whose_path_is_the_hosts(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {"proc/self/cgroup": "0::/../docker/0123", "sys/fs/cgroup/cpu.max": "200000 100000"},
    )
    assert cpu_quota(root) == 2.0
