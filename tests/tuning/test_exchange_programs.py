"""The best schedule as script, library and snippet, and a trial's program: each does what it says."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from exchange_tools import CONV, MATMUL, assert_right, inputs_and_output, result, run, tuned_store
from store_rows import ok, start_run

from tuneassist.commands._main import cli
from tuneassist.cost_model import context_relation
from tuneassist.cost_model.registry import create_cost_model
from tuneassist.errors import NoMeasurementError, UsageError
from tuneassist.exchange import apply
from tuneassist.exchange.program import inspect_trial
from tuneassist.storage.sqlite import open_store
from tuneassist.targets.cores import usable_cores
from tuneassist.tvm_api import tvm
from tuneassist.ui.program import read_program
from tuneassist.workloads.build import build_prim_func
from tuneassist.workloads.spec import parse_workload

pytestmark = pytest.mark.tvm

NAMES = {MATMUL: ("a", "b"), CONV: ("data", "weight")}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tuned_store(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def libraries(tuned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with `kernel1.so` and `kernel2.so`, of the two runs, and their headers."""
    folder = tmp_path_factory.mktemp("libraries")
    for number in (1, 2):
        result("export", str(number), "--format", "so", "-o", str(folder / f"kernel{number}.so"), db=tuned)
    return folder


@pytest.mark.parametrize(("number", "spec"), [(1, MATMUL), (2, CONV)])
def test_a_library_takes_the_workload_s_ordinary_arguments(libraries: Path, number: int, spec: str) -> None:
    inputs, want = inputs_and_output(spec)
    library = tvm.runtime.load_module(str(libraries / f"kernel{number}.so"))
    output = tvm.runtime.empty(want.shape, str(want.dtype))
    library["main"](*map(tvm.runtime.tensor, inputs), output)
    assert_right(spec, output.numpy(), want)


def run_python(lines: str, spec: str, folder: Path, outputs: str) -> np.ndarray:
    """Run code as a user pastes it, after the arrays that it names, and return an array of it."""
    inputs, _ = inputs_and_output(spec)
    np.savez(folder / "inputs.npz", **dict(zip(NAMES[spec], inputs, strict=True)))  # type: ignore[arg-type]
    script = folder / "pasted.py"
    script.write_text(
        "import numpy as np\nglobals().update(np.load('inputs.npz'))\n"
        f"{lines}\nnp.save('output.npy', {outputs})\n"
    )
    subprocess.run([sys.executable, str(script)], cwd=folder, check=True, timeout=120)
    found: np.ndarray = np.load(folder / "output.npy")
    return found


def commented_python(header: Path) -> str:
    """The Python of a header's comment."""
    lines = [line.removeprefix(" *     ") for line in header.read_text().splitlines()]
    first = lines.index("import tvm")
    return "\n".join(lines[first : lines.index(" *", first)])


@pytest.mark.parametrize(("number", "spec"), [(1, MATMUL), (2, CONV)])
def test_the_header_s_python_runs_as_it_stands(libraries: Path, number: int, spec: str) -> None:
    code = commented_python(libraries / f"kernel{number}.h")
    assert ("main_packed" in code) == (spec == CONV)
    last = "conv2d_nchw.numpy()" if spec == CONV else "result"  # what main_packed wrote
    _, want = inputs_and_output(spec)
    assert_right(spec, run_python(code, spec, libraries, last), want)


