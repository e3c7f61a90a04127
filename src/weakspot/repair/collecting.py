"""A repair where nothing can be retrained here: rows to collect, how many, and weights for the user's own training."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import DataError, NotEnoughDataError, UnavailableError
from weakspot.core.heads import RepairMaterial, TrainingSelection
from weakspot.core.repairs import LabellingRequest, RepairPlan, RepairResult, SliceNeed
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.data.locations import shown_location
from weakspot.models.files import files_in, new_files
from weakspot.repair.bench import RepairBench, refuse_contamination
from weakspot.repair.collecting_needs import PoolRows, pool_rows, slice_needs
from weakspot.repair.export import (
    PLAN_FILE,
    README_FILE,
    keys_of,
    plan_text,
    plan_with,
    shown_labels,
    write_training_lists,
)
from weakspot.repair.labels import suggested_classes, write_labelling_list
from weakspot.report.repairs import need_sentences
from weakspot.run.halves import used_rows
from weakspot.run.wiring import build_part
from weakspot.store.csv_tables import csv_text
from weakspot.store.project import ProjectStore

FILE_SENTENCES = {
    "how_many.csv": "how many rows every slice has, lacks and could get; every figure says whether it is measured or an estimate.",
    "plan.json": "the slices, strategy and seed; weakspot repair --plan plan.json carries it out where the last layer is known.",
    "to_collect.csv": (
        "pool rows that fit each slice, in the order in which to take them: labelled ones first,\n"
        "  of these the ones that the classifier gets wrong; rows without a label may be of another class."
    ),
    "training_rows.txt": "positions, from 0, of the weighted rows among your training rows, without quarantined ones.",
    "training_weights.csv": (
        "how much each training row counts in your own training; weakspot.models.training_weights.WeightedSamples draws by it."
    ),
    "group_objectives.json": "groups of rows of which only that with the largest mean loss counts.",
}


def readme_text(
    needs: Sequence[SliceNeed],
    files: Sequence[str],
    selections: Mapping[str, TrainingSelection],
    notes: Sequence[str],
) -> str:
    """Return the README of the folder."""
    lines = [
        "What weakspot repair wrote. Nothing was retrained, and none of your own files was changed.",
        "",
        *notes,
        "",
        *(f"{name}: {FILE_SENTENCES[name]}" for name in files if name in FILE_SENTENCES),
        *(f"weights/{name}/: the same for the strategy {name}." for name in list(selections)[1:]),
        "",
        *(f"{name}: {selection.note}" for name, selection in selections.items()),
        "",
        *(" ".join(need_sentences(need)) for need in needs),
    ]
    return "\n".join(lines) + "\n"


COLLECT_FILE = "to_collect.csv"
NEEDS_FILE = "how_many.csv"
NEEDS_COLUMNS = ("slice_id", "slice", "what", "value", "kind")
WEIGHTS_FOLDER = "weights"
COLLECT_COLUMNS = (
    "slice_id",
    "slice",
    "rank",
    "sample_id",
    "image",
    "label",
    "prediction",
    "is_wrong",
    "key",
)


def write_collected(
    folder: Path,
    samples: SampleSet,
    *,
    plan: RepairPlan,
    pool: Sequence[PoolRows],
    needs: Sequence[SliceNeed],
    selections: Mapping[str, TrainingSelection],
    notes: Sequence[str],
) -> tuple[Path, ...]:
    """Write everything into a folder, all of it or nothing; files that are there are never overwritten.

    Args:
        folder: where to.
        samples: of the project.
        plan: slices and strategy.
        pool: pool rows by slice, of all slices of the plan.
        needs: how many rows every slice lacks.
        selections: training weights by strategy; the configured one first.
        notes: what could not be written, and why.

    Raises:
        ModelError: if files of the same names are there.
    """
    dataset = samples.dataset
    with new_files(folder) as staging:
        whole = plan_with(plan, [own.found for own in pool])
        (staging / PLAN_FILE).write_text(plan_text(whole), encoding="utf-8")
        facts = [(need.slice_id, need.title, *fact) for need in needs for fact in _facts(need)]
        _write_table(staging / NEEDS_FILE, NEEDS_COLUMNS, facts)
        if any(len(own.rows) for own in pool):
            _write_table(staging / COLLECT_FILE, *_collect_table(pool, dataset))
        for number, (name, selection) in enumerate(selections.items()):
            place = staging if number == 0 else staging / WEIGHTS_FOLDER / name
            place.mkdir(parents=True, exist_ok=True)
            write_training_lists(place, selection, dataset)
        names = [path.as_posix() for path in files_in(staging)]
        text = readme_text(needs, names, selections, notes)
        (staging / README_FILE).write_text(text, encoding="utf-8")
        written = files_in(staging)
    return tuple(folder / name for name in written)


def _write_table(path: Path, columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    path.write_text(csv_text(columns, lines), encoding="utf-8")


def _collect_table(
    pool: Sequence[PoolRows], dataset: Dataset
) -> tuple[tuple[str, ...], list[list[object]]]:
    """Return the pool rows of every slice in order, with the columns that its rule reads, so that one sees why."""
    read = sorted(
        {name for own in pool for name in own.found.rule.columns} & set(dataset.metadata_names)
    )
    lines: list[list[object]] = []
    for own in pool:
        rows = own.rows
        parts = zip(
            dataset.sample_ids(rows),
            dataset.locations(rows),
            shown_labels(rows, dataset),
            suggested_classes(dataset, rows),
            own.is_labelled.tolist(),
            own.is_wrong.tolist(),
            keys_of(rows, dataset),
            *(dataset.metadata(name).take(rows).to_pylist() for name in read),
            strict=True,
        )
        for rank, (name, place, label, said, is_labelled, is_wrong, key, *values) in enumerate(
            parts, 1
        ):
            known = ("yes" if is_wrong else "no") if is_labelled and said else ""
            shown = shown_location(place) if place else ""
            first = [
                own.found.slice_id,
                own.found.title,
                rank,
                name,
                shown,
                label,
                said,
                known,
                key,
            ]
            lines.append([*first, *("" if value is None else value for value in values)])
    return (*COLLECT_COLUMNS, *(f"column {name}" for name in read)), lines


def _facts(need: SliceNeed) -> list[tuple[str, object, str]]:
    facts: list[tuple[str, object, str]] = [
        ("failure rate inside", round(need.rate_inside, 4), "measured"),
        ("failure rate of the rest of the class", round(need.rate_outside, 4), "measured"),
        ("evaluation rows inside", need.n_inside, "counted"),
        ("pool rows that fit", need.n_pool, "counted"),
        ("pool rows that fit and are labelled", need.n_pool_labelled, "counted"),
        (
            "fall of the failure rate over all rows if it failed as seldom as the rest",
            round(need.largest_gain, 4),
            "estimate",
        ),
    ]
    if need.n_training is not None:
        facts += [
            ("training rows inside", need.n_training, "counted"),
            ("training rows of the class", need.n_class_training, "counted"),
        ]
    if need.n_to_match is not None:
        what = "rows to add for the share that it has in evaluation"
        facts.append((what, need.n_to_match, "counted"))
    facts += [
        (f"rows to add for a failure rate lower by {one.gain:.4f}", one.n_rows, "estimate")
        for one in need.estimates
    ]
    if need.why_no_estimate:
        why = f"cannot be estimated: {need.why_no_estimate}"
        facts.append(("rows to add for a given gain", "", why))
    return facts


OWN_WEIGHTS = ("slice-balanced", "worst-slice", "just-train-twice")
FOLDER = "handed-back/table"
COLLECT_INSTEAD = "`weakspot repair` writes which pool rows to collect, how many, and weights for your own training."


def collect_instead(
    bench: RepairBench,
    run_id: str,
    why: str,
    *,
    store: ProjectStore,
    write_to: Path | None,
    gain: float | None = None,
) -> RepairResult:
    """Write the files, into a folder of the run by default, and return what they say.

    Args:
        bench: samples, settings and confirmed slices.
        run_id: of the run.
        why: why nothing can be retrained here.
        store: of the project.
        write_to: a folder of the user's own.
        gain: by how much the failure rate of every slice is to fall; None: by half and all of its gap.

    Raises:
        DataError: if pool samples are also evaluated on.
        ModelError: if files of the same names are there.
    """
    samples, dataset = bench.samples, bench.samples.dataset
    refuse_contamination(
        dataset,
        training=dataset.rows_of(Split.TRAIN),
        pool=dataset.rows_of(Split.POOL),
        synthetic=None,
        verifying=dataset.rows_of(Split.VALIDATION, Split.TEST),
    )
    evaluated = used_rows(samples, bench.settings)
    pool = pool_rows(bench.slices, samples, bench.criterion)
    needs = slice_needs(
        bench.slices,
        bench.evidence,
        samples,
        bench.criterion,
        pool,
        evaluated=evaluated,
        gain=gain,
    )
    selections, notes = _selections(bench)
    repair = bench.settings.repair
    method = next(iter(selections), repair.method)
    plan = RepairPlan(
        slice_ids=tuple(found.slice_id for found in bench.slices),
        repairer=method,
        parameters=dict(repair.parameters) if method == repair.method else {},
        budget=repair.budget,
        seed=bench.settings.seed,
    )
    run_folder = store.runs.run_folder(run_id)
    with store.writing():
        if write_to is None:
            shutil.rmtree(run_folder / FOLDER, ignore_errors=True)
        written = write_collected(
            write_to or run_folder / FOLDER,
            samples,
            plan=plan,
            pool=pool,
            needs=needs,
            selections=selections,
            notes=(why, *notes),
        )
        labelling = _ask_for_labels(bench, pool, run_folder)
    files = [
        str(path) if write_to is not None else path.relative_to(run_folder).as_posix()
        for path in written
    ]
    if labelling is not None:
        files += [labelling.file, labelling.image_list]
    return RepairResult(
        plan=plan,
        measured_on=DataUse.of(samples.only(evaluated, name="evaluation samples")),
        arms=(),
        labelling=labelling,
        files=tuple(files),
        notes=(why, *notes),
        needs=needs,
    )


def _selections(bench: RepairBench) -> tuple[dict[str, TrainingSelection], tuple[str, ...]]:
    """Return training weights by strategy, the configured one first, and why others are missing."""
    samples, repair = bench.samples, bench.settings.repair
    training, pool = (
        samples.only(samples.dataset.rows_of(split), name=name)
        for split, name in ((Split.TRAIN, "training samples"), (Split.POOL, "pool"))
    )
    if not samples.dataset.is_labelled[training.rows].any():
        return {}, ("There are no labelled training samples to weigh.",)
    material = RepairMaterial(
        training=training,
        pool=pool if len(pool) else None,
        budget=repair.budget,
        evidence={entry.slice_id: entry for entry in bench.evidence},
        n_failures=sum(entry.failures_inside for entry in bench.evidence),
        seed=bench.settings.seed,
        assistants=bench.prepared.assistants,
    )
    found: dict[str, TrainingSelection] = {}
    notes: list[str] = []
    for name in dict.fromkeys([repair.method, *OWN_WEIGHTS]):
        given = dict(repair.parameters) if name == repair.method else {}
        try:
            part = build_part("repairers", name, given, where="[repair] parameters")
            chosen: TrainingSelection = part.select(bench.slices, material)
        except (NotEnoughDataError, DataError, UnavailableError) as error:
            notes.append(f"Weights of {name} are missing: {error.what}")
            continue
        waiting = ~samples.dataset.is_labelled[chosen.rows]
        if waiting.any():
            notes.append(
                f"Weights of {name} are missing: {int(waiting.sum())} chosen pool rows have no label."
            )
            continue
        found[name] = chosen
    return found, tuple(notes)


def _ask_for_labels(
    bench: RepairBench, pool: tuple[PoolRows, ...], run_folder: Path
) -> LabellingRequest | None:
    """Write the pool rows without a label that fit a slice as a list that labelling tools and people fill in."""
    rows = np.unique(np.concatenate([own.rows[~own.is_labelled] for own in pool]))
    if not len(rows):
        return None
    return write_labelling_list(run_folder, rows, bench.samples, bench.slices, roles={})
