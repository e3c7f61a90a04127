"""Running an experiment unit by unit, and writing its page and its numbers."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from repair_results.figures import Figures
from repair_results.journal import UnitJournal
from weakspot.core.errors import ConfigError
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.run.stage_clock import library_versions

DIGITS = 6


class Experiment(Protocol):
    """Something that is measured on several units and shown on one page."""

    @property
    def name(self) -> str:
        """Name of the experiment and of its files."""

    @property
    def command(self) -> str:
        """The command that runs it."""

    def units(self) -> Sequence[str]:
        """Return the units, for example worlds."""

    def measure(self, unit: str, progress: StageProgress) -> tuple[Figures, ...]:
        """Return the figures of all arms on one unit."""

    def page(self, figures: Sequence[Figures]) -> str:
        """Return the results as Markdown."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """Results of an experiment.

    Args:
        page: as Markdown.
        record: all figures, with command, versions and time.
        files: where both were written, the page first.
    """

    page: str
    record: Mapping[str, JsonValue]
    files: tuple[Path, Path]


def run_experiment(
    experiment: Experiment, folder: Path, *, progress: StageProgress = no_stage_progress
) -> Written:
    """Measure every unit that no interrupted run has measured, and write `<name>.md` and `<name>.json` into a folder."""
    _make(folder)
    journal = UnitJournal(folder / f"{experiment.name}.jsonl", experiment.command)
    units, found, n_known = experiment.units(), list[Figures](), 0
    begun = time.perf_counter()
    for number, unit in enumerate(units):
        progress(experiment.name, number, len(units))
        known = journal.known(unit)
        figures = experiment.measure(unit, progress) if known is None else known
        if known is None:
            journal.add(unit, figures)
        n_known += known is not None
        found += figures
    progress(experiment.name, len(units), len(units))
    written = _write(
        experiment, folder, found, seconds=time.perf_counter() - begun, n_known=n_known
    )
    journal.finish()
    return written


def _make(folder: Path) -> None:
    """Make the folder first: nobody wants to learn after an hour that it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"The results cannot be written: {error.strerror}.", where=str(folder)
        ) from error


def _write(
    experiment: Experiment,
    folder: Path,
    figures: Sequence[Figures],
    *,
    seconds: float,
    n_known: int,
) -> Written:
    known = f", {n_known} units known from an interrupted run" if n_known else ""
    page = f"{experiment.page(figures).rstrip()}\n\nMade by `{experiment.command}` in {seconds:.0f} s{known}.\n"
    record: dict[str, JsonValue] = {
        "command": experiment.command,
        "seconds": round(seconds, 1),
        "versions": dict(library_versions()),
        "figures": [_rounded(one) for one in figures],
    }
    files = folder / f"{experiment.name}.md", folder / f"{experiment.name}.json"
    try:
        files[0].write_text(page, encoding="utf-8")
        files[1].write_text(_one_figure_a_line(record), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"The results cannot be written: {error.strerror}.", where=str(folder)
        ) from error
    return Written(page=page, record=record, files=files)


def _rounded(figures: Figures) -> dict[str, JsonValue]:
    values = {name: round(value, DIGITS) for name, value in figures.values.items()}
    return figures.model_copy(update={"values": values}).model_dump(mode="json")


def _one_figure_a_line(record: dict[str, JsonValue]) -> str:
    """Return a record as JSON that can be compared line by line and is no longer than it needs to be."""
    head = json.dumps(
        {name: value for name, value in record.items() if name != "figures"}, separators=(",", ":")
    )
    listed = record["figures"] if isinstance(record["figures"], list) else []
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in listed)
    return f'{head[:-1]},"figures":[\n{lines}\n]}}\n'
