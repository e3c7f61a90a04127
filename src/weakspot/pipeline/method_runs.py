"""One method at work: what it found, how long it took, and what the run remembers of it."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from weakspot.core.assistants import Assistants
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError
from weakspot.core.failures import FailureCriterion
from weakspot.core.roles import Discoverer, Discovery
from weakspot.core.run import MethodRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.pipeline.settings import Settings


@dataclass(frozen=True, kw_only=True)
class MethodRun:
    """What a method found on some samples.

    Args:
        method: its name.
        discovery: what it found.
        seconds: how long it took.
        note: why it could not work, or an empty text.
    """

    method: str
    discovery: Discovery
    seconds: float
    note: str = ""

    def recorded(self, kept: Sequence[FailureSlice]) -> MethodRecord:
        """Return what the run remembers of it."""
        own = {found.slice_id for found in self.discovery.slices}
        return MethodRecord(
            method=self.method,
            seconds=round(self.seconds, 3),
            n_considered=max(self.discovery.n_considered, len(own)),
            n_found=len(own),
            n_tested=sum(found.slice_id in own for found in kept),
            note=self.note,
        )


def run_method(  # noqa: PLR0913 - what a method needs, and whether others can stand in for it
    name: str,
    part: Discoverer,
    samples: SampleSet,
    criterion: FailureCriterion,
    settings: Settings,
    assistants: Assistants,
    *,
    alone: bool,
) -> MethodRun:
    """Run one method; where several are asked for, one that cannot work here becomes a note."""
    begun = time.perf_counter()
    try:
        found = part.discover(samples, criterion, seed=settings.seed, assistants=assistants)
    except (DataError, ModelError, NotEnoughDataError) as error:
        if alone:
            raise
        return MethodRun(
            method=name,
            discovery=Discovery(slices=()),
            seconds=time.perf_counter() - begun,
            note=str(error),
        )
    if part.is_baseline:
        found = replace(found, slices=())
    return MethodRun(method=name, discovery=found, seconds=time.perf_counter() - begun)


def word_methods(methods: Iterable[tuple[str, Discoverer]]) -> frozenset[str]:
    """Return the methods whose slices are words for what others find; a method that works alone has nothing to explain."""
    every = dict(methods)
    words = {name for name, part in every.items() if getattr(part, "is_explaining", False)}
    return frozenset(words if len(every) > 1 else ())
