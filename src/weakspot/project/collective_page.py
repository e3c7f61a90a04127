"""A family of repaired classifiers as a page, and the files that go with it."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from weakspot.core.evidence import Share
from weakspot.data.charts import heat_map, interval_chart
from weakspot.models.files import head_bytes
from weakspot.project.collective import FamilyResult
from weakspot.repair.collective import CollectiveRepair, FamilyFigures, FamilyModel
from weakspot.report.document import paragraph, share_cell, small_page, table, text_cell
from weakspot.report.repairs import data_words, p_words
from weakspot.report.wording import CERTAIN, count, interval, p_value, percent
from weakspot.run.reporting import written
from weakspot.store.csv_tables import csv_text

PAGE, DATA, SAMPLES = "collective.html", "collective.json", "collective_set.csv"
COLUMNS = (
    ("before", "before"),
    ("own repair", "individual"),
    ("collective", "collective"),
    ("random control", "random"),
)
RESOLVED = (
    ("own repair", "resolved_individual"),
    ("collective", "resolved_collective"),
    ("random control", "resolved_random"),
    ("of what the own repair resolves, collective too", "shared"),
    ("random control too", "shared_random"),
)


def write_family(result: FamilyResult, folder: Path) -> tuple[Path, ...]:
    """Write the page, the record, the repair set and every model's repaired last layer into a folder; the page comes first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    contents: dict[str, bytes | Image.Image] = {
        PAGE: family_page(result.repair).encode(),
        DATA: (result.repair.model_dump_json(indent=2) + "\n").encode(),
        SAMPLES: _set_table(result).encode(),
    }
    contents |= {
        f"{name}_head.safetensors": head_bytes(head, result.class_names[name])
        for name, head in result.heads.items()
    }
    return written(folder, contents)


def _set_table(result: FamilyResult) -> str:
    weights = result.repair_set.weights.tolist()
    rows = [
        [sample_id, f"{weight:.9g}"]
        for sample_id, weight in zip(result.repair_set.sample_ids, weights, strict=True)
    ]
    return csv_text(["sample_id", "weight"], rows)


def headline(repair: CollectiveRepair) -> str:
    shared, random = repair.shared, repair.shared_random
    if not shared.total:
        return "The models' own repairs resolve no failure of the test samples, so there is nothing that one set could share."
    return (
        f"One repair set resolves {shared.count} of the {shared.total} failures that the models' own repairs resolve "
        f"({percent(shared.value)}, {interval(shared.interval)}); its random control resolves {random.count} of them "
        f"({percent(random.value)})."
    )


def set_sentence(repair: CollectiveRepair) -> str:
    whose = (
        "the failures of all models (type 1)"
        if repair.source is None
        else f"the failures of {repair.source} alone (type 2)"
    )
    return f"Made from {whose} by {repair.method}. {repair.note}"


def family_page(repair: CollectiveRepair) -> str:
    """Return the family as one HTML page without outside references."""
    names = [model.name for model in repair.models]
    rows = [
        (
            model.name,
            model.figures[0].shared.interval.low,
            model.figures[0].shared.value,
            model.figures[0].shared.interval.high,
        )
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
        f"<figure>{interval_chart(rows, title='Own repair resolves it: does the collective one too?')}</figure>"
        if rows
        else "",
        f"<h2>Shared failures before</h2><figure>{heat_map(names, repair.overlaps, title='Intersection over union')}</figure>",
        *[paragraph(f"{model.name}: {note}") for model in repair.models for note in model.notes],
        *[paragraph(note) for note in repair.notes],
    ]
    return small_page(f"{len(names)} classifiers, one repair set", parts)


def _test_table(repair: CollectiveRepair) -> str:
    titles = [title for title, _ in COLUMNS]
    titles += ["p, against before", "p, against the matched control", "relative accuracy"]
    rows = [
        (
            model.name,
            text_cell(
                count(model.n_slices, "slice"),
                f"{model.n_collective:,} of {repair.n_in_set:,} samples",
            ),
            *_test_cells(model.figures[0]),
        )
        for model in repair.models
    ]
    caption = "Relative accuracy: collective as a part of own repair. Still right: of the formerly right, with the collective one."
    return table(["model", "trained for", *titles, "still right"], rows, caption=caption)


