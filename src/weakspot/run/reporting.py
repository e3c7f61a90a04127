"""Writing the report of a run, and files that a command leaves in a folder."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.data.images import jpeg_at
from weakspot.discover.words import WordFrequenciesDiscoverer
from weakspot.report.document import (
    DataFacts,
    ReportDocument,
    build_document,
    render_html,
    render_json,
    render_markdown,
    render_model_card,
)
from weakspot.report.findings import (
    MEGABYTE,
    MakeThumbnail,
    SliceImages,
    choose_images,
    class_finding_images,
    fit_images,
)
from weakspot.report.tree import render_csv, tree_rows
from weakspot.run.halves import Halves, evaluated_splits, split_in_halves
from weakspot.run.settings import Settings
from weakspot.store.atomic import write_bytes
from weakspot.store.project import ProjectStore
from weakspot.words.caption_rule import WordFrequency, frequency_table


def written(folder: Path, contents: Mapping[str, bytes | Image.Image]) -> tuple[Path, ...]:
    """Write files by name into a folder that is made if need be, and return where they are, in order.

    Args:
        folder: of the user's choice.
        contents: bytes, or images, which are written as PNG.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content if isinstance(content, bytes) else _encode(content))
    except OSError as error:
        raise ConfigError(
            f"The files cannot be written: {error.strerror}.", where=str(folder)
        ) from error
    return tuple(folder / name for name in contents)


