"""An adversarial set as a page: its pictures, how often captions fail beside the baseline, transfer, and distances."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image

from weakspot.app.adversarial.export import write_record
from weakspot.app.adversarial.making import MadeSet
from weakspot.app.adversarial.records import AdversarialSet, ClassYield
from weakspot.app.written_files import written
from weakspot.compare.distances import SetDistance
from weakspot.compare.transfer import SetOnModel, TransferMatrix
from weakspot.core.evidence import Share
from weakspot.media.label_bars import LabelPanel, label_bars
from weakspot.media.picture_grid import labelled_grid
from weakspot.media.rate_map import rate_map
from weakspot.report.small_page import figure, paragraph, share_cell, small_page, table, text_cell
from weakspot.report.wording import count, percent

PAGE, SHEET = "adversarial.html", "adversarial.png"
MOST_ROWS, MOST_COLUMNS, CELL_SIDE = 8, 8, 112
MOST_CLASSES = 4
MOST_CAPTIONS = 60


def write_set_page(made: MadeSet, folder: Path) -> tuple[Path, ...]:
    """Write page, contact sheet and final record beside the pictures of a set; the page comes first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    sheet = contact_sheet(made)
    contents: dict[str, bytes | Image.Image] = {PAGE: adversarial_page(made.record, sheet).encode()}
    files = written(folder, contents if sheet is None else {**contents, SHEET: sheet})
    return (*files, write_record(folder, made.record))


