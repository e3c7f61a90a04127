"""The stages of the loop as functions of a run record, samples and settings."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from weakspot.app.config import BoxSettings, DataSettings, Settings
from weakspot.app.ingesting import IngestSummary, ingest
from weakspot.app.records import classifier_facts
from weakspot.app.wiring import build_describer, build_discoverers, build_engine, build_verifier
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError, StoreError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.roles import Discoverer, Discovery
from weakspot.core.run import ClassNote, MethodRecord, Progress, RunRecord, no_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.ingest.assembly_settings import AssemblySettings
from weakspot.ingest.boxes import BoxOptions
from weakspot.ingest.open_source import open_source
from weakspot.ingest.source import SampleSource
from weakspot.store.project import ProjectStore
from weakspot.verify.cause import CauseFinder
from weakspot.verify.elsewhere import with_elsewhere
from weakspot.verify.explained import with_explanations
from weakspot.verify.halves import split_halves
from weakspot.verify.labels import LabelChecker
from weakspot.verify.screening import screened
from weakspot.verify.turns import merged_turns

DISCOVERY, CONFIRMATION = "discovery half", "confirmation half"


def open_data(settings: DataSettings, folder: Path, boxes: BoxSettings | None = None) -> SampleSource:
    """Return the source of samples that is configured; relative paths start at the project folder."""
    if not settings.source:
        raise ConfigError("It is not said where the samples are.", where="[data] source", fix="Set it in weakspot.toml.")
    # Whole paths: workers in other processes may have another working directory, and so may the next call.
    local = Path(os.path.abspath(folder / settings.source))
    place = str(local) if local.exists() or _is_pattern_there(folder, settings.source) else settings.source
    return open_source(
        place,
        kind=settings.kind,
        columns=settings.columns,
        default_split=settings.default_split or None,
        class_names=settings.class_names or None,
        boxes=_box_options(settings, boxes or BoxSettings(), folder),
    )


def _box_options(settings: DataSettings, boxes: BoxSettings, folder: Path) -> BoxOptions:
    def place(given: str) -> str:
        return str(folder / given) if given and (folder / given).exists() else given

    return BoxOptions(
        margin=boxes.margin,
        least_side=boxes.least_side,
        pictures=place(boxes.pictures),
        detections=place(boxes.detections),
        overlap=boxes.overlap,
        validation_fraction=settings.validation_fraction,
        test_fraction=settings.test_fraction,
    )


def _is_pattern_there(folder: Path, source: str) -> bool:
    """Return whether a relative pattern such as `shards/*.tar` or `shards/{00..03}.tar` starts inside the folder."""
    fixed = Path(source.split("*", maxsplit=1)[0].split("{", maxsplit=1)[0])
    return "://" not in source and not fixed.is_absolute() and fixed.parent != Path() and (folder / fixed.parent).is_dir()


def ingest_samples(store: ProjectStore, source: SampleSource, settings: Settings, progress: Progress) -> IngestSummary:
    """Bring the samples of a source into the project."""
    data = settings.data
    assembly = AssemblySettings(
        class_names=data.class_names or getattr(source, "known_classes", ()),
        task=None if data.task == "auto" else Task(data.task),
        default_split=Split(data.default_split) if data.default_split else None,
        validation_fraction=data.validation_fraction,
        test_fraction=data.test_fraction,
        seed=settings.seed,
        unlabelled_is_negative=data.unlabelled_is_negative,
    )
    return ingest(store, source, engine=build_engine(settings), progress=progress, settings=assembly)


def halves(samples: SampleSet, settings: Settings, criterion: FailureCriterion) -> tuple[tuple[SampleSet, SampleSet], ...]:
    """Return (discovery half, confirmation half), once or, for cross-fitting, also with their parts swapped."""
    names = settings.verify.splits
    rows = samples.dataset.rows_of(*[Split(name) for name in names])
    rows = rows[samples.dataset.is_labelled[rows]]
    if not len(rows):
        counts = {split.value: len(samples.dataset.rows_of(split)) for split in Split}
        raise NotEnoughDataError(
            f"There are no labelled samples in {' or '.join(names)} to look for failures in.",
            given=counts,
            fix="Set [verify] splits, or [data] validation_fraction, in weakspot.toml.",
        )
    split = split_halves(samples.dataset, rows, criterion, seed=settings.seed)
    title = " and ".join(names)
    pairs = [(split.discovery, split.confirmation)]
    if settings.verify.scheme == "cross-fit":
        pairs.append((split.confirmation, split.discovery))
    return tuple(
        (samples.only(found_on, name=f"{title}, {DISCOVERY}{turn}"), samples.only(kept, name=f"{title}, {CONFIRMATION}{turn}"))
        for (found_on, kept), turn in zip(pairs, ("", " (halves swapped)"), strict=False)
    )


def discover_slices(
    record: RunRecord,
    samples: SampleSet,
    settings: Settings,
    criterion: FailureCriterion,
    assistants: Assistants,
    *,
    progress: Progress = no_progress,
) -> RunRecord:
    """Look for slices on the discovery half with every configured method, and screen them there; progress counts methods."""
    discoverers = build_discoverers(settings)
    pairs = halves(samples, settings, criterion)
    n_runs = len(pairs) * len(discoverers)
    slices: list[FailureSlice] = []
    notes: list[ClassNote] = []
    methods: list[MethodRecord] = []
    for discovery, _ in pairs:
        found: list[_MethodResult] = []
        for name, part in discoverers.items():
            progress(len(methods) + len(found), n_runs)
            found.append(_discovered(name, part, discovery, criterion, settings, assistants, alone=len(discoverers) == 1))
        screen = screened(
            [one for result in found for one in result.discovery.slices],
            discovery,
            criterion,
            largest_p=settings.discover.screen_p,
            most=settings.discover.max_tested,
        )
        slices += screen.kept
        notes += [note for result in found for note in result.discovery.notes]
        methods += [result.recorded(screen.kept) for result in found]
    progress(n_runs, n_runs)
    every = samples.dataset.rows_of(*[Split(name) for name in settings.verify.splits])
    facts = classifier_facts(class_problems(samples.dataset, every, criterion))
    update = {"slices": tuple(slices), "notes": tuple(dict.fromkeys(notes)), "methods": tuple(methods), "classifier": facts}
    return record.model_copy(update=update)


@dataclass(frozen=True, kw_only=True)
class _MethodResult:
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


def _discovered(  # noqa: PLR0913 - what a method needs, and whether others can stand in for it
    name: str,
    part: Discoverer,
    samples: SampleSet,
    criterion: FailureCriterion,
    settings: Settings,
    assistants: Assistants,
    *,
    alone: bool,
) -> _MethodResult:
    """Run one method; where several are asked for, one that cannot work here becomes a note."""
    begun = time.perf_counter()
    try:
        found = part.discover(samples, criterion, seed=settings.seed, assistants=assistants)
    except (DataError, ModelError, NotEnoughDataError) as error:
        if alone:
            raise
        return _MethodResult(method=name, discovery=Discovery(slices=()), seconds=time.perf_counter() - begun, note=str(error))
    if part.is_baseline:
        found = replace(found, slices=())
    return _MethodResult(method=name, discovery=found, seconds=time.perf_counter() - begun)


def describe_slices(
    record: RunRecord, samples: SampleSet, settings: Settings, criterion: FailureCriterion, assistants: Assistants
) -> RunRecord:
    """Give the slices names, as far as the assistants allow."""
    describer = build_describer(settings)
    named: dict[str, FailureSlice] = {}
    for discovery, _ in halves(samples, settings, criterion):
        own = _found_on(record.slices, discovery)
        named |= {found.slice_id: found for found in describer.describe(own, discovery, criterion, assistants)}
    return record.model_copy(update={"slices": tuple(named.get(found.slice_id, found) for found in record.slices)})


def _found_on(slices: Sequence[FailureSlice], discovery: SampleSet) -> tuple[FailureSlice, ...]:
    digest = discovery.digest()
    return tuple(found for found in slices if found.found_on.digest == digest)


def verify_slices(record: RunRecord, samples: SampleSet, settings: Settings, criterion: FailureCriterion) -> RunRecord:
    """Measure the slices of a run on the confirmation half, and look into causes."""
    pairs = halves(samples, settings, criterion)
    own = [_found_on(record.slices, discovery) for discovery, _ in pairs]
    if sum(map(len, own)) < len(record.slices):
        raise StoreError(
            "The slices of this run were found on other samples than the project holds now.",
            where=record.run_id,
            fix="Run `weakspot discover` again.",
        )
    verifier = build_verifier(settings, n_turns=len(pairs))
    evidence: dict[str, Evidence] = {}
    for slices, (discovery, confirmation) in zip(own, pairs, strict=True):
        measured = verifier.verify(slices, discovery=discovery, confirmation=confirmation, criterion=criterion)
        explained = _explained(slices, measured, confirmation, samples, settings, criterion)
        evidence |= {entry.slice_id: _over_turns(entry, len(pairs)) for entry in explained}
    ordered = tuple(evidence[found.slice_id] for found in record.slices)
    if len(pairs) > 1:
        ordered = merged_turns(record.slices, ordered, samples.only(used_rows(samples, settings)))
    return record.model_copy(update={"evidence": ordered})


def _explained(
    slices: Sequence[FailureSlice],
    measured: Sequence[Evidence],
    confirmation: SampleSet,
    samples: SampleSet,
    settings: Settings,
    criterion: FailureCriterion,
) -> tuple[Evidence, ...]:
    """Return evidence with cause, suspicion of wrong labels, and what the slice does on samples that took no part."""
    dataset = samples.dataset
    training = samples.only(dataset.rows_of(Split.TRAIN), name="training samples")
    explained = CauseFinder().explain(slices, measured, training=training, evaluation=confirmation, criterion=criterion)
    checked = LabelChecker().check(slices, explained, training=training, evaluation=confirmation, criterion=criterion)
    others = {
        name: samples.only(dataset.rows_of(split), name=name)
        for name, split in (("pool", Split.POOL), ("test split", Split.TEST))
        if split.value not in settings.verify.splits and len(dataset.rows_of(split))
    }
    seen = samples.only(used_rows(samples, settings))
    measured_again = with_elsewhere(slices, checked, others, criterion, seen=seen)
    return with_explanations(slices, measured_again, confirmation, criterion)


def _over_turns(entry: Evidence, n_turns: int) -> Evidence:
    """Return evidence whose q-value holds over all turns: each is allowed its part of the error rate."""
    return entry if n_turns == 1 else entry.model_copy(update={"q_value": min(1.0, entry.q_value * n_turns)})


def used_rows(samples: SampleSet, settings: Settings) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the rows on which slices were found or confirmed."""
    return samples.dataset.rows_of(*[Split(name) for name in settings.verify.splits])
