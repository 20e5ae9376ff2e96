"""This machine, from /proc/cpuinfo."""

from __future__ import annotations

from pathlib import Path

from tuneassist.targets.machine import cpu_flags, cpu_name, this_machine

X86 = """processor\t: 0
model name\t: Some CPU @ 2.00GHz
flags\t\t: fpu sse2 avx2 avx512f smep

processor\t: 1
model name\t: Other
flags\t\t: fpu
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


def test_x86(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(X86)
    assert cpu_name(file) == "Some CPU @ 2.00GHz"
    assert cpu_flags(file) == {"fpu", "sse2", "avx2", "avx512f", "smep"}


def test_arm_without_a_name(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(ARM)
    assert cpu_name(file) == "Arm implementer 0x41 part 0xd40"
    assert cpu_flags(file) == {"fp", "asimd", "sve"}


def test_no_cpuinfo_still_gives_a_name(tmp_path: Path) -> None:
    assert cpu_name(tmp_path / "none")
    assert cpu_flags(tmp_path / "none") == frozenset()


def test_this_machine_is_the_same_each_time_and_keeps_vector_flags_only() -> None:
    machine = this_machine()
    assert machine == this_machine()
    assert machine.cores >= 1
    assert list(machine.features) == sorted(machine.features)
    assert not {"fpu", "smep", "syscall"} & set(machine.features)
