"""`tuneassist` itself: the TUI without arguments, `--batch`, and the subcommands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tuneassist import __version__
from tuneassist.commands._group import LazyGroup
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.config import database_path
from tuneassist.errors import TuneAssistError, UsageError
from tuneassist.records import COST_MODELS

_BATCH = "Batch tuning (with --batch)"


def main() -> int:
    """Run the command line and return the exit code."""
    debug = "--debug" in sys.argv[1:]
    try:
        code = cli.main(prog_name="tuneassist", standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        error.show(sys.stderr)
        code = error.exit_code
    except TuneAssistError as error:
        if debug:
            raise
        _show(error)
        code = error.exit_code
    except BrokenPipeError:
        # The reader of our output closed it: nothing is left to say.
        sys.stderr.close()
        code = 0
    return code if isinstance(code, int) else 0


def _show(error: TuneAssistError) -> None:
    click.echo(f"tuneassist: {error.message}", err=True)
    if error.remedy:
        click.echo(error.remedy, err=True)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="tuneassist")
@click.option("--batch", is_flag=True, help="Tune without the app: progress on stderr, the result on stdout.")
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="SPEC",
    help="What to tune: a catalogue name (resnet18.c2), an operator (matmul:m=512,n=512,k=512), a "
    "TVMScript function (kernels.py:func; loading it runs the file), or a whole model (model:resnet18, "
    "net.pt2, net.onnx, mod.relax). May be given several times.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=N,N,...",
    help="Shape of a model's input, such as input=1,3,224,224. May be given for several inputs.",
)
@click.option("--tasks", metavar="LIST", help="Tasks of models to tune, such as 'conv2d*,12'. [default: all]")
@click.option(
    "--against",
    metavar="LIST",
    help="What a tuned model is compared with, of untuned, pytorch, torch_compile, onnxruntime. "
    "[default: all]",
)
@click.option("--retune", is_flag=True, help="Tune tasks of models further that the database knows.")
@click.option(
    "--target",
    metavar="SPEC",
    help="What to tune for: native, a TVM tag, a JSON object, cuda, or "
    "rpc:KEY@HOST:PORT/TARGET. [default: native]",
)
@click.option(
    "--trials", type=click.IntRange(min=1, max=10**9), help="Trials over all workloads. [default: 256]"
)
@click.option("--time-budget", metavar="TIME", help="Stop the search after this long, such as 90s, 10m, 2h.")
@click.option(
    "--patience",
    type=click.IntRange(min=1, max=10**9),
    metavar="N",
    help="Stop a workload after N trials without a better one.",
)
@click.option(
    "--cost-model", metavar="MODEL",
    help=f"{', '.join(COST_MODELS)}, or the path of a checkpoint. [default: gnn]",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**31 - 1), help="Decides every random choice. [default: 0]"
)
@click.option(
    "--cores", metavar="LIST", help="CPUs to compile and measure on, such as 0,2-5. [default: all allowed]"
)
@click.option(
    "--repeat",
    type=click.IntRange(min=3, max=1000),
    help="Repeats of a measurement; the median counts. [default: 3]",
)
@click.option("--flush-cache", is_flag=True, help="Evict the caches before every repeat.")
@click.option("--from-scratch", is_flag=True, help="Don't start from the pretrained cost model.")
@click.option("--no-history", is_flag=True, help="Don't start from what earlier runs measured.")
@click.option("--resume", type=int, metavar="RUN", help="Continue a run that ended or was interrupted.")
@click.option("--attach", type=int, metavar="RUN", help="Follow a run that another process works on.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Search under the cost model alone, measure nothing, and write the best candidates. The target "
    "need not be connected.",
)
@click.option(
    "--keep",
    type=click.IntRange(1, 1024),
    default=16,
    show_default=True,
    help="Candidates of each workload that a dry run keeps.",
)
@click.option(
    "--output",
    "-o",
    metavar="PATH",
    default="candidates",
    show_default=True,
    help="The folder that a dry run writes.",
)
@click.option("--quiet", is_flag=True, help="Print no progress.")
@click.option("--debug", is_flag=True, help="Show tracebacks, and where the engine's log is.")
@db_option
@json_option
@click.pass_context
def cli(ctx: click.Context, /, **options: Any) -> int | None:
    """Tune tensor programs with TVM MetaSchedule, guided by a graph convolutional cost model.

    Without arguments the terminal app opens. With --batch a run is done here and now.
    """
    if ctx.invoked_subcommand is not None:
        if options["batch"]:
            raise UsageError(
                f"--batch does not go with the subcommand {ctx.invoked_subcommand!r}.",
                remedy="Leave one of them out; `tuneassist --help` shows both.",
            )
        return None
    if options["batch"]:
        return _batch(options)
    _refuse_batch_options(ctx)
    return _app(options)


def _batch(options: dict[str, Any]) -> int:
    if options["dry_run"]:
        from tuneassist.commands._dry_run import run_dry

        return run_dry(options)
    from tuneassist.commands._batch import BatchError, run_batch

    try:
        return run_batch(options)
    except BatchError as failed:
        # Whatever happens after the arguments were understood, --json prints one object.
        if options["as_json"]:
            print_json(failed.as_result())
        raise failed.error from failed


def _refuse_batch_options(ctx: click.Context) -> None:
    for name in ("workloads", "resume", "attach", "as_json", "trials", "time_budget", "dry_run"):
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            flag = {"workloads": "--workload", "as_json": "--json"}.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{flag} needs --batch.", remedy="Add --batch, or leave it out to open the app.")


def _app(options: dict[str, Any]) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The app needs a terminal, and this is none.",
            remedy="Tune without it: tuneassist --batch --workload resnet18.c2",
        )
    from tuneassist.ui.app import run

    return run(Path(database_path(options["db"])))
