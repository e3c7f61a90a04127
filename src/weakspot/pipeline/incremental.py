"""Samples whose images an earlier reading looked at already: what it found out is taken over, and only the rest is read."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa

from weakspot.core.dataset import ExaminedSample, RawSample
from weakspot.ingest.examine import kept_stamp
from weakspot.media.images import content_hash
from weakspot.media.listing import stamp_of
from weakspot.media.locations import is_local
from weakspot.media.remote import RemoteReading, reading_as, remote_reading
from weakspot.pipeline.wiring import build_thread_engine
from weakspot.store import atomic
from weakspot.store.known_images import (
    KNOWN_COLUMNS,
    LATER_COLUMNS,
    KnownImage,
    KnownImages,
    write_known,
)
from weakspot.store.sample_parts import SampleParts

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
        return ExaminedSample(
            raw=raw,
            content_hash=same.content_hash,
            width=same.width,
            height=same.height,
            notes=same.notes,
            moment=same.moment,
        )


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
        yield from parts.readable_tables(KNOWN_COLUMNS, LATER_COLUMNS)
