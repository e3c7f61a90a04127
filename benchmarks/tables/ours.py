"""weakspot on a planted table, through what everybody can call."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import weakspot
from tables.worlds import PlantedTable
from weakspot.report.tree import first_rows, tree_rows

ALIKE = 0.8
AS_A_USER = {
    "data": {"columns": {"key": "key"}},
    "discover": {"methods": ["attributes"]},
    "verify": {"scheme": "cross-fit"},
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of one table.

    Args:
        confirmed: names of the planted slices that are confirmed (members overlap by four fifths or more).
        findings: those that the tree shows as findings, or as worse parts of findings.
        first_lines: those among the lines that are shown first.
        n_first: how many lines are shown first.
        n_confirmed: all confirmed slices.
        n_findings: of them, those that are not explained by others.
        n_false: confirmed slices whose true chance of failure does not exceed that of the rest of their class.
        seconds: from the table to the tree.
    """

    confirmed: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    first_lines: tuple[str, ...] = ()
    n_first: int = 0
    n_confirmed: int = 0
    n_findings: int = 0
    n_false: int = 0
    seconds: float = 0.0


def ask(table: PlantedTable, *, seed: int = 0) -> Answer:
    """Make a project of a table, run it and compare what is said with the truth."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "table.csv"
        table.write(path)
        begun = time.perf_counter()
        project = weakspot.Project.create(
            Path(name) / "project",
            data=str(path),
            settings=weakspot.Settings.model_validate({"seed": seed, **AS_A_USER}),
        )
        project.ingest()
        record = project.verify(project.discover().run_id)
        seconds = time.perf_counter() - begun
        return _judge(table, project, record, seconds)


def _judge(table, project, record, seconds) -> Answer:
    samples = project.samples(record)
    keys = samples.dataset.table.column("key").to_pylist()
    order = np.array([int(key[1:]) for key in keys])
    rows = {row.slice_.slice_id: row for row in tree_rows(record)}
    first = {row.slice_.slice_id for row in first_rows(tree_rows(record))}
    found: dict[str, set[str]] = {}
    n_false = 0
    for slice_, _ in record.published():
        inside = np.zeros(len(order), dtype=bool)
        inside[order[slice_.members(samples, samples.rows)]] = True
        own = table.labels == int(slice_.class_name.removeprefix("class"))
        inside &= own
        n_false += table.chance[inside].mean() <= table.chance[own & ~inside].mean() + 1e-9
        found[slice_.slice_id] = {
            name for name in table.planted if overlap(inside, table.members(name)) >= ALIKE
        }
    own_findings = {one for one, row in rows.items() if row.node.kind != "explained"}
    return Answer(
        confirmed=_names(found, set(found)),
        findings=_names(found, own_findings),
        first_lines=_names(found, first),
        n_first=len(first),
        n_confirmed=len(found),
        n_findings=len(own_findings),
        n_false=n_false,
        seconds=seconds,
    )


def _names(found: dict[str, set[str]], wanted: set[str]) -> tuple[str, ...]:
    return tuple(sorted({name for one, names in found.items() if one in wanted for name in names}))


def overlap(inside: np.ndarray, planted: np.ndarray) -> float:
    """Return common members over all members."""
    return float((inside & planted).sum() / max((inside | planted).sum(), 1))
