"""A repair where nothing can be retrained here: rows to collect, how many a slice needs, and weights for the user's own training."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import DataError, NotEnoughDataError, UnavailableError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.heads import RepairMaterial, TrainingSelection
from weakspot.core.repairs import (
    GainEstimate,
    LabellingRequest,
    RepairPlan,
    RepairResult,
    SliceNeed,
)
from weakspot.core.rules import ColumnRule, single_rules
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, matches
from weakspot.data.locations import shown_location
from weakspot.models.files import files_in, new_files
from weakspot.repair.bench import RepairBench, refuse_contamination
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


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolRows:
    """What the pool holds of a slice.

    Args:
        found: the slice.
        rows: rows of the data set, those to take first at the front.
        is_labelled: which of them are labelled with the class of the slice; the others have no label.
        is_wrong: which of them the classifier gets wrong, as far as that is known.
    """

    found: FailureSlice
    rows: IntArray
    is_labelled: BoolArray
    is_wrong: BoolArray


def pool_rows(
    slices: Sequence[FailureSlice], samples: SampleSet, criterion: FailureCriterion
) -> tuple[PoolRows, ...]:
    """Return for every slice the pool rows that its rule fits: labelled with its class, or without a label.

    Labelled rows come first, because they can be used at once; among these, rows that the classifier gets wrong, then by how little
    probability it gives to the truth, where that is known; then in the order of the table.
    """
    pool = samples.dataset.rows_of(Split.POOL)
    return tuple(_of_slice(found, samples, pool, criterion) for found in slices)


def _of_slice(
    found: FailureSlice, samples: SampleSet, pool: IntArray, criterion: FailureCriterion
) -> PoolRows:
    dataset = samples.dataset
    fits = pool[found.rule.members(samples, pool)]
    of_class = np.isin(fits, found.class_rows(samples.only(fits)))
    rows = fits[of_class | ~dataset.is_labelled[fits]]
    is_labelled = dataset.is_labelled[rows]
    is_wrong, confidence = _judge(found, samples, rows[is_labelled], criterion)
    wrong = np.zeros(len(rows), dtype=np.bool_)
    sure = np.full(len(rows), np.inf)
    wrong[is_labelled], sure[is_labelled] = is_wrong, confidence
    order = np.lexsort((rows, sure, ~wrong, ~is_labelled))
    return PoolRows(
        found=found, rows=rows[order], is_labelled=is_labelled[order], is_wrong=wrong[order]
    )


def _judge(
    found: FailureSlice, samples: SampleSet, rows: IntArray, criterion: FailureCriterion
) -> tuple[BoolArray, FloatArray]:
    """Return which labelled rows the classifier gets wrong, and the probability of their truth; infinite where nothing is known."""
    wrong = np.zeros(len(rows), dtype=np.bool_)
    sure = np.full(len(rows), np.inf, dtype=np.float32)
    if not samples.dataset.has_predictions or not len(rows):
        return wrong, sure
    for problem in class_problems(samples.dataset, rows, criterion):
        if matches(found, problem):
            places = np.searchsorted(rows, problem.rows)
            wrong[places] = problem.failed
            sure[places] = np.nan_to_num(problem.confidence, nan=np.inf)
    return wrong, sure


MIN_KINDS = 4
MIN_EVALUATED = 20
MIN_SPREAD = 4.0
SURE = 1.96
MAX_STEPS = 50
MAX_TIMES = 1000.0
MAX_ABOVE = 2.0
PARTS_OF_GAP = (0.5, 1.0)


KindCounts = tuple[IntArray, IntArray, IntArray]
"""Training rows, evaluation rows and failures among these, of every kind of samples of one class [k]."""


def slice_needs(
    slices: Sequence[FailureSlice],
    evidence: Sequence[Evidence],
    samples: SampleSet,
    criterion: FailureCriterion,
    pool: Sequence[PoolRows],
    *,
    evaluated: IntArray,
    gain: float | None = None,
) -> tuple[SliceNeed, ...]:
    """Return what every slice lacks.

    Args:
        slices: confirmed ones.
        evidence: what was measured of them.
        samples: all samples.
        criterion: what counts as a failure.
        pool: what the pool holds of each slice.
        evaluated: rows that failures were measured on.
        gain: by how much the failure rate of every slice is to fall; None: by half and all of its gap.
    """
    known = {entry.slice_id: entry for entry in evidence}
    return tuple(
        _need(found, known[found.slice_id], samples, criterion, own, evaluated, gain)
        for found, own in zip(slices, pool, strict=True)
        if found.slice_id in known
    )


def _need(
    found: FailureSlice,
    entry: Evidence,
    samples: SampleSet,
    criterion: FailureCriterion,
    pool: PoolRows,
    evaluated: IntArray,
    gain: float | None,
) -> SliceNeed:
    training = samples.only(samples.dataset.rows_of(Split.TRAIN))
    own = found.class_rows(training)
    n_members = int(found.rule.members(samples, own).sum())
    need = SliceNeed(
        slice_id=found.slice_id,
        title=found.title,
        rate_inside=entry.rate_inside,
        rate_outside=entry.rate_outside,
        n_inside=entry.n_inside,
        n_outside=entry.n_outside,
        n_evaluation=entry.measured_on.n_samples,
        n_training=n_members if len(training) else None,
        n_class_training=len(own),
        n_pool=len(pool.rows),
        n_pool_labelled=int(pool.is_labelled.sum()),
        n_to_match=rows_to_match(n_members, len(own), entry.n_inside, entry.n_outside)
        if len(training)
        else None,
    )
    if not len(training):
        return need.model_copy(update={"why_no_estimate": "there are no training rows to count"})
    counts = kind_counts(found, samples, criterion, evaluated)
    if isinstance(counts, str):
        return need.model_copy(update={"why_no_estimate": counts})
    return _estimated(need, counts, gain)


def rows_to_match(n_members: int, n_class: int, n_inside: int, n_outside: int) -> int:
    """Return how many members to add so that they have the share among training rows that they have among evaluation rows.

    >>> rows_to_match(10, 910, 200, 800), rows_to_match(300, 1000, 200, 800)
    (215, 0)
    """
    if not n_outside:
        return 0
    wanted = (n_class - n_members) * n_inside / n_outside
    return max(0, int(np.ceil(round(wanted - n_members, 9))))


def kind_counts(
    found: FailureSlice, samples: SampleSet, criterion: FailureCriterion, evaluated: IntArray
) -> KindCounts | str:
    """Return the other kinds of samples of a slice's class, by values of the columns that its rule reads; or why there are none."""
    rules = single_rules(found.rule)
    columns = sorted(
        {rule.column for rule in rules if isinstance(rule, ColumnRule) and rule.values}
    )
    if not columns or any(not isinstance(rule, ColumnRule) for rule in rules):
        return "its rule does not divide the class into kinds to compare"
    problem = next(
        (
            one
            for one in class_problems(samples.dataset, evaluated, criterion)
            if matches(found, one)
        ),
        None,
    )
    if problem is None:
        return "no evaluation row belongs to its class"
    training = found.class_rows(samples.only(samples.dataset.rows_of(Split.TRAIN)))
    training = training[~found.rule.members(samples, training)]
    outside = ~found.rule.members(samples, problem.rows)
    kinds = _codes(samples, np.concatenate([training, problem.rows[outside]]), columns)
    n_kinds = int(kinds.max(initial=-1)) + 1
    here, there = kinds[len(training) :], kinds[: len(training)]
    failed = here[problem.failed[outside]]
    training, evaluated, failed = (
        np.bincount(codes, minlength=n_kinds) for codes in (there, here, failed)
    )
    return training, evaluated, failed


