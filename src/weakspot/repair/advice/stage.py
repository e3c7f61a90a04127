"""What to do about the findings of a run, ranked, with the files and the training weights that those need who do it."""

import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import DataError, NotEnoughDataError, UnavailableError, WeakspotError
from weakspot.core.heads import Head, RepairMaterial, TrainingSelection
from weakspot.core.repairs import RepairPlan
from weakspot.core.run import Advice, AdviceKind, CheckState, ClassNote, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.repair.advice import files
from weakspot.repair.advice.files import CollectionNeed, choose_from_pool
from weakspot.repair.advice.kinds import (
    ImageKind,
    MeasuredRepair,
    best_repair,
    has_class,
    kinds_of,
    with_embedding,
)
from weakspot.repair.advice.learning_curve import (
    CurveBuilder,
    CurveMaterial,
    draw_curve,
    forecast_gain,
    gain_interval,
    weigh_kind,
)
from weakspot.repair.bench import RepairBench
from weakspot.repair.collecting import rows_to_match
from weakspot.repair.export import (
    GROUP_OBJECTIVES_FILE,
    ROWS_FILE,
    WEIGHTS_FILE,
    write_training_lists,
)
from weakspot.run.halves import used_rows
from weakspot.run.preparation import FEATURES, Prepared
from weakspot.run.wiring import build_label_checker, build_part
from weakspot.store.atomic import write_bytes

AFTER_FIGURES = 3
TIERS = {
    AdviceKind.MEND_SETUP: 0,
    AdviceKind.CHECK_LABELS: 1,
    AdviceKind.RETRAIN: 2,
    AdviceKind.LABEL: 2,
    AdviceKind.COLLECT: 2,
    AdviceKind.GENERATE: 4,
    AdviceKind.ACCEPT: 5,
}
ORDER = tuple(TIERS)


def in_order(advice: Sequence[Advice], failures: Mapping[str, int]) -> tuple[Advice, ...]:
    """Return advice, best first.

    What makes everything else doubtful comes first: the set-up, then labels. Then what will clearly help, by how many failures it will
    resolve, and of one finding first what can be done at once; then what may help; then what only remains.

    Args:
        advice: in any order.
        failures: of every subject, how many evaluation images fail.
    """

    def tier(one: Advice) -> int:
        is_sure = one.gain_interval is not None and one.gain_interval.low > 0
        is_unsure = TIERS[one.kind] == TIERS[AdviceKind.LABEL] and not is_sure
        return AFTER_FIGURES if is_unsure else TIERS[one.kind]

    worth: dict[str, float] = {}
    for one in advice:
        resolved = max(one.gain or 0.0, 0.0) * failures.get(one.subject, 0)
        worth[one.subject] = max(worth.get(one.subject, 0.0), resolved)
    return tuple(
        sorted(
            advice,
            key=lambda one: (
                tier(one),
                -worth[one.subject],
                -failures.get(one.subject, 0),
                one.subject,
                ORDER.index(one.kind),
            ),
        )
    )


def recommended_plan(record: RunRecord, measured: Sequence[MeasuredRepair]) -> RepairPlan | None:
    """Return the plan whose weights are worth taking; None if there is none.

    That is the one that helped most of those that weigh training samples only. Where nothing could be retrained here, it is the
    one that was asked for.
    """
    helpful = [one for one in measured if one.helps and not one.n_added]
    if helpful:
        return max(helpful, key=lambda one: one.change.gained - one.change.lost).plan
    return next((result.plan for result in record.repairs if result.needs), None)


def selection_of(
    plan: RepairPlan, record: RunRecord, prepared: Prepared
) -> TrainingSelection | None:
    """Return which training samples a plan takes and how much each counts; None if that cannot be done here."""
    samples = prepared.samples
    rows = samples.dataset.rows_of(Split.TRAIN)
    if FEATURES in samples.spaces:
        rows = with_embedding(samples, rows, FEATURES)
    slices = record.slices_by_id()
    material = RepairMaterial(
        training=samples.only(rows, name="training samples"),
        evidence={entry.slice_id: entry for entry in record.evidence},
        n_failures=sum(entry.failures_inside for entry in record.evidence),
        seed=plan.seed,
        assistants=prepared.assistants,
    )
    try:
        part = build_part("repairers", plan.repairer, plan.parameters, where="[repair] parameters")
        found: TrainingSelection = part.select(
            [slices[name] for name in plan.slice_ids if name in slices], material
        )
    except (NotEnoughDataError, DataError, UnavailableError):
        return None
    return found