def _test_cells(figures: FamilyFigures) -> Iterator[str]:
    for _, name in COLUMNS:
        yield share_cell(getattr(figures, name))
    for value in (figures.p_value, figures.p_against_random):
        yield text_cell(p_value(value), "" if value <= CERTAIN else "may be chance")
    relative = figures.relative_accuracy
    yield text_cell("–" if relative is None else f"{relative:.3f}")
    yield share_cell(figures.clean_collective)


def _resolved_table(repair: CollectiveRepair) -> str:
    rows = [
        (
            model.name,
            text_cell(data_words(figures.measured_on)),
            *(share_cell(getattr(figures, name)) for _, name in RESOLVED),
        )
        for model in repair.models
        for figures in model.figures
    ]
    return table(["model", "samples", *[title for title, _ in RESOLVED]], rows)


WIDTH = 100
NAME, COLUMN = 30, 14
ARMS = ("before", "own repair", "collective", "random control")


def collective_lines(repair: CollectiveRepair) -> Iterator[str]:
    yield from _wrap(headline(repair))
    yield from _wrap(set_sentence(repair))
    yield f"Measured on {repair.n_samples:,} test samples that all {len(repair.models)} models share."
    yield "  " + " " * NAME + "".join(arm.rjust(COLUMN) for arm in ARMS)
    for model in repair.models:
        yield from _model(model)
    yield "Shared failures before (intersection over union):"
    width = max(len(model.name) for model in repair.models)
    for model, line in zip(repair.models, repair.overlaps, strict=True):
        yield f"  {model.name:<{width}}  " + "  ".join(f"{value:.2f}" for value in line)
    for note in repair.notes:
        yield from _wrap(note)


def _model(model: FamilyModel) -> Iterator[str]:
    sizes = f"own set {model.n_individual:,} samples, collective {model.n_collective:,}"
    yield f"{model.name} ({count(model.n_slices, 'slice')}, {sizes})"
    test = model.figures[0]
    yield _row("accuracy", test.before, test.individual, test.collective, test.random)
    for figures in model.figures:
        resolved = (
            figures.resolved_individual,
            figures.resolved_collective,
            figures.resolved_random,
        )
        yield _row(f"resolved, {_short(figures)}", None, *resolved)
    yield _row("still right", None, test.clean_individual, test.clean_collective, None)
    yield from _wrap(_sentence(test), "    ")
    for note in model.notes:
        yield from _wrap(note, "    ")


def _sentence(test: FamilyFigures) -> str:
    if test.p_value > CERTAIN:
        said = f"The change of accuracy with the collective set may be chance ({p_words(test.p_value)})"
    else:
        verb = "rose" if test.collective.count > test.before.count else "fell"
        said = f"Accuracy with the collective set {verb} ({p_words(test.p_value)})"
    against = "not to be told from"
    if test.p_against_random <= CERTAIN:
        against = "better than" if test.collective.count > test.random.count else "worse than"
    shared = "the own repair resolves nothing"
    if test.shared.total:
        share = f"{percent(test.shared.value)}, {interval(test.shared.interval)}"
        shared = f"of {test.shared.total} failures that the own repair resolves it resolves {test.shared.count} ({share})"
    relative = (
        ""
        if test.relative_accuracy is None
        else f"; relative accuracy {test.relative_accuracy:.3f}"
    )
    return f"{said}, {against} its random control ({p_words(test.p_against_random)}); {shared}{relative}."


def _short(figures: FamilyFigures) -> str:
    return data_words(figures.measured_on).split(" (", maxsplit=1)[0]


def _row(title: str, *shares: Share | None) -> str:
    return f"  {title[:NAME]:<{NAME}}{''.join(_figure(share).rjust(COLUMN) for share in shares)}".rstrip()


def _figure(share: Share | None) -> str:
    if share is None or not share.total:
        return "–" if share is not None else ""
    return f"{percent(share.value)} of {share.total:,}"


def _wrap(text: str, indent: str = "") -> list[str]:
    joined = text.replace(" %", "\u00a0%")
    lines = textwrap.wrap(
        joined,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )
    return [line.replace("\u00a0%", " %") for line in lines]