C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "kernel1.h"
static float in[2][4096] __attribute__((aligned(64))), out[4096] __attribute__((aligned(64)));
int main(void) {
  int64_t shape[] = {64, 64};
  DLTensor t[3], *tensors[3];
  FILE *file = fopen("inputs.bin", "rb");
  if (!file || fread(in, sizeof in, 1, file) != 1) return 10;
  memset(t, 0, sizeof t);
  for (int i = 0; i < 3; ++i) {
    t[i].data = i < 2 ? in[i] : out;
    t[i].device.device_type = kDLCPU;
    t[i].dtype.code = kDLFloat, t[i].dtype.bits = 32, t[i].dtype.lanes = 1;
    t[i].ndim = 2, t[i].shape = shape;
    tensors[i] = &t[i];
  }
  TVMFFIObjectHandle kernel;
  if (kernel1_load("./kernel1.so", "absent", &kernel) == 0) return 11;
  if (kernel1_load("./kernel1.so", "main", &kernel)) return 12;
  if (kernel1_call(kernel, tensors, 3)) return 13;
  return fwrite(out, sizeof out, 1, stdout) == 1 ? 0 : 14;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_header_s_c_functions_call_it(libraries: Path) -> None:
    inputs, want = inputs_and_output(MATMUL)
    (libraries / "inputs.bin").write_bytes(b"".join(array.tobytes() for array in inputs))
    (libraries / "app.c").write_text(C_PROGRAM)
    tvm_lib, ffi = _package("tvm") / "lib", _package("tvm_ffi")
    subprocess.run(
        ["cc", "-Wall", "-Werror", "app.c", "-o", "app", f"-I{ffi / 'include'}", "-Wl,--no-as-needed",
         f"-L{ffi / 'lib'}", "-ltvm_ffi", f"-L{tvm_lib}", "-ltvm_runtime"],
        cwd=libraries, check=True,
    )  # fmt: skip
    done = subprocess.run(
        ["./app"], cwd=libraries, capture_output=True, timeout=60, check=True,
        env={**os.environ, "LD_LIBRARY_PATH": f"{ffi / 'lib'}:{tvm_lib}"},
    )  # fmt: skip
    assert_right(MATMUL, np.frombuffer(done.stdout, dtype=np.float32).reshape(want.shape), want)


def _package(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None and spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


@pytest.mark.parametrize("compiler", ["/no/such/compiler", "false"])
def test_without_a_working_compiler_nothing_is_left_behind(
    tuned: Path, tmp_path: Path, compiler: str
) -> None:
    path = tmp_path / "kernel.so"
    finished = run("export", "1", "--format", "so", "-o", str(path), db=tuned, CXX=compiler)
    assert finished.returncode == 3 and compiler in finished.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_script_is_read_back_as_the_same_program(tuned: Path, tmp_path: Path) -> None:
    path = tmp_path / "best.py"
    done = result("export", "2", "--format", "script", "-o", str(path), db=tuned)
    program = result("trial", str(done["trial_id"]), db=tuned)
    text = path.read_text()
    assert program["script"] in text
    module = tvm.script.from_source(text)
    assert module.script() == program["script"]


def test_a_trial_s_program_is_what_the_ui_reads(tuned: Path) -> None:
    with open_store(tuned, readonly=True) as store:
        trials = store.trials(2)
    for trial in trials[:4]:
        program = read_program(run("trial", str(trial.id), "--json", db=tuned).stdout, "a trial")
        kinds = {node.kind for node in program.nodes}
        assert {"root", "loop", "block", "store", "load", "mul"} <= kinds
        assert program.nodes[0].parent is None and "sch.get_sblock" in program.trace
        loops = [dict(node.detail) for node in program.nodes if node.kind == "loop"]
        assert all(loop["extent"] > 1 or loop.get("unroll_max_step") for loop in loops)
        by_id = {node.id: node for node in program.nodes}
        assert program.edges
        for source, target, kind in program.edges:
            assert (by_id[source].kind, by_id[target].kind, kind) == ("store", "load", "flow")


def test_strides_of_an_untouched_matmul(tmp_path: Path) -> None:
    db = tmp_path / "plain.sqlite"
    with open_store(db) as store:
        place = start_run(store)
        module = build_prim_func(parse_workload("matmul:m=8,n=16,k=32"))
        store.connection.execute("UPDATE workloads SET mod_json = ?", (tvm.ir.save_json(module),))
        store.connection.commit()
        program = inspect_trial(store, store.add_trial(ok(place, 1, 1e-3)))  # of the empty trace
    accesses = {
        (node["kind"], node["label"].split()[0]): node["detail"]["strides"]
        for node in program["nodes"]
        if "strides" in node["detail"]
    }
    # along k, n and m
    assert accesses["load", "a"] == [1, 0, 32]
    assert accesses["load", "b"] == [16, 1, 0]
    assert accesses["store", "T_matmul_NN"] == [0, 1, 16]
    extents = [node["detail"]["extent"] for node in program["nodes"] if node["kind"] == "loop"]
    assert extents == [8, 16, 32]


def test_contributions_and_constant_add_up_to_the_prediction(tuned: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "model.pt"
    create_cost_model("gcn").save(checkpoint)
    with open_store(tuned, readonly=True) as store:
        trial = store.trials(2)[0]
    program = result("trial", str(trial.id), "--model", str(checkpoint), db=tuned)
    total = sum(node["contribution"] for node in program["nodes"])
    assert math.exp(program["constant"] + total) == pytest.approx(program["predicted_secs"])
    assert run("trial", str(trial.id), "--model", "absent.pt", db=tuned).returncode == 2
    named = ("model", "explain", "--run", "2", "--trial", str(trial.ordinal), "--model", str(checkpoint))
    assert result(*named, db=tuned) == {**program, "model": str(checkpoint)}
    text = run("model", "explain", str(trial.id), "--model", str(checkpoint), db=tuned).stdout
    assert "store conv2d_nchw" in text and f"constant {program['constant']:+.3g}" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((), "one trial"), (("1", "--run", "1"), "one trial"), (("--run", "1"), "one trial"),
     (("--run", "1", "--trial", "99"), "go up to 16"), (("--run", "9", "--trial", "1"), "9"),
     (("999999",), "no trial of id 999999")],
)  # fmt: skip
def test_what_cannot_be_explained_is_said(
    tuned: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    checkpoint = tmp_path / "model.pt"
    create_cost_model("gcn").save(checkpoint)
    named = ["model", "explain", *arguments, "--model", str(checkpoint), "--db", str(tuned)]
    said = CliRunner().invoke(cli, named, standalone_mode=False).exception
    assert isinstance(said, UsageError) and words in str(said)


def test_classes_of_nodes_that_are_unknown_are_told(tmp_path: Path) -> None:
    source = """
# from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), I: T.Buffer((1,), "int32")):
    I[0] = 0
    while I[0] < 64:
        for i in T.serial(4):
            B[i] = A[i] * T.Shuffle([A[0], A[1]], [0])
        I[0] = I[0] + 1
"""
    module = tvm.IRModule({"main": tvm.script.from_source(source)})
    checkpoint, db = tmp_path / "model.pt", tmp_path / "odd.sqlite"
    create_cost_model("gcn").save(checkpoint)
    with open_store(db) as store:
        place = start_run(store)
        store.connection.execute("UPDATE workloads SET mod_json = ?", (tvm.ir.save_json(module),))
        store.connection.commit()
        trial_id = store.add_trial(ok(place, 1, 1e-3))
    explained = result("model", "explain", str(trial_id), "--model", str(checkpoint), db=db)
    assert explained["unknown"] == {"While": 1, "Shuffle": 1}
    assert explained["predicted_secs"] > 0
    shown = CliRunner().invoke(cli, ["trial", str(trial_id), "--model", "none", "--db", str(db)])
    assert "unknown class, which a model sees as such: Shuffle (1), While (1)" in shown.stderr
    assert np.isfinite(context_relation.features([module])[0].values).all()


def test_apply_verifies_measures_and_shows_code_that_runs(tuned: Path, tmp_path: Path) -> None:
    done = result("apply", CONV, db=tuned)
    assert done["correct"] is True and done["reference"] == "PyTorch"
    assert 0 < done["tuned_secs"] == float(np.median(done["tuned_run_secs"]))
    assert done["times_as_fast_as_untuned"] == done["untuned_secs"] / done["tuned_secs"]
    with open_store(tuned, readonly=True) as store:
        best = min((t for t in store.trials(2) if t.best_of), key=lambda t: t.best_of or 0.0)
    assert done["trial_id"] == best.id
    code = done["snippet"]
    export = code.splitlines()[0].removeprefix("# tuneassist ")
    finished = run(
        *export.replace("'", "").replace("kernel.so", str(tmp_path / "kernel.so")).split(), db=tuned
    )
    assert finished.returncode == 0, finished.stderr
    _, want = inputs_and_output(CONV)
    assert_right(CONV, run_python(code, CONV, tmp_path, "conv2d_nchw.numpy()"), want)


def test_a_wrong_schedule_is_marked_and_never_applied(
    tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = Path(shutil.copy(tuned, tmp_path / "t.sqlite"))
    # No output is closer than this, so every one counts as wrong.
    monkeypatch.setattr(apply, "tolerance", lambda info: (0.0, -1.0))
    with open_store(db) as store:
        with pytest.raises(NoMeasurementError, match="marked wrong"):
            apply.apply_best(store, CONV, "native", usable_cores(), verify=True)
        wrong = [trial for trial in store.trials(2) if trial.correct is False]
        assert len(wrong) == 5
        done = apply.apply_best(store, CONV, "native", usable_cores(), verify=False)
    assert done.correct is None and done.ordinal not in {trial.ordinal for trial in wrong}


def test_what_another_machine_measured_is_not_applied_here(tuned: Path, tmp_path: Path) -> None:
    db = Path(shutil.copy(tuned, tmp_path / "t.sqlite"))
    with open_store(db) as store:
        store.connection.execute("UPDATE machines SET hostname = 'elsewhere'")
        store.connection.commit()
    finished = run("apply", MATMUL, "--json", db=db)
    assert finished.returncode == 2
    said = json.loads(finished.stdout)
    assert "elsewhere" in said["remedy"] and "tuneassist --batch --workload" in said["remedy"]


def test_apply_on_no_database_makes_none(tmp_path: Path) -> None:
    db = tmp_path / "none.sqlite"
    assert run("apply", MATMUL, db=db).returncode == 5
    assert not db.exists()
