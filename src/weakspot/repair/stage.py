"""The repair stage: which slices are repaired, strategies choose, one bench trains and measures, and the user gets something to ship."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from weakspot.core.dataset import SPLIT_ORDER, Split, Task
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError, UnavailableError
from weakspot.core.evidence import ClassFindingKind
from weakspot.core.failures import Side
from weakspot.core.heads import TrainingSelection, with_mean_one
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairPlan, RepairResult
from weakspot.core.rules import AllOfRule
from weakspot.core.run import ClassNote, RunRecord, StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.models.files import head_bytes
from weakspot.repair.bench import GROUP_METHODS, FittedHead, RepairBench
from weakspot.repair.collecting import COLLECT_INSTEAD, collect_instead
from weakspot.repair.controls import MATCHED_CONTROLS, zero_shot
from weakspot.repair.export import HEAD_FILE, RepairJournal, export_repair
from weakspot.repair.labels import read_labels, write_labelling_list
from weakspot.repair.measure import FORMER
from weakspot.repair.reverification import look_again
from weakspot.run.ledger import Answer, AskedData, AskedTest, Ledger
from weakspot.run.preparation import CLIP, FEATURES
from weakspot.run.settings import Settings
from weakspot.run.stage_clock import library_versions
from weakspot.run.verdicts import Asking, open_ledger
from weakspot.run.wiring import buildable
from weakspot.store.project import ProjectStore

WHOLE_CLASS = "whole-class"
EVERYBODY = AllOfRule(rules=())
WORST_CLASS = "worst-class"
WITHIN_CLASSES = ("slice-balanced", "worst-slice")

REPAIR_NOTE = "repair"
WITHOUT_SLICES = (
    "worst-class",
    "class-balanced",
    "just-train-twice",
    "dfr-subsample",
    "dfr-upsample",
    "group-dro",
)
"""Strategies that look at no slice."""
NOTHING = (
    "No slice was confirmed and no class fails as a whole, so there is nothing to repair. To retrain all the same: "
    "weakspot repair --method worst-class"
)


def failing_classes(record: RunRecord, task: Task) -> tuple[FailureSlice, ...]:
    """Return the classes that are confirmed to fail as a whole, as slices that every sample of the class is a member of."""
    return tuple(
        FailureSlice(
            class_name=one.class_name,
            side=None if task is Task.SINGLE_LABEL else Side.PRESENT,
            rule=EVERYBODY,
            method=WHOLE_CLASS,
            found_on=DataUse.nothing(),
            names=(
                SliceName(
                    phrase=one.class_name,
                    contrast="as a whole",
                    score=one.rate,
                    describer=WHOLE_CLASS,
                ),
            ),
        )
        for one in record.class_findings
        if one.kind is ClassFindingKind.WHOLE and one.is_confirmed
    )


def settings_for(slices: Sequence[FailureSlice], settings: Settings) -> tuple[Settings, str]:
    """Return settings that fit what is repaired, and why they were changed: balancing parts of a class cannot mend a whole one."""
    method = settings.repair.method
    are_classes = bool(slices) and all(found.method == WHOLE_CLASS for found in slices)
    if not are_classes or method not in WITHIN_CLASSES:
        return settings, ""
    why = (
        f"No slice was confirmed, so the classes that fail as a whole are repaired, by {WORST_CLASS}; {method} balances parts of a "
        "class."
    )
    repair = settings.repair.model_copy(update={"method": WORST_CLASS, "parameters": {}})
    return settings.model_copy(update={"repair": repair}), why


def with_reason(record: RunRecord, why: str) -> RunRecord:
    """Return a run whose first repair says why it was done so."""
    if not why or not record.repairs:
        return record
    first = record.repairs[0]
    told = first.model_copy(update={"notes": (why, *first.notes)})
    return record.model_copy(update={"repairs": (told, *record.repairs[1:])})


def chosen_slices(
    record: RunRecord,
    slice_ids: Sequence[str],
    task: Task = Task.SINGLE_LABEL,
    *,
    is_exploratory: bool = False,
) -> tuple[FailureSlice, ...]:
    """Return the confirmed slices to repair; without any, the classes that fail as a whole.

    Args:
        record: the run.
        slice_ids: ids, or the beginnings of them; empty for all.
        task: single-label or multi-label.
        is_exploratory: whether ids may name slices that were not confirmed.

    Raises:
        ConfigError: if an id names no slice, or one that was not confirmed; or if unconfirmed slices are allowed and none is named.
    """
    if is_exploratory and not slice_ids:
        raise ConfigError(
            "An exploratory repair is for slices that are named.",
            where="--exploratory",
            fix="Name them: --slice ID.",
        )
    confirmed = {found.slice_id: found for found, _ in record.published()}
    if is_exploratory:
        confirmed |= {found.slice_id: found for found in record.slices}
    if not slice_ids:
        return record.findings() or failing_classes(record, task)
    chosen: dict[str, FailureSlice] = {}
    for wanted in slice_ids:
        matching = [
            found for slice_id, found in confirmed.items() if wanted and slice_id.startswith(wanted)
        ]
        if len(matching) != 1:
            raise ConfigError(
                f"This names no {'' if is_exploratory else 'confirmed '}slice, or several."
                if wanted
                else "A slice id is empty.",
                where="--slice",
                given=wanted,
                fix="Choose from "
                + (
                    ", ".join(f"{one} ({found.title})" for one, found in confirmed.items())
                    or "none"
                )
                + ".",
            )
        chosen[matching[0].slice_id] = matching[0]
    return tuple(chosen.values())


def are_exploratory(
    record: RunRecord, slices: Sequence[FailureSlice], plan: RepairPlan | None
) -> bool:
    """Return whether a repair is for slices of the run that nobody confirmed; a given plan says it itself."""
    if plan is not None:
        return plan.is_exploratory
    confirmed = {found.slice_id for found, _ in record.published()}
    unconfirmed = {found.slice_id for found in record.slices} - confirmed
    return any(found.slice_id in unconfirmed for found in slices)


def obstacle_to_repair(
    slices: Sequence[FailureSlice], samples: SampleSet, *, method: str = ""
) -> str:
    """Return why nothing can be retrained here, whatever the strategy; empty if something can.

    Args:
        slices: what is to be repaired.
        samples: of the project.
        method: the strategy, if it was asked for by name: some need no slice.
    """
    if not slices and method not in WITHOUT_SLICES:
        return NOTHING
    if FEATURES not in samples.spaces:
        return "The features under the classifier's last layer are not known, so it cannot be retrained here."
    if not len(samples.dataset.rows_of(Split.TRAIN)):
        return "There are no training samples to retrain the last layer on."
    if not len(samples.dataset.rows_of(Split.TEST)):
        return "There are no test samples to measure a repair on."
    return ""


def with_note(record: RunRecord, text: str) -> RunRecord:
    """Return a run without repairs that says why."""
    note = ClassNote(class_name=REPAIR_NOTE, note=text)
    return record.model_copy(update={"repairs": (), "notes": (*other_notes(record), note)})


def other_notes(record: RunRecord) -> tuple[ClassNote, ...]:
    """Return the notes of a run that are not about repairs."""
    return tuple(note for note in record.notes if note.class_name != REPAIR_NOTE)


def left_out(bench: RepairBench) -> list[str]:
    """Return what a comparison leaves out before anything is tried."""
    notes = []
    if bench.material.pool is None or not bench.material.budget:
        missing = "a pool" if bench.material.pool is None else "a budget (--budget)"
        notes.append(f"Strategies that choose from a pool were left out: they need {missing}.")
    if not bench.settings.repair.groups:
        notes.append("References with group labels were left out: [repair] groups names no column.")
    return notes


ASKED = (GroupKind.OVERALL, GroupKind.SLICE, GroupKind.COMPLEMENT)
"""Groups with questions of their own; classes, of which there may be thousands, are judged at the level of their repair."""
Family = tuple[GroupKind, str, bool]


def judged_repairs(results: Sequence[RepairResult], ledger: Ledger) -> tuple[RepairResult, ...]:
    """Return results whose changes say how likely they are by chance, over everything that was ever measured on these samples.

    For every group, repairs are corrected together, and so are baselines: neither pays for the other.
    """
    asked = [one for result in results for arm in result.arms for one in _ask(arm)]
    families = {family: number for number, family in enumerate(dict.fromkeys(f for f, _ in asked))}
    tests = [
        AskedTest(
            key=_key(change, family),
            p_value=change.p_value,
            family=families[family],
            about=f"{'baseline' if family[2] else 'repair'}: {change.group}",
        )
        for family, change in asked
    ]
    answers = ledger.ask(tests, source="repair", parts=()) if tests else ()
    said = {test.key: answer for test, answer in zip(tests, answers, strict=True)}
    judged = tuple(
        result.model_copy(update={"arms": tuple(_judge(arm, said) for arm in result.arms)})
        for result in results
    )
    if not tests:
        return judged
    notes = (*judged[0].notes, ledger.standing().sentence)
    return (judged[0].model_copy(update={"notes": notes}), *judged[1:])


def _ask(arm: RepairArm) -> Iterator[tuple[Family, GroupChange]]:
    for change in arm.changes:
        if change.kind in ASKED and change.n_samples and change.question:
            yield (change.kind, change.group, arm.is_baseline), change


def _key(change: GroupChange, family: Family) -> str:
    return f"{change.question}{' baseline' if family[2] else ''}"


def _judge(arm: RepairArm, said: dict[str, Answer]) -> RepairArm:
    own = {change.group: said[_key(change, family)] for family, change in _ask(arm)}
    if not own:
        return arm
    level = next(iter(own.values()))
    changes = tuple(
        change
        if change.kind in FORMER or not change.n_samples
        else change.model_copy(update={"q_value": _q_value(change, own.get(change.group), level)})
        for change in arm.changes
    )
    return arm.model_copy(update={"changes": changes})


def _q_value(change: GroupChange, answer: Answer | None, level: Answer) -> float:
    if change.kind in ASKED and answer is not None:
        return answer.q_value
    return min(1.0, change.p_value * level.n_tested / level.share)


PLAIN = "plain"
POOL_PREFIX = "pool-"


@dataclass(frozen=True, kw_only=True)
class RepairRequest:
    """What is asked of the repair stage, beside the settings.

    Args:
        slice_ids: repair only these slices, by id or by the beginning of it; empty: all confirmed ones that no other explains.
        is_comparison: run every strategy that the material allows, not only the configured one.
        labels: file with labels of pool samples that were asked for.
        plan: a plan of an earlier repair, to be carried out on this project.
        write_to: folder to write the repaired classifier, its plan and training weights to.
        is_required: whether a strategy that cannot work here is an error; otherwise it is a note of the run.
        is_exploratory: whether slices that were not confirmed may be named, too; their repair is marked so.
        gain: where rows are to be collected: by how much the failure rate of every slice is to fall; None: by half and all of its gap.
    """

    slice_ids: tuple[str, ...] = ()
    is_comparison: bool = False
    labels: Path | None = None
    plan: RepairPlan | None = None
    write_to: Path | None = None
    is_required: bool = True
    is_exploratory: bool = False
    gain: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RepairStage:
    """The repair stage of one run.

    Args:
        record: the run.
        bench: samples, models and settings of the project.
        store: where artefacts go.
        progress: told which strategy is under way.
    """

    record: RunRecord
    bench: RepairBench
    store: ProjectStore
    progress: StageProgress = no_stage_progress

    def run(self, request: RepairRequest) -> RunRecord:
        """Repair slices of the run; without any, or without features, the record says why nothing was done."""
        bench, why = self._chosen(request)
        asked = bench.settings.repair.method if request.is_required else ""
        obstacle = obstacle_to_repair(bench.slices, bench.samples, method=asked)
        if obstacle and not (bench.slices and request.is_required):
            advice = f" {COLLECT_INSTEAD}" if bench.slices else ""
            return with_note(self.record, f"{obstacle}{advice}")
        if obstacle:
            result = collect_instead(
                bench,
                self.record.run_id,
                obstacle,
                store=self.store,
                write_to=request.write_to,
                gain=request.gain,
            )
            return self._with_repairs((result,))
        try:
            bench = RepairBench.of(bench.prepared, bench.settings, bench.slices, bench.evidence)
            return with_reason(self._run_methods(bench, request), why)
        except (NotEnoughDataError, DataError, UnavailableError) as error:
            if request.is_required:
                raise
            return with_note(self.record, f"{error.what} {error.fix or ''}".strip())

    def _chosen(self, request: RepairRequest) -> tuple[RepairBench, str]:
        """Return the bench with the slices, labels and settings of a request, and why settings were changed."""
        bench = replace(self.bench, evidence=self.record.evidence)
        if request.labels is not None:
            samples = bench.samples
            labelled = replace(samples, dataset=read_labels(request.labels, samples.dataset))
            bench = replace(bench, prepared=replace(bench.prepared, samples=labelled))
        if request.plan is not None:
            settings = _settings_of(request.plan, bench.settings)
            return replace(bench, settings=settings, slices=request.plan.slices), ""
        slices = chosen_slices(
            self.record,
            request.slice_ids,
            bench.samples.dataset.task,
            is_exploratory=request.is_exploratory,
        )
        settings, why = settings_for(slices, bench.settings)
        return replace(bench, settings=settings, slices=slices), why

    def _with_repairs(self, repairs: tuple[RepairResult, ...]) -> RunRecord:
        return self.record.model_copy(
            update={"repairs": repairs, "notes": other_notes(self.record)}
        )

    def _run_methods(self, bench: RepairBench, request: RepairRequest) -> RunRecord:
        """Run every strategy that is asked for; of several, one that cannot work here becomes a note."""
        methods = _methods(bench, request)
        results: list[RepairResult] = []
        notes = left_out(bench) if request.is_comparison else []
        journal = self._journal(bench) if request.is_comparison else None
        for number, method in enumerate(methods):
            self.progress("repair", number, len(methods))
            try:
                results.append(
                    self._run_method(bench, method, request, journal if number else None)
                )
            except (NotEnoughDataError, DataError, UnavailableError) as error:
                if len(methods) == 1:
                    raise
                notes.append(f"{method}: {error.what}")
        self.progress("repair", len(methods), len(methods))
        if not results:
            raise NotEnoughDataError("No strategy could be used.", where="[repair]", given=notes)
        if request.is_comparison:
            first = results[0]
            results[0] = first.model_copy(
                update={
                    "arms": (*first.arms, *_reference_arms(bench, notes)),
                    "notes": (*first.notes, *notes),
                }
            )
        measured = bench.measured
        # On the samples that repairs are measured on, the chance of any false change is held for every group.
        ledger = Ledger(
            store=self.store,
            data=AskedData.of(measured.dataset, measured.rows),
            correction="fwer",
        )
        judged = judged_repairs(results, ledger)
        return self._with_repairs(judged)

    def _run_method(
        self, bench: RepairBench, method: str, request: RepairRequest, journal: RepairJournal | None
    ) -> RepairResult:
        """Return one strategy beside its baselines: from or for the journal, or, without one, written out and looked at again."""
        plan = bench.plan(method).model_copy(
            update={"is_exploratory": are_exploratory(self.record, bench.slices, request.plan)}
        )
        result = RepairResult(plan=plan, measured_on=DataUse.of(bench.measured), arms=())
        if journal is not None and (kept := journal.kept(result)) is not None:
            return kept
        selection = bench.selection(method)
        if request.labels is not None:
            selection = _labelled_part(selection, bench)
        waiting = bench.unlabelled(selection)
        if len(waiting) and journal is not None:
            raise NotEnoughDataError(
                f"{len(waiting)} chosen pool samples have no label.", where=method
            )
        if len(waiting):
            return self._ask_for_labels(bench, result, selection)
        fitted = bench.fitted(selection)
        arms, notes = _arms(bench, method, selection, fitted)
        result = result.model_copy(update={"arms": arms, "notes": notes})
        if journal is not None:
            journal.keep(result)
            return result
        ledger = open_ledger(self.store, bench.samples, self.bench.settings)
        asking = Asking(ledger=ledger, source="repair")
        aftermath = (
            look_again(bench, fitted, asking=asking)
            if self.bench.settings.repair.look_again
            else None
        )
        files, export_notes = self._write(bench, result, selection, fitted, request.write_to)
        changes = {
            "aftermath": aftermath,
            "head_file": HEAD_FILE,
            "files": files,
            "notes": (*notes, *export_notes),
        }
        return result.model_copy(update=changes)

    def _journal(self, bench: RepairBench) -> RepairJournal:
        """Return where finished strategies of a comparison are kept, for these samples and settings."""
        samples, settings = bench.samples, bench.settings
        every = np.arange(len(samples.dataset))
        labels = hashlib.sha256(
            bench.targets(every).tobytes() + samples.dataset.is_labelled.tobytes()
        ).hexdigest()
        key = f"{self.bench.prepared.inputs}{settings.model_dump_json()}{samples.digest()}{labels}{library_versions()}"
        return RepairJournal(store=self.store, run_id=self.record.run_id, key=key)

    def _ask_for_labels(
        self, bench: RepairBench, result: RepairResult, selection: TrainingSelection
    ) -> RepairResult:
        """Write the list of samples to label; the repair goes on when it comes back."""
        chosen = {result.plan.repairer: selection}
        if bench.settings.repair.label_baselines:
            chosen |= {
                f"baseline {name}": control for name, control in _controls(bench, selection, [])
            }
        why = {
            row: name
            for name, one in reversed(chosen.items())
            for row in bench.unlabelled(one).tolist()
        }
        with self.store.writing():
            folder = self.store.runs.run_folder(self.record.run_id)
            rows = np.array(sorted(why), dtype=np.int64)
            request = write_labelling_list(folder, rows, bench.samples, bench.slices, roles=why)
        return result.model_copy(
            update={"labelling": request, "files": (request.file, request.image_list)}
        )

    def _write(
        self,
        bench: RepairBench,
        result: RepairResult,
        selection: TrainingSelection,
        fitted: FittedHead,
        folder: Path | None,
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        content = head_bytes(fitted.head, bench.samples.dataset.class_names)
        with self.store.writing():
            self.store.runs.save_artefact(self.record.run_id, HEAD_FILE, content)
        if folder is None:
            return (HEAD_FILE,), ()
        files, notes = export_repair(
            folder,
            bench,
            head=fitted.head,
            selection=selection,
            plan=result.plan,
            changes=result.arms[0].changes,
        )
        return (HEAD_FILE, *map(str, files)), notes


def _arms(
    bench: RepairBench, method: str, selection: TrainingSelection, fitted: FittedHead
) -> tuple[tuple[RepairArm, ...], tuple[str, ...]]:
    """Return the repair, retraining alone, and the matched controls of its selection; what is unavailable becomes a note."""
    arms = [bench.arm(method, selection, is_baseline=False, fitted=fitted)]
    column, notes = bench.settings.repair.groups, list[str]()
    if column and column not in bench.samples.dataset.metadata_names:
        notes.append(f"Nothing was measured over given groups: there is no column “{column}”.")
    if method != PLAIN:
        arms.append(bench.arm(PLAIN, bench.selection(PLAIN, {}), is_baseline=True))
    for name, other in _controls(bench, selection, notes):
        waiting = bench.unlabelled(other)
        if len(waiting):
            notes.append(
                f"The baseline {name} is missing: {len(waiting)} of its samples have no label."
            )
        elif np.array_equal(other.rows, selection.rows):
            notes.append(f"The baseline {name} is missing: it would choose the same as the repair.")
        else:
            arms.append(bench.arm(name, other, is_baseline=True))
    return tuple(arms), tuple(notes)


def _controls(
    bench: RepairBench, selection: TrainingSelection, notes: list[str]
) -> Iterator[tuple[str, TrainingSelection]]:
    """Yield the baselines that match a selection, by name; what is unavailable becomes a note."""
    for name, control in MATCHED_CONTROLS.items():
        try:
            yield name, control(selection, bench.material)
        except (DataError, NotEnoughDataError, UnavailableError) as error:
            notes.append(f"The baseline {name} is missing: {error.what}")


def _reference_arms(bench: RepairBench, notes: list[str]) -> Iterator[RepairArm]:
    """Yield the embedder's own answers by class names and by slice names: what words alone can do."""
    embed_texts = bench.prepared.assistants.embed_texts
    if embed_texts is None or CLIP not in bench.samples.spaces:
        notes.append("zero-shot: there is no encoder of words.")
        return
    dataset = bench.samples.dataset
    for name, slices in (("zero-shot-classes", ()), ("zero-shot-groups", bench.slices)):
        classifier = zero_shot(dataset.class_names, embed_texts, slices=slices, task=dataset.task)
        # Samples without an embedding count as ones of zeros.
        embeddings = np.nan_to_num(bench.samples.embeddings(CLIP))
        yield bench.reference_arm(name, classifier.note, classifier.probabilities(embeddings))


