"""Stage 1: a source of samples to the tables of a project.

One pass, resumable, broken samples set aside, and what an earlier reading found out is taken over.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import JsonValue, TypeAdapter, ValidationError

from weakspot.core.dataset import SPLIT_ORDER, Dataset, ExaminedSample, RawSample, Task
from weakspot.core.errors import DataError, StoreError
from weakspot.core.record import Record
from weakspot.core.roles import Engine
from weakspot.core.run import Progress, no_progress
from weakspot.data.assemble import Assembly, assemble
from weakspot.data.examine import Examined, examined_table, kept_stamp
from weakspot.data.images import content_hash
from weakspot.data.locations import is_local, local_path, shown_location, split_range, stamp_of
from weakspot.data.remote import RemoteReading, reading_as, remote_reading
from weakspot.data.settings import DataSettings
from weakspot.data.source import SampleSource
from weakspot.data.table_source import PredictionsSource
from weakspot.run.model_map import (
    FlushClock,
    FlushPolicy,
    ModelCount,
    PassModels,
    ResultBuffer,
    examine_samples,
)
from weakspot.run.wiring import build_thread_engine
from weakspot.store import atomic
from weakspot.store.images import (
    KNOWN_COLUMNS,
    ImagePack,
    KnownImage,
    KnownImages,
    write_known,
)
from weakspot.store.project import ProjectStore
from weakspot.store.samples import SampleParts, SampleTables

AT_ONCE = 256
ASKING_THREADS = 16


@dataclass
class IncrementalExamination:
    """Takes over what is known, and counts.

    Args:
        known: what earlier readings found out; None if there were none.
        n_new: images that no earlier reading could use or knew.
        n_changed: images that were known but may have changed since.
        n_taken: images that were known and have not changed.
    """

    known: KnownImages | None = None
    n_new: int = 0
    n_changed: int = 0
    n_taken: int = 0

    @property
    def n_read(self) -> int:
        """Return how many images had to be looked at."""
        return self.n_new + self.n_changed

    def sort_out(self, samples: Iterable[RawSample]) -> Iterator[RawSample | ExaminedSample]:
        """Yield the samples in their order, those that need not be read as examined ones."""
        remaining = iter(samples)
        if self.known is None:
            yield from (self._taken(raw, []) for raw in remaining)
        while some := list(islice(remaining, AT_ONCE)):
            found = [self._known(raw) for raw in some]
            for raw, images in zip(self._stamp(some, found), found, strict=True):
                yield self._taken(raw, images)

    def _known(self, raw: RawSample) -> list[KnownImage]:
        if self.known is None or raw.reason:
            return []
        if raw.location is not None:
            return self.known.at(raw.location)
        return [] if raw.data is None else self.known.with_content(content_hash(raw.data))

    def _stamp(
        self, samples: list[RawSample], found: list[list[KnownImage]]
    ) -> Iterator[RawSample]:
        asked = [
            raw.location
            for raw, images in zip(samples, found, strict=True)
            if images and raw.stamp is None and raw.location is not None
        ]
        is_near = all(map(is_local, asked))
        stamps = iter(
            map(stamp_of, asked)
            if is_near
            else build_thread_engine(ASKING_THREADS).map(
                partial(_stamp_as, remote_reading()), asked
            )
        )
        for raw, images in zip(samples, found, strict=True):
            is_asked = images and raw.stamp is None and raw.location is not None
            yield replace(raw, stamp=next(stamps)) if is_asked else raw

    def _taken(self, raw: RawSample, images: list[KnownImage]) -> RawSample | ExaminedSample:
        is_held = raw.location is None and raw.data is not None
        stamp = kept_stamp(raw.stamp)
        same = next((one for one in images if is_held or one.has_stamp(stamp)), None)
        if same is None:
            has_image = raw.location is not None or raw.data is not None
            self.n_changed += bool(images)
            self.n_new += has_image and not images and not raw.reason
            return raw
        self.n_taken += 1
        return same.examined(raw)


def _stamp_as(reading: RemoteReading, location: str) -> str | None:
    with reading_as(reading):
        return stamp_of(location)


@contextmanager
def reuse_examined(earlier: list[SampleParts], folder: Path) -> Iterator[IncrementalExamination]:
    """Yield what takes over from earlier readings; what it keeps on disk, in a folder, is gone when the block ends."""
    n_rows = sum(parts.count_rows() for parts in earlier)
    if not n_rows:
        yield IncrementalExamination()
        return
    with tempfile.TemporaryDirectory(prefix=f"known{atomic.TEMPORARY_MARK}", dir=folder) as buckets:
        yield IncrementalExamination(
            known=write_known(_tables(earlier), Path(buckets), n_rows=n_rows)
        )


def _tables(earlier: list[SampleParts]) -> Iterator[pa.Table]:
    for parts in earlier:
        yield from parts.readable_tables(KNOWN_COLUMNS)


TABLES_VERSION = 2
FOLDER_KINDS = ("image-folder", "generated-images")
FLUSH_POLICY = FlushPolicy(n_samples=4096, seconds=5.0)
ROWS_FLUSH_POLICY = FlushPolicy(n_samples=65_536, seconds=5.0)
"""For samples without images, thousands of which take less time than one image."""


@dataclass(frozen=True, kw_only=True)
class IngestResult:
    """What came out of an ingest.

    Args:
        source: kind and place of the source.
        n_samples: usable samples.
        n_unlabelled: those among them without a true label.
        class_names: the classes.
        task: single-label or multi-label.
        per_split: samples by split.
        quarantined: samples set aside, by reason.
        n_duplicated: contents that occur more than once.
        n_across_splits: those among them that occur in different splits.
        n_conflicting: those among them that have different labels.
        has_predictions: whether predictions or probabilities came with the samples.
        was_cached: whether nothing had to be done.
        n_renamed: generated samples whose source names the split train or pool; they are in `synthetic`.
        n_read: images that were looked at now.
        n_changed: those among them that an earlier reading knew, and that may have changed since.
        n_reused: images that were not looked at, because an earlier reading did and they have not changed since.
        changed_meanwhile: whether the source changed while it was read; the next call sees to the rest.
        n_answered: images that went through each of the models in the same pass.
        n_groups: groups of several samples that belong together, as the source says.
        n_in_groups: samples in them.
        n_groups_across_splits: those among the groups that are in several splits.
        group_note: why a column of groups was not taken.
        burst_note: that images taken within seconds may belong together.
        source_note: what was found out when the source was opened.
        has_images: whether samples have images.
        n_dealt: labelled samples that named no split and were dealt out.
    """

    source: str
    n_samples: int
    n_unlabelled: int
    class_names: tuple[str, ...]
    task: Task
    per_split: Mapping[str, int]
    quarantined: Mapping[str, int]
    n_duplicated: int
    n_across_splits: int
    n_conflicting: int
    has_predictions: bool
    was_cached: bool = False
    n_renamed: int = 0
    n_read: int = 0
    n_changed: int = 0
    n_reused: int = 0
    changed_meanwhile: bool = False
    n_answered: tuple[int, ...] = ()
    n_groups: int = 0
    n_in_groups: int = 0
    n_groups_across_splits: int = 0
    group_note: str = ""
    burst_note: str = ""
    source_note: str = ""
    has_images: bool = True
    n_dealt: int = 0

    @property
    def n_quarantined(self) -> int:
        """Return the number of samples set aside."""
        return sum(self.quarantined.values())


def ingest(
    project: ProjectStore,
    source: SampleSource,
    *,
    engine: Engine,
    progress: Progress = no_progress,
    settings: DataSettings | None = None,
    seed: int = 0,
    flush: FlushPolicy | None = None,
    models: Callable[[], PassModels] | None = None,
) -> IngestResult:
    """Bring the samples of a source into a project; killed at any instant, the next call goes on where this one was.

    A source that has not changed since costs nothing. Of one that has, images are read that are new or may have changed; what an
    earlier reading found out about the others is taken over. It takes the place of the old one only when it is complete. Read the
    result with `project.dataset()`.

    Args:
        project: the samples go there.
        source: where they come from.
        engine: where images are read and decoded.
        progress: called with how many samples are done.
        settings: how the data set is put together.
        seed: of the split of samples that name none.
        flush: when finished work is written.
        models: gives those that see the images in the same pass, what they give is kept in their caches; asked only if
            there is something to read.

    Raises:
        ModelError: if a model cannot work, or the classifier does not know a label.
        DataError: listing everything that is wrong with labels, splits and predictions, or when a table changed while it was read.
        NotEnoughDataError: if not one sample can be used, with the reasons.
    """
    chosen = settings or DataSettings()
    # The place belongs to it: a folder that was moved has the same content, but its samples must point to the new place.
    fingerprint = f"{source.fingerprint()} {source.location}"
    tables = project.tables(_tables_key(fingerprint, chosen, seed))
    if tables.exists and project.current_tables() == tables:
        return summary_of(tables, was_cached=True)
    with project.writing(), closing(project.sample_parts(fingerprint)) as parts:
        parts.resume()
        if parts.is_mixed:
            parts.start_over()
        counts: dict[str, JsonValue] = {}
        done: tuple[ModelCount, ...] = ()
        if not parts.is_finished:
            with reuse_examined(project.earlier_parts(parts), parts.folder) as known:
                chosen_models = PassModels() if models is None else models()
                done = _read_source(
                    source,
                    parts,
                    engine,
                    progress=progress,
                    flush=flush,
                    known=known,
                    models=chosen_models,
                )
            counts = {
                "n_read": known.n_read,
                "n_changed": known.n_changed,
                "n_reused": known.n_taken,
            }
            if _finish(parts, source, fingerprint):
                counts["changed_meanwhile"] = True
                tables = project.tables(
                    _tables_key(f"{fingerprint} and changed while it was read", chosen, seed)
                )
        if not tables.exists:
            _write_tables(
                tables, assemble(parts.tables, chosen, where=source.location, seed=seed), source
            )
        project.adopt(tables, parts)
    return replace(summary_of(tables, counts), n_answered=tuple(count.n_new for count in done))


def _finish(parts: SampleParts, source: SampleSource, fingerprint: str) -> bool:
    """Note that everything was read, and return whether the source changed meanwhile.

    Of a folder every image stands for itself, so what was read of it is of use. Rows of a table do not.
    """
    is_mixed = f"{source.fingerprint()} {source.location}" != fingerprint
    parts.finish(is_mixed=is_mixed)
    if is_mixed and source.kind not in FOLDER_KINDS:
        raise DataError(
            "The source changed while it was read, so its rows do not belong together.",
            where=shown_location(source.location),
            fix="Run again when it is written: images that have not changed are not read again.",
        )
    return is_mixed


def _tables_key(fingerprint: str, settings: DataSettings, seed: int) -> str:
    facts = {
        "class_names": settings.class_names,
        "task": None if settings.task == "auto" else settings.task,
        "default_split": settings.split,
        "validation_fraction": settings.validation_fraction,
        "test_fraction": settings.test_fraction,
        "seed": seed,
        "unlabelled_is_negative": settings.unlabelled_is_negative,
        "group": settings.group,
    }
    content = json.dumps([TABLES_VERSION, fingerprint, facts], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _read_source(
    source: SampleSource,
    parts: SampleParts,
    engine: Engine,
    *,
    progress: Progress,
    flush: FlushPolicy | None,
    known: IncrementalExamination,
    models: PassModels,
) -> tuple[ModelCount, ...]:
    if isinstance(source, PredictionsSource) and not models.models:
        _read_examined(source, parts, progress=progress, flush=flush or ROWS_FLUSH_POLICY)
        return ()
    total = source.count()
    clock = FlushClock(flush or FLUSH_POLICY)
    waiting: list[Examined] = []
    buffer = ResultBuffer(models.models)
    position = parts.reached

    def write() -> None:
        # Answers first: what the parts hold is not read again, so nothing may be missing of it.
        buffer.write()
        parts.append(examined_table(waiting), stop=position)
        waiting.clear()
        clock.flushed()

    progress(position, total)
    samples = known.sort_out(source.read(position))
    for found in examine_samples(samples, models, buffer, engine=engine):
        waiting.append(_with_location(found, parts.images))
        position += 1
        if clock.is_due(len(waiting)):
            write()
        progress(position, total)
    if waiting:
        write()
    return buffer.counts


def _read_examined(
    source: PredictionsSource, parts: SampleParts, *, progress: Progress, flush: FlushPolicy
) -> None:
    total = source.count()
    clock = FlushClock(flush)
    waiting: list[pa.Table] = []
    position = parts.reached

    def write() -> None:
        parts.append(pa.concat_tables(waiting).combine_chunks(), stop=position)
        waiting.clear()
        clock.flushed()

    progress(position, total)
    for table in source.read_examined(position):
        if waiting and waiting[0].schema != table.schema:
            write()
        waiting.append(table)
        position += table.num_rows
        if clock.is_due(sum(one.num_rows for one in waiting)):
            write()
        progress(position, total)
    if waiting:
        write()


def _with_location(found: Examined, images: ImagePack) -> Examined:
    """Put an image that the source holds only in memory into the pack, so that it can be read again."""
    if (
        not isinstance(found, ExaminedSample)
        or found.raw.data is None
        or found.raw.location is not None
    ):
        return found
    return replace(found, raw=replace(found.raw, data=None, location=images.append(found.raw.data)))


def _write_tables(tables: SampleTables, assembly: Assembly, source: SampleSource) -> None:
    with tables.writing(n_samples=assembly.n_samples) as writer:
        for samples, predictions in assembly.batches():
            writer.add(samples, predictions)
        duplicates = assembly.duplicates()
        writer.add_side_tables(quarantine=assembly.quarantine(), duplicates=duplicates)
        writer.note(_facts(assembly, duplicates, source))


def _facts(assembly: Assembly, duplicates: pa.Table, source: SampleSource) -> dict[str, JsonValue]:
    counts = np.bincount(assembly.splits, minlength=len(SPLIT_ORDER))
    groups = (0, 0, 0) if assembly.groups is None else assembly.groups.counts(assembly.splits)
    names = ("n_groups", "n_in_groups", "n_groups_across_splits")
    return {
        **dict(zip(names, groups, strict=True)),
        "group_note": assembly.group_note,
        "burst_note": assembly.burst_note,
        "source_note": getattr(source, "note", ""),
        "has_images": source.kind != PredictionsSource.kind,
        "source": f"{source.kind}: {shown_location(source.location)}",
        "n_samples": assembly.n_samples,
        "n_unlabelled": int((~assembly.is_labelled).sum()),
        "class_names": list(assembly.seen.class_names),
        "task": assembly.seen.task.value,
        "per_split": {
            split.value: int(count) for split, count in zip(SPLIT_ORDER, counts, strict=True)
        },
        "quarantined": dict(assembly.seen.reasons.most_common()),
        "n_duplicated": duplicates.num_rows,
        "n_across_splits": int(pc.sum(duplicates.column("crosses_splits")).as_py() or 0),
        "n_conflicting": int(pc.sum(duplicates.column("has_conflicting_labels")).as_py() or 0),
        "n_renamed": int(assembly.is_renamed.sum()),
        "n_dealt": assembly.n_dealt,
        "has_predictions": bool(assembly.seen.n_predicted or assembly.seen.n_probable),
    }


def summary_of(
    tables: SampleTables, counts: Mapping[str, JsonValue] | None = None, *, was_cached: bool = False
) -> IngestResult:
    """Return what came out of the ingest that made these tables."""
    try:
        return TypeAdapter(IngestResult).validate_python(
            {**tables.facts, **(counts or {}), "was_cached": was_cached}
        )
    except ValidationError as error:
        raise StoreError(
            f"The notes about the samples are damaged: {error.error_count()} are wrong or missing.",
            where=str(tables.folder),
            fix="Delete this folder and run `weakspot ingest` again.",
        ) from error


LOOKED_AT = 60
FIX = (
    "Put the folder with the images back, or give its new place under [data] in weakspot.toml and run `weakspot ingest`; what was "
    "computed of images is kept."
)


class MissingImages(Record):
    """Images that are not where they were.

    Args:
        n_missing: how many of those that were looked at are gone.
        n_looked_at: how many were looked at, evenly over all.
        example: one place where an image is missing.
    """

    n_missing: int
    n_looked_at: int
    example: str

    @property
    def sentence(self) -> str:
        """Return what is wrong, without a place on this machine."""
        share = "None" if self.n_missing == self.n_looked_at else f"{self.n_missing}"
        verb = "cannot" if share != "None" else "can"
        return f"{share} of {self.n_looked_at} images that were looked at {verb} be found."

    @property
    def notice(self) -> str:
        """Return what is wrong, where, and what to do."""
        return f"{self.sentence} The first is {self.example}. {FIX}"


def find_missing_images(dataset: Dataset) -> MissingImages | None:
    """Look at some images on this machine, None if all are there."""
    if not dataset.has_images:
        return None
    rows = np.unique(
        np.linspace(0, len(dataset) - 1, min(LOOKED_AT, len(dataset))).astype(np.int64)
    )
    places = [split_range(place)[0] for place in dataset.locations(rows) if place is not None]
    local = [str(local_path(place)) for place in places if is_local(place)]
    missing = [path for path in local if not os.path.exists(path)]
    if not missing:
        return None
    return MissingImages(n_missing=len(missing), n_looked_at=len(local), example=missing[0])
