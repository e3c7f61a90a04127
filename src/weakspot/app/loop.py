"""The stages of the loop as functions of a run record, samples and settings."""

from pathlib import Path

import numpy as np

from weakspot.app.config import DataSettings, Settings
from weakspot.app.ingesting import IngestSummary, ingest
from weakspot.app.records import classifier_facts
from weakspot.app.wiring import build_describer, build_discoverer, build_engine, build_verifier
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import ConfigError, NotEnoughDataError, StoreError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.roles import Embedder
from weakspot.core.run import Progress, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.embed.phrases import embed_phrases
from weakspot.ingest.assembly_settings import AssemblySettings
from weakspot.ingest.open_source import open_source
from weakspot.ingest.source import SampleSource
from weakspot.store.project import ProjectStore
from weakspot.verify.cause import CauseFinder
from weakspot.verify.halves import split_halves

DISCOVERY, CONFIRMATION = "discovery half", "confirmation half"


def open_data(settings: DataSettings, folder: Path) -> SampleSource:
    """Return the source of samples that is configured; relative paths start at the project folder."""
    if not settings.source:
        raise ConfigError("It is not said where the samples are.", where="[data] source", fix="Set it in weakspot.toml.")
    local = folder / settings.source
    place = str(local) if local.exists() or _is_pattern_there(folder, settings.source) else settings.source
    return open_source(
        place,
        kind=settings.kind,
        columns=settings.columns,
        default_split=settings.default_split or None,
        class_names=settings.class_names or None,
    )


def _is_pattern_there(folder: Path, source: str) -> bool:
    """Return whether a relative pattern such as `shards/*.tar` or `shards/{00..03}.tar` starts inside the folder."""
    fixed = Path(source.split("*", maxsplit=1)[0].split("{", maxsplit=1)[0])
    return "://" not in source and not fixed.is_absolute() and fixed.parent != Path() and (folder / fixed.parent).is_dir()


def ingest_samples(store: ProjectStore, source: SampleSource, settings: Settings, progress: Progress) -> IngestSummary:
    """Bring the samples of a source into the project."""
    data = settings.data
    assembly = AssemblySettings(
        class_names=data.class_names,
        task=None if data.task == "auto" else Task(data.task),
        default_split=Split(data.default_split) if data.default_split else None,
        validation_fraction=data.validation_fraction,
        test_fraction=data.test_fraction,
        seed=settings.seed,
        unlabelled_is_negative=data.unlabelled_is_negative,
    )
    return ingest(store, source, engine=build_engine(settings), progress=progress, settings=assembly)


def halves(samples: SampleSet, settings: Settings, criterion: FailureCriterion) -> tuple[SampleSet, SampleSet]:
    """Return the discovery half and the confirmation half; the same for the same seed."""
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
    return (
        samples.only(split.discovery, name=f"{title}, {DISCOVERY}"),
        samples.only(split.confirmation, name=f"{title}, {CONFIRMATION}"),
    )


def discover_slices(record: RunRecord, samples: SampleSet, settings: Settings, criterion: FailureCriterion) -> RunRecord:
    """Look for slices on the discovery half."""
    discoverer = build_discoverer(settings)
    discovery, _ = halves(samples, settings, criterion)
    found = discoverer.discover(discovery, criterion, seed=settings.seed)
    every = samples.dataset.rows_of(*[Split(name) for name in settings.verify.splits])
    facts = classifier_facts(class_problems(samples.dataset, every, criterion))
    return record.model_copy(update={"slices": found.slices, "notes": found.notes, "classifier": facts})


def describe_slices(
    record: RunRecord, samples: SampleSet, settings: Settings, criterion: FailureCriterion, embedder: Embedder | None
) -> RunRecord:
    """Give the slices names, if the embedder has a text side."""
    if embedder is None or not embedder.has_text or not record.slices:
        return record
    discovery, _ = halves(samples, settings, criterion)
    describer = build_describer(settings)
    named = describer.describe(record.slices, discovery, criterion, lambda texts: embed_phrases(texts, embedder))
    return record.model_copy(update={"slices": named})


def verify_slices(record: RunRecord, samples: SampleSet, settings: Settings, criterion: FailureCriterion) -> RunRecord:
    """Measure the slices of a run on the confirmation half, and look into causes."""
    discovery, confirmation = halves(samples, settings, criterion)
    stale = [found for found in record.slices if found.found_on.digest != discovery.digest()]
    if stale:
        raise StoreError(
            "The slices of this run were found on other samples than the project holds now.",
            where=record.run_id,
            fix="Run `weakspot discover` again.",
        )
    evidence = build_verifier(settings).verify(record.slices, discovery=discovery, confirmation=confirmation, criterion=criterion)
    training = samples.only(samples.dataset.rows_of(Split.TRAIN), name="training samples")
    explained = CauseFinder().explain(record.slices, evidence, training=training, evaluation=confirmation, criterion=criterion)
    return record.model_copy(update={"evidence": explained})


def used_rows(samples: SampleSet, settings: Settings) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the rows on which slices were found or confirmed."""
    return samples.dataset.rows_of(*[Split(name) for name in settings.verify.splits])