def _methods(bench: RepairBench, request: RepairRequest) -> tuple[str, ...]:
    """Return the strategies to run, the configured one first."""
    chosen = bench.settings.repair.method
    if not request.is_comparison:
        return (chosen,)
    given = {name: bench.parameters(name) for name in GROUP_METHODS}
    has_pool = bench.material.pool is not None and bench.material.budget > 0
    able = [
        name
        for name in buildable("repairers", given)
        if name != PLAIN and (has_pool or not name.startswith(POOL_PREFIX))
    ]
    return tuple(dict.fromkeys([chosen, *able]))


def _labelled_part(selection: TrainingSelection, bench: RepairBench) -> TrainingSelection:
    """Return what was chosen without the samples whose labels have not come back, if at least one has."""
    dataset, rows = bench.samples.dataset, selection.rows
    is_labelled = dataset.is_labelled[rows]
    n_waiting = int(np.sum(~is_labelled))
    has_come_back = (dataset.splits[rows] == SPLIT_ORDER.index(Split.POOL)) & is_labelled
    if not n_waiting or not has_come_back.any() or selection.group_objectives:
        return selection
    note = f"{selection.note} {n_waiting} more were asked for and have no label yet."
    return TrainingSelection(
        rows=rows[is_labelled], weights=with_mean_one(selection.weights[is_labelled]), note=note
    )


def _settings_of(plan: RepairPlan, settings: Settings) -> Settings:
    changes = {
        "method": plan.repairer,
        "parameters": plan.parameters,
        "budget": plan.budget,
        "l2": plan.penalty or 0.0,
        "solver": plan.solver,
        "tune": plan.is_tuned,
    }
    return settings.model_copy(
        update={"repair": settings.repair.model_copy(update=changes), "seed": plan.seed}
    )