def contact_sheet(made: MadeSet) -> Image.Image | None:
    """Return pictures of the set, one row a class, with what each is taken for; None for an empty set."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for brought in made.record.yields:
        own = rows.setdefault(brought.caption.class_name, [])
        own += zip(brought.kept[:2], brought.predicted[:2], strict=True)
    shown = {name: own[:MOST_COLUMNS] for name, own in sorted(rows.items()) if own}
    if not shown:
        return None
    width = max(map(len, shown.values()))
    names = list(shown)[:MOST_ROWS]
    empty: list[Image.Image | None] = [None]
    return labelled_grid(
        [[_picture(made, key) for key, _ in shown[name]] + empty * (width - len(shown[name])) for name in names],
        row_names=names,
        column_names=[""] * width,
        cell_side=CELL_SIDE,
        captions=[[f"taken for {said}" for _, said in shown[name]] + [""] * (width - len(shown[name])) for name in names],
    )


def _picture(made: MadeSet, key: str) -> Image.Image:
    with Image.open(made.drawings / made.drawn[key].file) as picture:
        return picture.convert("RGB")


def adversarial_page(record: AdversarialSet, sheet: Image.Image | None) -> str:
    """Return a set as one HTML page without outside references."""
    return small_page(
        f"{record.name}: {count(record.n_kept, 'picture')} that {record.made_for} gets wrong",
        [
            *[paragraph(line) for line in explanation(record)],
            "" if sheet is None else figure(sheet, alt="Pictures of the set by class, with what each is taken for"),
            "<h2>How often captions fail</h2>",
            _class_table(record.classes),
            *_label_figures(record.classes),
            *_transfer_parts(record.transfer),
            *_distance_parts(record),
            "<h2>Captions</h2>",
            _caption_table(record),
            *[paragraph(note) for note in record.notes],
        ],
    )


def explanation(record: AdversarialSet) -> Iterator[str]:
    """Yield what was done, in sentences."""
    drawn = [one for one in record.yields if not one.refusal]
    kept_from = sum(bool(one.kept) for one in record.yields)
    yield (
        f"{count(len(drawn), 'caption')} (of {record.caption_source}) were drawn by {record.inputs.get('generator', '')}, "
        f"{record.n_asked:,} pictures with the baselines. {count(record.n_kept, 'misclassified picture')} of "
        f"{count(kept_from, 'caption')} are kept, at most {record.settings.get('keep')} of each. Misclassified: {record.criterion}."
    )
    if record.rejected:
        yield "The gate rejected " + ", ".join(f"{number:,} ({gate})" for gate, number in record.rejected.items()) + "."
    yield (
        "These are generated pictures, and they are chosen because they fail: they show where to look and can be trained on, but "
        "nothing is proved by them about real pictures."
    )


def class_sentence(one: ClassYield) -> str:
    """Return how often captions of a class fail beside its baseline, in a sentence."""
    base = f"{percent(one.baseline.value)} of {one.baseline.total}" if one.baseline.total else "not drawn"
    first = f"{percent(one.captions.value)} of their first {one.captions.total} pictures fail"
    return f"{one.class_name}: {count(one.n_captions, 'caption')}, {first} (baseline prompt: {base}); {one.n_kept:,} kept."


def _class_table(classes: Sequence[ClassYield]) -> str:
    rows = [
        (
            one.class_name,
            share_cell(one.baseline),
            share_cell(one.captions),
            text_cell(ratio(one.captions, one.baseline)),
            text_cell(str(one.n_captions)),
            text_cell(str(one.n_kept)),
        )
        for one in classes
    ]
    titles = ["class", "baseline prompt fails", "captions fail", "times", "captions", "kept"]
    return table(
        titles, rows, caption="Captions by their first pictures, as many of each, so that stopping early does not flatter them."
    )


def ratio(share: Share, baseline: Share) -> str:
    """Return how many times as often one fails as the other, a dash where that cannot be said.

    >>> ratio(Share.of(30, 100), Share.of(10, 100)), ratio(Share.of(30, 100), Share.of(0, 100))
    ('3.0', '–')
    """
    return f"{share.value / baseline.value:.1f}" if baseline.value and share.total else "–"


def _label_figures(classes: Sequence[ClassYield]) -> Iterator[str]:
    chosen = sorted(classes, key=lambda one: (-one.n_kept, one.class_name))[:MOST_CLASSES]
    if any(one.n_kept for one in chosen):
        yield "<h2>What failures are taken for</h2>"
    for one in chosen:
        panels = [
            LabelPanel(
                title=f"{one.class_name}: baseline prompt", n_pictures=one.baseline.total, counts=_wrong(one, one.baseline_labels)
            ),
            LabelPanel(title=f"{one.class_name}: captions", n_pictures=one.n_judged, counts=_wrong(one, one.caption_labels)),
        ]
        if one.n_kept:
            yield f"<figure>{label_bars(panels)}</figure>"


def _wrong(one: ClassYield, labels: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in labels.items() if name != one.class_name}


def _transfer_parts(matrix: TransferMatrix | None) -> Iterator[str]:
    if matrix is None:
        return
    yield "<h2>Other classifiers</h2>"
    yield f"<figure>{rate_map(matrix.sets, matrix.models, matrix.rates(), title='Share that is wrong')}</figure>"
    top = rate_map(
        matrix.sets, matrix.models, matrix.rates(of_top=True), title="Share whose true label is not among the 3 likeliest"
    )
    yield f"<figure>{top}</figure>"
    rows = [
        (cell.set_name, text_cell(cell.model), share_cell(Share.of(cell.n_wrong, cell.n_pictures)), share_cell(_top(cell)))
        for cell in matrix.cells
    ]
    yield table(["set", "classifier", "wrong", "not among the 3 likeliest"], rows)
    yield from (paragraph(note) for note in matrix.notes)


def _top(cell: SetOnModel) -> Share:
    return Share.of(cell.n_wrong_of_top, cell.n_pictures)


def _distance_parts(record: AdversarialSet) -> Iterator[str]:
    if not record.distances:
        return
    yield f"<h2>Distance to the {record.reference}</h2>"
    for space in dict.fromkeys(row.space for row in record.distances):
        own = [row for row in record.distances if row.space == space]
        rows = [(row.name, *(text_cell(*cell) for cell in _distance_cells(row))) for row in own]
        titles = ["set", "pictures", "Frechet", f"Frechet on {own[0].n_equal}", "extrapolated", "kernel x 1000"]
        yield table(titles, rows, caption=f"In the space of {space}, to {own[0].n_reference:,} pictures; smaller is closer.")
    yield paragraph(
        "The Frechet distance grows when there are few pictures: compare sets by the column with equally many, or by the kernel "
        "distance, which has no such bias. In Inception space the two are called FID and KID."
    )


def _distance_cells(row: SetDistance) -> list[tuple[str, str]]:
    error = row.kernel.standard_error
    return [
        (f"{row.n_pictures:,}", ""),
        (f"{row.frechet:.4g}", ""),
        (f"{row.frechet_equal:.4g}", ""),
        ("–" if row.frechet_unbiased is None else f"{row.frechet_unbiased:.4g}", ""),
        (f"{1000 * row.kernel.value:.4g}", "" if error is None else f"± {1000 * error:.2g}"),
    ]


def distance_line(row: SetDistance) -> str:
    """Return one distance in words."""
    error = "" if row.kernel.standard_error is None else f" ± {1000 * row.kernel.standard_error:.2g}"
    return (
        f"{row.name}: Frechet {row.frechet:.4g} ({row.frechet_equal:.4g} on {row.n_equal} pictures), "
        f"kernel x 1000 {1000 * row.kernel.value:.4g}{error}"
    )


def _caption_table(record: AdversarialSet) -> str:
    ranked = sorted(record.yields, key=lambda one: (-one.first.value, -one.n_failed, one.caption.prompt))[:MOST_CAPTIONS]
    rows = [
        (
            one.caption.prompt,
            text_cell(one.caption.class_name),
            share_cell(one.first),
            text_cell(f"{one.n_failed:,}", f"of {one.n_judged:,}"),
            text_cell(str(len(one.kept))),
            text_cell(one.refusal or next(iter(one.wrong_labels), "–")),
        )
        for one in ranked
    ]
    more = "" if len(record.yields) <= MOST_CAPTIONS else f"The {MOST_CAPTIONS} that fail most; all are in the record."
    return table(["caption", "class", "first pictures fail", "all that failed", "kept", "mostly taken for"], rows, caption=more)