def write_weights(folder: Path, selection: TrainingSelection | None, dataset: Dataset) -> bool:
    """Write the training lists into a folder and return whether there are any; what an earlier run left is removed."""
    names = (WEIGHTS_FILE, ROWS_FILE, GROUP_OBJECTIVES_FILE)
    with tempfile.TemporaryDirectory() as place:
        written = () if selection is None else write_training_lists(Path(place), selection, dataset)
        fresh = {path.name: path.read_bytes() for path in written}
    for name in names:
        if name in fresh:
            folder.mkdir(parents=True, exist_ok=True)
            write_bytes(folder / name, fresh[name])
        else:
            (folder / name).unlink(missing_ok=True)
    return bool(fresh)


ADVICE_NOTE = "advice"
MAX_CURVES = 3
MAX_COUNTED = 100
NO_FEATURES = "the features of the last layer are not known"
NO_TRAINING = "there are no training images"
NOT_TRIED = "it was tried out for the largest findings only"
WEIGHTS = f"{files.NEXT_FOLDER}/{WEIGHTS_FILE}"
TOO_FEW = "too few such evaluation images to try it out"


@dataclass(frozen=True, eq=False)
class Advisor:
    """Says what to do about the findings of one run.

    Args:
        record: the run, with what repairs measured.
        bench: samples, models and settings of the project.
        folder: the project's folder, in which the files go to `next`.
    """

    record: RunRecord
    bench: RepairBench
    folder: Path

    def run(self) -> RunRecord:
        """Return the run with its advice, best first; files that cannot be written become a note."""
        found = [*self._setup(), *self._labels()]
        for wish in self.wishes:
            found += [*self._retraining(wish.kind), *self._wanting(wish), self._accepting(wish)]
        found += self._weights()
        failures = {kind.subject: kind.n_failed for kind in self._kinds}
        notes = [note for note in self.record.notes if note.class_name != ADVICE_NOTE]
        try:
            self._write()
        except (WeakspotError, OSError) as error:
            why = error.what if isinstance(error, WeakspotError) else str(error)
            said = f"Not all files could be written to {files.NEXT_FOLDER}: {why}"
            notes.append(ClassNote(class_name=ADVICE_NOTE, note=said))
        return self.record.model_copy(
            update={"advice": in_order(found, failures), "notes": tuple(notes)}
        )

    def _write(self) -> None:
        dataset = self.bench.samples.dataset
        files.write_collect_page(self.folder, self.wishes, dataset)
        files.write_suspects(self.folder, self._suspects, dataset)
        write_weights(self.folder / files.NEXT_FOLDER, self._recommended, dataset)
        files.write_label_list(self.folder, self.wishes, dataset)

    @cached_property
    def _kinds(self) -> tuple[ImageKind, ...]:
        return kinds_of(self.record, self.bench)

    @cached_property
    def _repairs(self) -> dict[str, MeasuredRepair | None]:
        return {kind.subject: best_repair(self.record, kind) for kind in self._kinds}

    @cached_property
    def _materials(self) -> dict[str, CurveMaterial | None]:
        """Return what can be tried out, of the first findings only: it takes seconds each."""
        if FEATURES not in self.bench.samples.spaces:
            return {}
        builder = CurveBuilder(
            samples=self.bench.samples,
            criterion=self.bench.criterion,
            start=self._start(),
            penalty=next((one.plan.penalty for one in self.record.repairs if one.arms), None),
        )
        return {kind.subject: builder.material(kind) for kind in self._kinds[:MAX_CURVES]}

    def _start(self) -> Head | None:
        try:
            return self.bench.start
        except WeakspotError:
            return None

    @cached_property
    def wishes(self) -> tuple[CollectionNeed, ...]:
        """Return what every finding could do with, and what that would bring."""
        return tuple(self._wish(kind) for kind in self._kinds)

    def _wish(self, kind: ImageKind) -> CollectionNeed:
        samples, seed = self.bench.samples, self.bench.settings.seed
        material = self._materials.get(kind.subject)
        curve = None if material is None else draw_curve(material, seed=seed)
        forecast = (
            None
            if material is None or curve is None
            else forecast_gain(curve, material.kind.n_units, n_measured=kind.n_measured, seed=seed)
        )
        n_wanted = _counted(kind, samples) if forecast is None else forecast.n_wanted
        choice = choose_from_pool(
            kind, samples, self.bench.criterion, n_wanted=n_wanted or 0, seed=seed
        )
        return CollectionNeed(
            kind=kind,
            choice=choice,
            n_wanted=n_wanted,
            forecast=forecast,
            why_none="" if forecast is not None else self._why_none(kind),
        )

    def _why_none(self, kind: ImageKind) -> str:
        if FEATURES not in self.bench.samples.spaces:
            return NO_FEATURES
        if kind.training is None:
            return NO_TRAINING
        return TOO_FEW if kind.subject in self._materials else NOT_TRIED

    def _setup(self) -> Iterator[Advice]:
        for check in self.record.checks:
            if check.state is CheckState.PROBLEM:
                told = " ".join(filter(None, (check.sentence, check.fix)))
                yield Advice(kind=AdviceKind.MEND_SETUP, sentence=told)

    @cached_property
    def _suspects(self) -> dict[ImageKind, IntArray]:
        """Return evaluation samples with a suspect label, of slices whose labels were found to need a look."""
        samples, checker = self.bench.samples, build_label_checker()
        training = samples.only(samples.dataset.rows_of(Split.TRAIN))
        evaluation = samples.only(used_rows(samples, self.bench.settings))
        found: dict[ImageKind, IntArray] = {}
        for kind in self._kinds:
            labels = None if kind.evidence is None else kind.evidence.labels
            if kind.slice_ is not None and labels and (labels.is_flagged or labels.is_doubtful):
                rows = checker.suspect_rows(
                    kind.slice_,
                    training=training,
                    evaluation=evaluation,
                    criterion=self.bench.criterion,
                )
                found |= {kind: rows} if len(rows) else {}
        return found

    def _labels(self) -> Iterator[Advice]:
        for kind, rows in self._suspects.items():
            labels = None if kind.evidence is None else kind.evidence.labels
            is_flagged = labels is not None and labels.is_flagged
            yield Advice(
                kind=AdviceKind.CHECK_LABELS,
                subject=kind.subject,
                class_name=kind.class_name,
                sentence=files.labels_sentence(
                    kind, len(rows), files.SUSPECT_FILE, is_flagged=is_flagged
                ),
                files=(files.SUSPECT_FILE,),
            )

    def _retraining(self, kind: ImageKind) -> Iterator[Advice]:
        repair = self._repairs[kind.subject]
        if repair is None:
            yield from self._predicted_retraining(kind)
        elif repair.helps:
            weights = () if repair.n_added or self._recommended is None else (WEIGHTS,)
            yield Advice(
                kind=AdviceKind.RETRAIN,
                subject=kind.subject,
                class_name=kind.class_name,
                sentence=files.retrain_sentence(kind, repair),
                n_known=kind.n_known,
                gain=repair.change.change,
                gain_interval=repair.interval,
                is_measured=True,
                files=weights,
                command=f"{self._command('repair')} --method {repair.plan.repairer} --write-to repaired",
            )

    def _predicted_retraining(self, kind: ImageKind) -> Iterator[Advice]:
        material = self._materials.get(kind.subject)
        point = None if material is None or not kind.n_known else weigh_kind(material)
        if material is None or point is None:
            return
        interval = gain_interval(
            point, material.kind.n_units, n_measured=kind.n_measured, seed=self.bench.settings.seed
        )
        if interval.low > 0:
            yield Advice(
                kind=AdviceKind.RETRAIN,
                subject=kind.subject,
                class_name=kind.class_name,
                sentence=files.predicted_retrain_sentence(kind, interval),
                n_known=kind.n_known,
                gain=point.gain,
                gain_interval=interval,
                command=self._command("repair"),
            )

    def _wanting(self, wish: CollectionNeed) -> Iterator[Advice]:
        """Yield what to label or collect, if that may help; where nothing can be had, also how to generate it."""
        kind, forecast = wish.kind, wish.forecast
        if not wish.may_help:
            return
        has_pool = wish.choice.n_candidates > 0
        tell = files.label_sentence if has_pool else files.collect_sentence
        file = files.LABEL_FILE if has_pool else files.COLLECT_PAGE
        yield Advice(
            kind=AdviceKind.LABEL if has_pool else AdviceKind.COLLECT,
            subject=kind.subject,
            class_name=kind.class_name,
            sentence=tell(wish, file, self._repairs[kind.subject]),
            n_known=kind.n_known,
            n_wanted=wish.n_wanted,
            gain=None if forecast is None else forecast.gain,
            gain_interval=None if forecast is None else forecast.interval,
            files=(file, files.COLLECT_PAGE) if has_pool else (file,),
            command=self._adding(wish),
        )
        if not has_pool and kind.words and self.bench.samples.dataset.has_images:
            yield Advice(
                kind=AdviceKind.GENERATE,
                subject=kind.subject,
                class_name=kind.class_name,
                sentence=files.generate_sentence(kind),
                command=f"{self._command('generate')} "
                + shlex.join(["--class", kind.class_name, kind.words[0], "--to", "generated"]),
            )

    def _adding(self, wish: CollectionNeed) -> str:
        """Return the command that trains with what was labelled; empty if there is nothing to label, or labels are there already."""
        is_labelled = wish.choice.is_labelled
        if not len(is_labelled) or (is_labelled.all() and wish.kind.slice_ is None):
            return ""
        repair = self._command("repair")
        if is_labelled.all():
            n_wanted = min(wish.n_wanted or len(is_labelled), len(is_labelled))
            return f"{repair} --method pool-deepest --budget {n_wanted} --slice {wish.kind.subject}"
        dataset = self.bench.samples.dataset
        n_ready = int(dataset.is_labelled[dataset.rows_of(Split.POOL)].sum())
        budget = n_ready + sum(len(one.choice.rows) for one in self.wishes)
        labels = shlex.quote(str(self.folder / files.LABEL_FILE))
        return f"{repair} --method pool-labelled --budget {budget} --labels {labels}"

    def _accepting(self, wish: CollectionNeed) -> Advice:
        kind = wish.kind
        return Advice(
            kind=AdviceKind.ACCEPT,
            subject=kind.subject,
            class_name=kind.class_name,
            sentence=files.accept_sentence(wish, self._repairs[kind.subject]),
            n_known=kind.n_known,
            command=f"{self._command('check')} --policy policy.toml",
        )

    @cached_property
    def _recommended(self) -> TrainingSelection | None:
        """Return training weights that are worth taking."""
        known = [one for one in self._repairs.values() if one is not None]
        plan = recommended_plan(self.record, known)
        return None if plan is None else selection_of(plan, self.record, self.bench.prepared)

    def _weights(self) -> Iterator[Advice]:
        """Yield that there are weights for training elsewhere, where nothing could be retrained here."""
        is_measured = any(one is not None for one in self._repairs.values())
        if self._recommended is not None and not is_measured:
            yield Advice(
                kind=AdviceKind.RETRAIN,
                sentence=f"weights for your own training, not measured here: {WEIGHTS}",
                files=(WEIGHTS,),
            )

    def _command(self, name: str) -> str:
        return shlex.join(["weakspot", name, "-p", str(self.folder)])


def _counted(kind: ImageKind, samples: SampleSet) -> int | None:
    """Return how many images would give a kind the share in training that it has in evaluation; of a class, as many as others have."""
    if kind.training is None:
        return None
    if kind.evidence is not None:
        n_inside, n_outside = kind.evidence.n_inside, kind.evidence.n_outside
        return rows_to_match(len(kind.training), kind.n_class_training, n_inside, n_outside) or None
    dataset, rows = samples.dataset, samples.dataset.rows_of(Split.TRAIN)
    others = [name for name in dataset.class_names if name != kind.class_name]
    counts = [int(has_class(dataset, rows, name).sum()) for name in others[:MAX_COUNTED]]
    return max(0, int(np.median(counts)) - len(kind.training)) or None if counts else None