def _codes(samples: SampleSet, rows: IntArray, columns: Sequence[str]) -> IntArray:
    """Return the number of every row's combination of values."""
    found = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        coded = samples.dataset.metadata(column).take(rows).combine_chunks().dictionary_encode()
        values = np.asarray(coded.indices.fill_null(len(coded.dictionary)), dtype=np.int64)
        found = found * (len(coded.dictionary) + 1) + values
    return np.unique(found, return_inverse=True)[1].reshape(-1)


def _estimated(need: SliceNeed, counts: KindCounts, gain: float | None) -> SliceNeed:
    curve = learning_curve(counts)
    why = curve if isinstance(curve, str) else _departure(need, curve)
    if isinstance(curve, str) or why or not need.n_training:
        return need.model_copy(update={"why_no_estimate": why})
    gap = need.rate_inside - need.rate_outside
    wanted = [part * gap for part in PARTS_OF_GAP] if gain is None else [gain]
    estimates = tuple(
        GainEstimate(gain=one, n_rows=n_rows)
        for one in wanted
        if (n_rows := rows_for(one, need.rate_inside, need.n_training, curve.exponent)) is not None
    )
    why = "" if estimates else "the gain is beyond what the curve can be drawn out to"
    return need.model_copy(
        update={
            "exponent": curve.exponent,
            "n_kinds": curve.n_kinds,
            "estimates": estimates,
            "why_no_estimate": why,
        }
    )


