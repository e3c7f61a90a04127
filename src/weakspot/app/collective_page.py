"""A family of repaired classifiers as a page, and the files that go with it."""

import csv
import io
from collections.abc import Iterator
from html import escape
from pathlib import Path

from weakspot.app.collective import FamilyResult
from weakspot.app.handing_back import head_content
from weakspot.core.errors import ConfigError
from weakspot.media.charts import heat_map, interval_chart
from weakspot.repair.collective import CollectiveRepair, FamilyFigures
from weakspot.report.repair_wording import data_words
from weakspot.report.small_page import paragraph, share_cell, small_page
from weakspot.report.wording import CERTAIN, count, interval, p_value, percent

PAGE, DATA, SAMPLES = "collective.html", "collective.json", "collective_set.csv"
COLUMNS = (
    ("before", "before"),
    ("own repair", "individual"),
    ("collective", "collective"),
    ("random twin", "random"),
)
RESOLVED = (
    ("own repair", "resolved_individual"),
    ("collective", "resolved_collective"),
    ("random twin", "resolved_random"),
    ("of what the own repair resolves, collective too", "shared"),
    ("random twin too", "shared_random"),
)


def write_family(result: FamilyResult, folder: Path) -> tuple[Path, ...]:
    """Write the page, the record, the repair set and every model's repaired last layer into a folder; the page comes first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    contents: dict[str, bytes] = {
        PAGE: family_page(result.repair).encode(),
        DATA: (result.repair.model_dump_json(indent=2) + "\n").encode(),
        SAMPLES: _set_table(result).encode(),
    }
    contents |= {f"{name}_head.safetensors": head_content(head, result.class_names[name]) for name, head in result.heads.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise ConfigError(f"The collective repair cannot be written: {error.strerror}.", where=str(folder)) from error
    return tuple(folder / name for name in contents)


def _set_table(result: FamilyResult) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["sample_id", "weight"])
    weights = result.repair_set.weights.tolist()
    writer.writerows([sample_id, f"{weight:.9g}"] for sample_id, weight in zip(result.repair_set.sample_ids, weights, strict=True))
    return stream.getvalue()


def headline(repair: CollectiveRepair) -> str:
    """Return what one set does for the family, in a sentence."""
    shared, random = repair.shared, repair.shared_random
    if not shared.total:
        return "The models' own repairs resolve no failure of the test samples, so there is nothing that one set could share."
    return (
        f"One repair set resolves {shared.count} of the {shared.total} failures that the models' own repairs resolve "
        f"({percent(shared.value)}, {interval(shared.interval)}); its random twin resolves {random.count} of them "
        f"({percent(random.value)})."
    )


def set_sentence(repair: CollectiveRepair) -> str:
    """Return where the set comes from."""
    whose = "the failures of all models (type 1)" if repair.source is None else f"the failures of {repair.source} alone (type 2)"
    return f"Made from {whose} by {repair.method}. {repair.note}"


def family_page(repair: CollectiveRepair) -> str:
    """Return the family as one HTML page without outside references."""
    names = [model.name for model in repair.models]
    rows = [
        (model.name, model.figures[0].shared.interval.low, model.figures[0].shared.value, model.figures[0].shared.interval.high)
        for model in repair.models
        if model.figures[0].shared.total
    ]
    parts = [
        paragraph(headline(repair)),
        paragraph(set_sentence(repair)),
        f"<h2>Accuracy on {repair.n_samples:,} test samples that all share</h2>",
        _test_table(repair),
        "<h2>Failures resolved</h2>",
        _resolved_table(repair),
        f"<figure>{interval_chart(rows, title='Own repair resolves it: does the collective one too?')}</figure>" if rows else "",
        f"<h2>Shared failures before</h2><figure>{heat_map(names, repair.overlaps, title='Intersection over union')}</figure>",
        *[paragraph(f"{model.name}: {note}") for model in repair.models for note in model.notes],
        *[paragraph(note) for note in repair.notes],
    ]
    return small_page(f"{len(names)} classifiers, one repair set", parts)


def _test_table(repair: CollectiveRepair) -> str:
    titles = [title for title, _ in COLUMNS]
    head = _head(["model", *titles, "p, against before", "p, against the twin", "relative accuracy", "still right"])
    lines = [
        f"<tr><th scope='row'>{escape(model.name)}<br><small>{count(model.n_slices, 'slice')}, {model.n_collective:,} of "
        f"{repair.n_in_set:,} samples</small></th>{''.join(_test_cells(model.figures[0]))}</tr>"
        for model in repair.models
    ]
    caption = "Relative accuracy: collective as a part of own repair. Still right: of the formerly right, with the collective one."
    return (
        f"<div class='scroll' tabindex='0'><table><caption>{caption}</caption>{head}<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _test_cells(figures: FamilyFigures) -> Iterator[str]:
    for _, name in COLUMNS:
        yield share_cell(getattr(figures, name))
    for value in (figures.p_value, figures.p_against_random):
        yield f"<td>{p_value(value)}{'' if value <= CERTAIN else '<br><small>may be chance</small>'}</td>"
    yield f"<td>{'–' if figures.relative_accuracy is None else f'{figures.relative_accuracy:.3f}'}</td>"
    yield share_cell(figures.clean_collective)


def _resolved_table(repair: CollectiveRepair) -> str:
    head = _head(["model", "samples", *[title for title, _ in RESOLVED]])
    lines = [
        f"<tr><th scope='row'>{escape(model.name)}</th><td>{escape(data_words(figures.measured_on))}</td>"
        f"{''.join(share_cell(getattr(figures, name)) for _, name in RESOLVED)}</tr>"
        for model in repair.models
        for figures in model.figures
    ]
    return f"<div class='scroll' tabindex='0'><table>{head}<tbody>{''.join(lines)}</tbody></table></div>"


def _head(titles: list[str]) -> str:
    cells = "".join(f"<th scope='col'>{escape(title)}</th>" for title in titles)
    return f"<thead><tr>{cells}</tr></thead>"