def _encode(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()


REPORT, CARD, TABLE = "report.html", "model-card.md", "slices.csv"
CAPTION_WORDS = "caption_words.csv"
SAFETY_BYTES = 20_000
HEAD_BYTES = 2_000
TITLE = b"<title>weakspot report "
MAX_REMEMBERED = 4096


def write_report(
    record: RunRecord,
    samples: SampleSet,
    settings: Settings,
    criterion: FailureCriterion,
    store: ProjectStore,
    *,
    halves: Halves | None = None,
    asked: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Write HTML, Markdown and JSON into the run's folder, and model card and slices beside them; the HTML file comes first.

    The page of the newest run lies in the project folder, too, where a person finds it.

    Args:
        record: the run.
        samples: of the project.
        settings: of the project.
        criterion: what counts as a failure.
        store: the project folder.
        halves: those of the run, if they are known already.
        asked: in words, what the samples were asked so far and what is left to spend.

    Returns:
        Where HTML, Markdown and JSON are; `model-card.md` and all confirmed slices, `slices.csv`, are in the same folder, and with
        captions `caption_words.csv` says how often failures and other samples say a word.
    """
    pairs = halves or split_in_halves(samples, settings, criterion)
    images = _images(record, pairs, settings, criterion)
    images |= class_finding_images(
        record.class_findings, samples, criterion, n_images=settings.report.n_images
    )
    order = settings.report.order
    facts = data_facts(samples, settings, store)
    document = replace(
        build_document(record, images, facts, asked=asked, order=order),
        caption_words=_caption_words(pairs, criterion),
    )
    contents = {
        REPORT: _fitting_html(document, images, _thumbnail_maker(images, samples), settings),
        "report.md": render_markdown(document),
        "report.json": render_json(document),
        CARD: render_model_card(document),
        TABLE: render_csv(tree_rows(record, order)),
    }
    if document.caption_words:
        contents[CAPTION_WORDS] = frequency_table(document.caption_words)
    with store.writing():
        _write_newest(store, record.run_id, contents[REPORT].encode())
        paths = [
            store.runs.save_artefact(record.run_id, name, text.encode())
            for name, text in contents.items()
        ]
    return tuple(path for path in paths if path.name not in (CARD, TABLE, CAPTION_WORDS))


def _write_newest(store: ProjectStore, run_id: str, page: bytes) -> None:
    """Put the page of the newest run into the project folder, unless the user has a file of that name there."""
    place = store.root / REPORT
    is_newest = run_id == max(store.runs.run_ids(), default=run_id)
    if is_newest and (not place.exists() or TITLE in _head_of(place)):
        write_bytes(place, page)


def place_of_report(store: ProjectStore, run_id: str) -> Path:
    """Return where a person finds the page of a run: in the project folder if it is there, else in the run's folder."""
    place = store.root / REPORT
    is_there = place.is_file() and TITLE + run_id.encode() in _head_of(place)
    return place if is_there else store.runs.run_folder(run_id) / REPORT


def _head_of(page: Path) -> bytes:
    with page.open("rb") as stream:
        return stream.read(HEAD_BYTES)


def _caption_words(pairs: Halves, criterion: FailureCriterion) -> tuple[WordFrequency, ...]:
    """Return how often failures and other samples of the discovery half say a word; the other half is not looked at."""
    discovery = pairs[0][0]
    return tuple(
        one
        for problem in class_problems(discovery.dataset, discovery.rows, criterion)
        if problem.n_failed and problem.n_right
        for one in WordFrequenciesDiscoverer(max_slices=10).frequencies(discovery, problem)
    )


def data_facts(samples: SampleSet, settings: Settings, store: ProjectStore) -> DataFacts:
    """Return what a model card says of the data."""
    dataset, tables = samples.dataset, store.current_tables()
    counts = {split.value: len(dataset.rows_of(split)) for split in Split}
    return DataFacts(
        name=store.root.resolve().name,
        n_by_split={name: number for name, number in counts.items() if number},
        n_classes=dataset.n_classes,
        class_names=tuple(dataset.class_names),
        n_unlabelled=int(np.count_nonzero(~dataset.is_labelled)),
        n_quarantined=tables.quarantine().num_rows if tables is not None else 0,
        task=dataset.task.value,
        evaluated_splits=tuple(split.value for split in evaluated_splits(settings, dataset)),
    )


def _images(
    record: RunRecord, pairs: Halves, settings: Settings, criterion: FailureCriterion
) -> dict[str, SliceImages]:
    confirmed_on = {discovery.digest(): confirmation for discovery, confirmation in pairs}
    return {
        found.slice_id: choose_images(
            found, confirmed_on[found.found_on.digest], criterion, n_images=settings.report.n_images
        )
        for found, evidence in record.published()
        if evidence.explained is None
    }


def _fitting_html(
    document: ReportDocument,
    images: dict[str, SliceImages],
    make: MakeThumbnail,
    settings: Settings,
) -> str:
    chosen = settings.report
    plain = replace(
        document, findings=tuple(replace(one, images=SliceImages()) for one in document.findings)
    )
    room = int(chosen.most_megabytes * MEGABYTE) - SAFETY_BYTES - len(render_html(plain).encode())
    fitted, thumbnails, note = fit_images(
        images,
        make,
        asked=(chosen.n_images, chosen.thumbnail_side),
        most_bytes=max(0, room),
        most_megabytes=chosen.most_megabytes,
    )
    shown = tuple(
        replace(one, images=fitted.get(one.slice_.slice_id, SliceImages()))
        for one in document.findings
    )
    fitting = replace(document, findings=shown, image_note=note, class_images=fitted)
    return render_html(fitting, thumbnails)


def _thumbnail_maker(images: dict[str, SliceImages], samples: SampleSet) -> MakeThumbnail:
    """Return what makes a thumbnail of a shown sample; the same one is made once."""
    wanted = {sample_id for each in images.values() for sample_id in each.sample_ids}
    dataset = samples.dataset
    places = zip(dataset.sample_ids(samples.rows), dataset.locations(samples.rows), strict=True)
    locations = {name: location for name, location in places if name in wanted}

    @lru_cache(maxsize=MAX_REMEMBERED)
    def make(sample_id: str, side: int) -> bytes | None:
        return jpeg_at(locations.get(sample_id), side)

    return make