def _departure(need: SliceNeed, curve: "LearningCurve") -> str:
    """Return why a slice does not lie on the curve of the other kinds; empty if it does."""
    if not need.n_training:
        return "no training row is of its kind, so there is nothing to start from"
    if need.rate_inside > MAX_ABOVE * curve.rate_at(need.n_training):
        return "it fails far more often than its number of training rows explains, compared with other kinds of its class"
    return ""


def rows_for(gain: float, rate: float, n_rows: int, exponent: float) -> int | None:
    """Return how many rows to add so that a rate falls by `gain` along a power of the number of rows; None beyond a thousandfold.

    >>> rows_for(0.2, 0.4, 50, 0.5), rows_for(0.4, 0.4, 50, 0.5)
    (150, None)
    """
    if not 0.0 < gain < rate:
        return None
    times = (rate / (rate - gain)) ** (1.0 / exponent)
    return int(np.ceil(round(n_rows * (times - 1.0), 6))) if times <= MAX_TIMES else None


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """Failure rates across kinds of a class: `level * n_rows ** -exponent`.

    Args:
        exponent: positive.
        level: the rate at one training row.
        n_kinds: kinds that it goes through.
    """

    exponent: float
    level: float
    n_kinds: int

    def rate_at(self, n_rows: int) -> float:
        return min(1.0, float(self.level * n_rows**-self.exponent))


def learning_curve(counts: KindCounts) -> LearningCurve | str:
    """Return how failures fall with the number of training rows across kinds; or why that cannot be said.

    A Poisson regression of failures on the logarithm of the number of training rows; its error is widened by how much kinds differ beyond
    chance.
    """
    n_training, n_evaluated, _ = counts
    usable = (n_training > 0) & (n_evaluated >= MIN_EVALUATED)
    n_kinds = int(usable.sum())
    if n_kinds < MIN_KINDS:
        return f"only {n_kinds} other kinds of its class have enough rows to compare, at least {MIN_KINDS} are needed"
    training, evaluated, failed = (one[usable].astype(np.float64) for one in counts)
    if training.max() < MIN_SPREAD * training.min():
        return "other kinds of its class have nearly the same number of training rows, so these say nothing of what more rows do"
    fitted = _fit(np.log(training), evaluated, failed)
    if fitted is None:
        return "other kinds of its class do not fail by any power of the number of training rows"
    level, slope, error = fitted
    if -slope - SURE * error <= 0.0:
        return "other kinds of its class with more training rows do not clearly fail less often"
    return LearningCurve(exponent=-slope, level=level, n_kinds=n_kinds)


def _fit(
    logs: DoubleArray, evaluated: DoubleArray, failed: DoubleArray
) -> tuple[float, float, float] | None:
    """Return the rate at logs of 0, slope and standard error of log(failure rate) on logs; None if it does not settle."""
    if not failed.sum():
        return None
    design = np.column_stack([np.ones(len(logs)), logs - logs.mean()])
    weights = np.array([np.log(failed.sum() / evaluated.sum()), 0.0])
    for _ in range(MAX_STEPS):
        expected = evaluated * np.exp(np.clip(design @ weights, -50.0, 50.0))
        information = design.T @ (design * expected[:, None])
        try:
            step = np.linalg.solve(information, design.T @ (failed - expected))
        except np.linalg.LinAlgError:
            return None
        weights = weights + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-8:  # noqa: PLR2004 - settled
            break
    else:
        return None
    expected = evaluated * np.exp(design @ weights)
    spread = float(np.sum((failed - expected) ** 2 / expected)) / max(len(logs) - 2, 1)
    error = float(np.sqrt(np.linalg.inv(information)[1, 1] * max(1.0, spread)))
    return float(np.exp(weights[0] - weights[1] * logs.mean())), float(weights[1]), error


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
