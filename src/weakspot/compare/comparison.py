"""The record of a comparison of classifiers, and its page."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from weakspot.compare.across import (
    SliceDifference,
    SliceOnModel,
    SlicePredictions,
    differences,
    measure_slices,
    measured_slices,
)
from weakspot.compare.asking import PROMISE, Ledgers, judged_slices, note_differences
from weakspot.core.arrays import BoolArray, DoubleArray
from weakspot.core.errors import DataError
from weakspot.core.record import Record
from weakspot.media.charts import heat_map, interval_chart
from weakspot.report.wording import p_value


def failure_iou(failed: Sequence[BoolArray]) -> DoubleArray:
    """Return for every two classifiers [m, m] the failures they share, as a part of the failures of either.

    Two classifiers without any failure share everything there is: 1.

    >>> failure_iou([np.array([True, True, False]), np.array([True, False, False])]).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    if not failed or len({len(one) for one in failed}) != 1:
        raise DataError(
            "Every classifier needs a prediction for the same samples.",
            given=[len(one) for one in failed],
        )
    matrix = np.stack(failed).astype(np.float64)
    shared = matrix @ matrix.T
    counts = matrix.sum(axis=1)
    either = counts[:, None] + counts[None, :] - shared
    return np.where(either > 0, shared / np.where(either > 0, either, 1.0), 1.0)


def families(
    names: Sequence[str], overlaps: DoubleArray, *, least: float = 0.5
) -> tuple[tuple[str, ...], ...]:
    """Group classifiers whose failures overlap: within a family the mean overlap is at least `least`.

    Average linkage on one minus the overlap; families and their members keep the order of names.
    """
    if len(names) == 1:
        return ((names[0],),)
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = 1.0 - (overlaps + overlaps.T) / 2
    np.fill_diagonal(distances, 0.0)
    groups = fcluster(
        linkage(squareform(distances, checks=False), method="average"),
        t=1.0 - least,
        criterion="distance",
    )
    return tuple(
        tuple(name for name, own in zip(names, groups, strict=True) if own == group)
        for group in dict.fromkeys(groups)
    )


MOST_SHOWN = 12
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.3rem .7rem;border-bottom:1px solid #ddd;text-align:left}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1b;--ink:#eee;--quiet:#aaa;--accent:#6ba6e8}td,th{border-color:#444}}"
)


class Comparison(Record):
    """Several classifiers on the same samples.

    Args:
        models: their names.
        n_samples: samples that all of them were measured on.
        failure_rates: by name.
        overlaps: share of common failures of every two, in the order of models.
        families: groups of models whose failures overlap.
        slices: every confirmed slice of every model, measured on every model.
        differences: how two models differ on a slice, largest first.
        notes: what could not be compared, and why.
    """

    models: tuple[str, ...]
    n_samples: int
    failure_rates: dict[str, float]
    overlaps: tuple[tuple[float, ...], ...]
    families: tuple[tuple[str, ...], ...]
    slices: tuple[SliceOnModel, ...] = ()
    differences: tuple[SliceDifference, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def shared(self) -> tuple[str, ...]:
        held = [
            {one.slice_id for one in self.slices if one.model == model and one.holds}
            for model in self.models
        ]
        common = set.intersection(*held) if held else set()
        return tuple(dict.fromkeys(one.slice_id for one in self.slices if one.slice_id in common))


def compare_failures(
    failed: Mapping[str, BoolArray],
    slices: Sequence[SlicePredictions],
    *,
    alpha: float = 0.05,
    notes: Sequence[str] = (),
    ledgers: Ledgers | None = None,
) -> Comparison:
    """Compare classifiers.

    Args:
        failed: by classifier, which of the shared samples failed.
        slices: confirmed slices of every classifier on all of them.
        alpha: error rate of this comparison, without ledgers.
        notes: what could not be compared, and why.
        ledgers: what the samples were asked; verdicts are read off them.
    """
    names = tuple(failed)
    pairs = differences(slices)
    if ledgers is None:
        on_models = measure_slices(slices, alpha=alpha)
    else:
        on_models = judged_slices(measured_slices(slices), slices, ledgers)
        note_differences(pairs, slices, ledgers)
    promised = [PROMISE] if ledgers is not None and on_models else []
    overlaps = failure_iou(list(failed.values()))
    return Comparison(
        models=names,
        n_samples=len(next(iter(failed.values()))),
        failure_rates={
            name: float(one.mean()) if len(one) else 0.0 for name, one in failed.items()
        },
        overlaps=tuple(tuple(float(value) for value in line) for line in overlaps),
        families=families(names, overlaps),
        slices=on_models,
        differences=pairs,
        notes=(*notes, *promised),
    )


def comparison_page(comparison: Comparison) -> str:
    """Return the comparison as one HTML page without outside references."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        f"<title>weakspot: comparison of classifiers</title><style>{STYLE}</style>",
        f"<h1>{len(comparison.models)} classifiers on {comparison.n_samples} samples</h1>",
        heat_map(
            comparison.models,
            comparison.overlaps,
            title="Shared failures (intersection over union)",
        ),
        "<h2>Families</h2><ul>",
        *[f"<li>{escape(', '.join(family))}</li>" for family in comparison.families],
        "</ul><h2>Slices on every classifier</h2>",
        *(_slice_charts(comparison) or ["<p>None of the classifiers has a confirmed slice.</p>"]),
        "<h2>Where two classifiers differ most</h2>",
        _difference_table(comparison),
        *[f"<p>{escape(note)}</p>" for note in comparison.notes],
    ]
    return "\n".join(parts)


def _slice_charts(comparison: Comparison) -> list[str]:
    charts = []
    for slice_id in list(dict.fromkeys(one.slice_id for one in comparison.slices))[:MOST_SHOWN]:
        entries = [one for one in comparison.slices if one.slice_id == slice_id]
        rows = [
            (
                f"{one.model}{' (holds)' if one.holds else ''}",
                one.interval_inside.low,
                one.rate_inside,
                one.interval_inside.high,
            )
            for one in entries
        ]
        title = f"{entries[0].title}: failure rate of members, found on {entries[0].found_on}, {entries[0].n_inside} samples"
        charts.append(f"<figure>{interval_chart(rows, title=title)}</figure>")
    return charts


def _difference_table(comparison: Comparison) -> str:
    if not comparison.differences:
        return "<p>There is no slice on which two classifiers could be compared.</p>"
    head = "<tr><th>slice</th><th>first</th><th>second</th><th>samples</th><th>difference</th><th>interval</th><th>q</th></tr>"
    lines = [
        f"<tr><td>{escape(one.title)}</td><td>{escape(one.first)}</td><td>{escape(one.second)}</td><td>{one.n_samples}</td>"
        f"<td>{100 * one.difference:+.0f} points</td><td>{100 * one.interval.low:+.0f} to {100 * one.interval.high:+.0f}</td>"
        f"<td>{p_value(one.q_value)}</td></tr>"
        for one in comparison.differences[:MOST_SHOWN]
    ]
    return f"<table>{head}{''.join(lines)}</table>"
