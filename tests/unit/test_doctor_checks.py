"""Doctor's checks of the machine, on machines of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuneassist.targets.checks import (
    Check,
    CheckStatus,
    check_clock,
    check_cores,
    check_environment,
    check_load,
    check_memory,
    check_packages,
)
from tuneassist.targets.diagnosis import exit_code

GIB = 1 << 30
OK, WARNING, ERROR = CheckStatus.OK, CheckStatus.WARNING, CheckStatus.ERROR


def test_installed_packages_are_shown_with_their_versions() -> None:
    checks = {check.id: check for check in check_packages()}
    assert checks["apache-tvm"].seen.startswith("0.")
    assert {check.status for check in checks.values()} == {OK}


def test_a_missing_package_is_an_error_with_its_command() -> None:
    (check,) = check_packages({"torch": None})
    assert check.status is ERROR
    assert "pip install torch" in check.remedy


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("0.1.14.post0", OK),
        ("0.1.14.post1", OK),
        ("0.1.15", ERROR),
        ("0.1.15.post2", ERROR),
        ("0.2.0", ERROR),
    ],
)
def test_the_tvm_ffi_that_crashes_is_known(version: str, status: CheckStatus) -> None:
    (check,) = check_packages({"apache-tvm-ffi": version})
    assert check.status is status
    assert version in check.seen
    assert ("<0.1.15" in check.remedy) == (status is ERROR)


@pytest.mark.parametrize(
    ("allowed", "quota", "status", "said"),
    [
        ((0, 1), None, OK, "2 of 8 cores allowed (0-1)"),
        ((0, 1), 2.0, OK, "quota 2"),
        ((0, 1, 2, 3), 1.5, WARNING, "quota 1.5"),
    ],
)
def test_cores(allowed: tuple[int, ...], quota: float | None, status: CheckStatus, said: str) -> None:
    check = check_cores(allowed, 8, quota)
    assert check.status is status
    assert said in check.seen


def test_a_quota_below_the_cores_names_the_cores_to_tune_on() -> None:
    assert "--cores 4-5" in check_cores((4, 5, 6, 7), 8, 2.5).remedy


@pytest.mark.parametrize(
    ("available", "limit", "status"),
    [(8 * GIB, None, OK), (8 * GIB, 3 * GIB, OK), (8 * GIB, GIB, WARNING), (GIB // 2, None, ERROR)],
)
def test_memory(available: int, limit: int | None, status: CheckStatus) -> None:
    assert check_memory(available, limit).status is status


@pytest.mark.parametrize(
    ("governors", "status"), [([], OK), (["performance"], OK), (["performance", "powersave"], WARNING)]
)
def test_governor(governors: list[str], status: CheckStatus, tmp_path: Path) -> None:
    for number, governor in enumerate(governors):
        file = tmp_path / f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor"
        file.parent.mkdir(parents=True)
        file.write_text(governor + "\n")
    check = check_clock(tmp_path)
    assert check.status is status
    assert all(governor in check.seen for governor in governors)


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("intel_pstate/no_turbo", "0", "turbo on"),
        ("intel_pstate/no_turbo", "1", "turbo off"),
        ("cpufreq/boost", "1", "turbo on"),
        ("cpufreq/boost", "0", "turbo off"),
    ],
)
def test_turbo(name: str, value: str, seen: str, tmp_path: Path) -> None:
    file = tmp_path / "sys/devices/system/cpu" / name
    file.parent.mkdir(parents=True)
    file.write_text(value)
    assert check_clock(tmp_path).seen == seen


@pytest.mark.parametrize(
    ("ticks", "status", "said"),
    [
        ([2, 0, 0, 198, 0, 0, 0, 0], OK, "1% of the CPU time"),
        ([100, 0, 0, 100, 0, 0, 0, 0], WARNING, "50% of the CPU time"),
        ([0, 0, 0, 180, 0, 0, 0, 20], WARNING, "hypervisor takes 10%"),
    ],
)
def test_load(ticks: list[int], status: CheckStatus, said: str) -> None:
    before = [1000, 5, 5, 9000, 7, 1, 1, 3, 0, 0]
    after = [early + late for early, late in zip(before, [*ticks, 0, 0], strict=True)]
    check = check_load(before, after)
    assert check.status is status
    assert said in check.seen


def test_a_system_without_proc_stat_is_no_reason_to_worry() -> None:
    assert check_load([], []).status is OK


@pytest.mark.parametrize(
    ("environment", "status"),
    [
        ({}, OK),
        ({"OMP_NUM_THREADS": "4"}, OK),
        ({"OMP_NUM_THREADS": "1"}, WARNING),
        ({"MKL_NUM_THREADS": "two"}, WARNING),
        ({"OPENBLAS_NUM_THREADS": ""}, OK),
    ],
)
def test_thread_variables(environment: dict[str, str], status: CheckStatus) -> None:
    check = check_environment(environment, cores=4)
    assert check.status is status
    assert all(name in check.remedy for name in environment if status is WARNING)


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({}, 0),
        ({"load": WARNING}, 0),
        ({"store": ERROR}, 5),
        ({"store": ERROR, "disk": ERROR, "load": WARNING}, 5),
        ({"store": ERROR, "kernel": ERROR}, 3),
        ({"apache-tvm": ERROR}, 3),
    ],
)
def test_exit_code(found: dict[str, CheckStatus], code: int) -> None:
    assert (
        exit_code([Check("python", OK, ""), *(Check(name, status, "") for name, status in found.items())])
        == code
    )
