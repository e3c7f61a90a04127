"""Writing the report of a run: pictures from the samples, facts from the record."""

import io
from collections.abc import Iterable
from pathlib import Path

from weakspot.app.config import Settings
from weakspot.app.loop import halves
from weakspot.core.errors import WeakspotError
from weakspot.core.failures import FailureCriterion
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.media.locations import read_location
from weakspot.media.pictures import decode_picture
from weakspot.report.document import build_document
from weakspot.report.pictures import SlicePictures, choose_pictures
from weakspot.report.render import render_html, render_json, render_markdown
from weakspot.store.project import ProjectStore

JPEG_QUALITY = 82


def write_report(
    record: RunRecord, samples: SampleSet, settings: Settings, criterion: FailureCriterion, store: ProjectStore
) -> tuple[Path, ...]:
    """Write HTML, Markdown and JSON into the run's folder; the HTML file comes first."""
    confirmed_on = {discovery.digest(): confirmation for discovery, confirmation in halves(samples, settings, criterion)}
    pictures = {
        found.slice_id: choose_pictures(
            found, confirmed_on[found.found_on.digest], criterion, n_pictures=settings.report.n_pictures
        )
        for found, _ in record.published()
    }
    document = build_document(record, pictures)
    thumbnails = _thumbnails(_shown_ids(pictures.values()), samples, settings.report.thumbnail_side)
    contents = {
        "report.html": render_html(document, thumbnails),
        "report.md": render_markdown(document),
        "report.json": render_json(document),
    }
    with store.writing():
        return tuple(store.runs.save_artefact(record.run_id, name, text.encode()) for name, text in contents.items())


def _shown_ids(pictures: Iterable[SlicePictures]) -> set[str]:
    return {sample_id for each in pictures for sample_id in each.sample_ids}


def _thumbnails(sample_ids: set[str], samples: SampleSet, side: int) -> dict[str, bytes]:
    dataset = samples.dataset
    places = zip(dataset.sample_ids(samples.rows), dataset.locations(samples.rows), strict=True)
    made = {name: _thumbnail(location, side) for name, location in places if name in sample_ids}
    return {name: data for name, data in made.items() if data is not None}


def _thumbnail(location: str | None, side: int) -> bytes | None:
    """Return a small JPEG, or None when the picture is gone: a report is written all the same."""
    if location is None:
        return None
    try:
        picture = decode_picture(read_location(location), picture_side=side).picture
    except WeakspotError:
        return None
    picture.thumbnail((side, side))
    stream = io.BytesIO()
    picture.save(stream, format="JPEG", quality=JPEG_QUALITY)
    return stream.getvalue()
