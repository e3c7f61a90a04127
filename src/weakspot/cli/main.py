"""The command `weakspot`: parse, call app, print."""

import sys

import typer

from weakspot import __version__
from weakspot.cli.adversarial_command import register as register_adversarial
from weakspot.cli.asking import register as register_asking
from weakspot.cli.check_command import register as register_check
from weakspot.cli.comparing import register as register_comparing
from weakspot.cli.counterfactual_command import register as register_counterfactual
from weakspot.cli.decode_command import register as register_decode
from weakspot.cli.exchange_command import register as register_exchange
from weakspot.cli.export_command import register as register_export
from weakspot.cli.generate_command import register as register_generate
from weakspot.cli.making import register as register_making
from weakspot.cli.nearest_command import register as register_nearest
from weakspot.cli.refine_command import register as register_refine
from weakspot.cli.repair_bench_command import register as register_repair_bench
from weakspot.cli.repair_command import register as register_repair
from weakspot.cli.repairing import register as register_repairing
from weakspot.cli.running import register as register_running
from weakspot.cli.search_command import register as register_search
from weakspot.cli.serve_command import register as register_serve
from weakspot.cli.setting_up import register as register_setting_up
from weakspot.cli.watch_command import register as register_watch

app = typer.Typer(
    name="weakspot",
    help="Finds, names, proves and repairs the systematic failures of image classifiers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
register_setting_up(app)
register_running(app)
register_repair(app)
register_making(app)
register_comparing(app)
register_repairing(app)
register_repair_bench(app)
register_asking(app)
register_search(app)
register_counterfactual(app)
register_generate(app)
register_decode(app)
register_refine(app)
register_adversarial(app)
register_serve(app)
register_export(app)
register_exchange(app)
register_nearest(app)
register_check(app)
register_watch(app)


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"weakspot {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version and stop."),
) -> None:
    """Finds, names, proves and repairs the systematic failures of image classifiers."""


def main() -> None:
    """Run the command line; the exit code is 0, 1 (finding above the threshold), 2 (bad input) or 130 (interrupted)."""
    from weakspot.cli.refusals import out_of_memory, refusal
    from weakspot.cli.terminal import report_error
    from weakspot.core.errors import WeakspotError

    try:
        app(standalone_mode=True)
    except WeakspotError as error:
        report_error(error)
        raise SystemExit(error.exit_code) from None
    except OSError as error:
        report_error(refusal(error))
        raise SystemExit(WeakspotError.exit_code) from None
    except MemoryError:
        report_error(out_of_memory())
        raise SystemExit(WeakspotError.exit_code) from None
