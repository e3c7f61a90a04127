"""The stages of the loop as functions of a run record, samples and settings."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from weakspot.core.assistants import Assistants, CaptionRows
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, StoreError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import FailureCriterion
from weakspot.core.run import ClassNote, MethodRecord, Progress, RunRecord, no_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.data.open_source import open_source
from weakspot.data.settings import BoxSettings, DataSettings
from weakspot.data.source import SampleSource
from weakspot.run.halves import (
    Halves,
    evaluated_splits,
    fitted_halves,
    split_in_halves,
    used_rows,
    withhold_from_halves,
)
from weakspot.run.ingestion import IngestResult, ingest
from weakspot.run.methods import (
    BlindSearch,
    MethodRun,
    blind_discoverers,
    fitting_settings,
    judge_blind_slices,
    parts_of_error_rate,
    run_method,
    with_tested,
    word_methods,
)
from weakspot.run.models import RunModels
from weakspot.run.naming import found_on
from weakspot.run.settings import Settings
from weakspot.run.verdicts import Asking, classifier_facts, judged
from weakspot.run.wiring import (
    build_cause_finder,
    build_discoverers,
    build_engine,
    build_label_checker,
    build_verifier,
)
from weakspot.store.project import ProjectStore
from weakspot.verify.halves import merge_folds
from weakspot.verify.holdout import with_adjusted_gaps, with_elsewhere
from weakspot.verify.organised import organise_slices
from weakspot.verify.screening import screened


def open_data(
    settings: DataSettings, folder: Path, boxes: BoxSettings | None = None
) -> SampleSource:
    """Return the source of samples that is configured; relative paths start at the project folder."""
    if not settings.source:
        raise ConfigError(
            "No source of samples is set.",
            where="[data] source",
            fix="Set it in weakspot.toml.",
        )
    # Whole paths: workers in other processes may have another working directory, and so may the next call.
    local = Path(os.path.abspath(folder / settings.source))
    place = (
        str(local)
        if local.exists() or _is_pattern_there(folder, settings.source)
        else settings.source
    )
    boxes = boxes or BoxSettings()

    def place_of(name: str) -> str:
        return str(folder / name) if name and (folder / name).exists() else name

    return open_source(
        place,
        kind=settings.kind,
        columns=settings.columns,
        default_split=settings.default_split or None,
        class_names=settings.class_names or None,
        boxes=boxes.model_copy(
            update={"images": place_of(boxes.images), "detections": place_of(boxes.detections)}
        ),
        fractions=(settings.validation_fraction, settings.test_fraction),
    )


def _is_pattern_there(folder: Path, source: str) -> bool:
    """Return whether a relative pattern such as `shards/*.tar` or `shards/{00..03}.tar` starts inside the folder."""
    fixed = Path(source.split("*", maxsplit=1)[0].split("{", maxsplit=1)[0])
    return (
        "://" not in source
        and not fixed.is_absolute()
        and fixed.parent != Path()
        and (folder / fixed.parent).is_dir()
    )


def ingest_samples(
    store: ProjectStore,
    source: SampleSource,
    settings: Settings,
    progress: Progress,
    *,
    models: RunModels | None = None,
) -> IngestResult:
    """Read a source; with models, these see its images in the same pass."""
    data = settings.data
    assembly = data.model_copy(
        update={
            "class_names": data.class_names or getattr(source, "known_classes", ()),
            "group": data.columns.get("group", data.group) if data.group == "auto" else data.group,
        }
    )
    summary = ingest(
        store,
        source,
        engine=build_engine(settings),
        progress=progress,
        settings=assembly,
        seed=settings.seed,
        models=None if models is None else partial(models.in_pass, store, source),
    )
    if models is not None:
        models.note_seen(summary.n_answered)
    return summary


def discover_slices(
    record: RunRecord,
    samples: SampleSet,
    settings: Settings,
    criterion: FailureCriterion,
    assistants: Assistants,
    *,
    progress: Progress = no_progress,
    halves: Halves | None = None,
) -> RunRecord:
    """Look for slices on the discovery half with every configured method, and screen them there; progress counts methods."""
    pairs = withhold_from_halves(
        halves or split_in_halves(samples, settings, criterion), settings.repair.groups
    )
    settings = fitting_settings(settings, samples)
    every = build_discoverers(settings)
    blind = blind_discoverers(settings)
    folds = [one for one, _ in pairs if len(one)] if not blind else fitted_halves(pairs, criterion)
    discoverers = {
        name: part
        for name, part in every.items()
        if name not in blind or not blind[name].is_always_blind
    }
    n_runs = len(folds) * len(discoverers)
    slices: list[FailureSlice] = []
    notes: list[ClassNote] = []
    methods: list[MethodRecord] = []
    for fold, discovery in enumerate(folds):
        found: list[MethodRun] = []
        for name, part in discoverers.items():
            progress(len(methods) + len(found), n_runs)
            found.append(
                run_method(
                    name,
                    part,
                    discovery,
                    criterion,
                    settings,
                    assistants,
                    alone=len(every) == 1,
                )
            )
        screen = screened(
            [one for _, discovered in found for one in discovered.slices],
            discovery,
            criterion,
            largest_p=settings.discover.screen_p,
            most=settings.discover.max_tested,
            words=word_methods(every.items()),
        )
        slices += _told_apart(screen.kept, slices, fold)
        notes += [note for _, discovered in found for note in discovered.notes]
        methods += [with_tested(one, screen.kept) for one in found]
    progress(n_runs, n_runs)
    search = BlindSearch(pairs[-1][1], settings, criterion)
    told = [test.found for test in search.run()] if blind else []
    slices += _told_apart(told, slices, len(pairs) - 1)
    methods = [*search.recorded(told), *methods]
    rows = used_rows(samples, settings)
    facts = classifier_facts(samples.dataset, rows, criterion)
    update = {
        "slices": tuple(slices),
        "notes": tuple(dict.fromkeys(notes)),
        "methods": tuple(methods),
        "classifier": facts,
    }
    return record.model_copy(update=update)


def _told_apart(
    kept: Sequence[FailureSlice], earlier: Sequence[FailureSlice], fold: int
) -> list[FailureSlice]:
    """Return what a fold found, with ids of their own also for rules that an earlier fold found: evidence is kept by id."""
    known = {found.slice_id for found in earlier}
    return [
        found.model_copy(update={"fold": fold}) if found.slice_id in known else found
        for found in kept
    ]


def verify_slices(
    record: RunRecord,
    samples: SampleSet,
    settings: Settings,
    criterion: FailureCriterion,
    *,
    halves: Halves | None = None,
    captions: CaptionRows | None = None,
    asking: Asking | None = None,
) -> RunRecord:
    """Measure the slices of a run on the confirmation half, and look into causes; a captioner is a witness of suspect labels.

    Verdicts are read off the ledger of whoever asks; without one, only what is tested here counts.
    """
    pairs = halves or split_in_halves(samples, settings, criterion)
    settings = fitting_settings(settings, samples)
    own = [found_on(record.slices, discovery) for discovery, _ in pairs]
    if sum(map(len, own)) < len(record.slices):
        raise StoreError(
            "The slices of this run were found on other samples than the project holds now.",
            where=record.run_id,
            fix="Run `weakspot discover` again.",
        )
    parts = parts_of_error_rate(settings, len(pairs))
    measured = [
        _measure(slices, pair, settings, criterion, part)
        for slices, pair, part in zip(own, pairs, parts, strict=True)
    ]
    verifier = build_verifier(settings)
    min_gap = getattr(verifier, "min_gap", 0.0)
    entered = (
        [
            [entry.model_copy(update={"q_value": min(1.0, entry.q_value / part)}) for entry in fold]
            for fold, part in zip(measured, parts, strict=True)
        ]
        if asking is None
        else judged(measured, asking, min_gap=min_gap, slices=record.slices, parts=parts)
    )
    evidence: dict[str, Evidence] = {}
    for slices, fold, (_, confirmation) in zip(own, entered, pairs, strict=True):
        explained = _explain(
            slices, fold, confirmation, samples, settings, criterion, captions=captions
        )
        evidence |= {entry.slice_id: entry for entry in explained}
    ordered = tuple(evidence[found.slice_id] for found in record.slices)
    if len(pairs) > 1:
        ordered = merge_folds(record.slices, ordered, samples.only(used_rows(samples, settings)))
    adjusted = with_adjusted_gaps(
        ordered,
        alpha=getattr(verifier, "alpha", 0.05),
        min_gap=min_gap,
    )
    kept_by_use = {discovery.digest(): kept for discovery, kept in pairs}
    told, trees = organise_slices(record.slices, adjusted, kept_by_use, criterion)
    return record.model_copy(update={"evidence": told, "trees": trees})


def _measure(
    slices: Sequence[FailureSlice],
    pair: tuple[SampleSet, SampleSet],
    settings: Settings,
    criterion: FailureCriterion,
    part: float,
) -> tuple[Evidence, ...]:
    verifier = build_verifier(settings, part=part)
    discovery, confirmation = pair
    measured = verifier.verify(
        slices, discovery=discovery, confirmation=confirmation, criterion=criterion
    )
    if slices and not len(discovery):
        tests = BlindSearch(confirmation, settings, criterion).run()
        measured = judge_blind_slices(slices, measured, tests, verifier)
    return measured


def _explain(
    slices: Sequence[FailureSlice],
    measured: Sequence[Evidence],
    confirmation: SampleSet,
    samples: SampleSet,
    settings: Settings,
    criterion: FailureCriterion,
    *,
    captions: CaptionRows | None,
) -> tuple[Evidence, ...]:
    dataset = samples.dataset
    training = samples.only(dataset.rows_of(Split.TRAIN), name="training samples")
    explained = build_cause_finder().explain(
        slices, measured, training=training, evaluation=confirmation, criterion=criterion
    )
    checked = build_label_checker().check(
        slices,
        explained,
        training=training,
        evaluation=confirmation,
        criterion=criterion,
        captions=captions,
    )
    others = {
        name: samples.only(dataset.rows_of(split), name=name)
        for name, split in (("pool", Split.POOL), ("test split", Split.TEST))
        if split not in evaluated_splits(settings, dataset) and len(dataset.rows_of(split))
    }
    seen = samples.only(used_rows(samples, settings))
    return with_elsewhere(slices, checked, others, criterion, seen=seen)
