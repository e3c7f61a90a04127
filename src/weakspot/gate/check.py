"""A policy put to a run of a project, and its result as files for other programs."""

import difflib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from weakspot import __version__
from weakspot.core.arrays import BoolArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError, DataError, ModelError, StoreError
from weakspot.core.evidence import ClassFindingKind, Verdict
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.record import PackedArray
from weakspot.core.rules import ColumnRule, NearestRule
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName, matches
from weakspot.gate.bars import (
    class_accuracy,
    confirmed_slices,
    failing_classes,
    new_slices,
    overall_accuracy,
    percent,
    slice_accuracy,
    slice_gap,
)
from weakspot.gate.baseline import Baseline
from weakspot.gate.figures import (
    Figures,
    SubjectKind,
    Tally,
    pair_samples,
)
from weakspot.gate.formats import junit_xml, markdown_comment, sarif_json
from weakspot.gate.policy import AcceptedSlice, NamedSlice, Policy
from weakspot.gate.regressions import regressions
from weakspot.gate.result import PolicyEntry, PolicyResult, Ruling
from weakspot.gate.runs import (
    choose_run,
    find_sightings,
    held_out,
    refuse_other_inputs,
    refuse_other_task,
    write_file,
)
from weakspot.project.project import Project
from weakspot.run.halves import used_rows
from weakspot.run.ledger import AskedData, AskedTest
from weakspot.run.phrase_questions import matching_prompts
from weakspot.run.verdicts import ledger_at

METHOD = "policy"
NOWHERE = DataUse(name="named in the policy", n_samples=0, digest="")
ABSENT_PREFIX = "no "


def column_slices(named: Sequence[NamedSlice], dataset: Dataset) -> tuple[FailureSlice, ...]:
    return tuple(
        _slice(
            one,
            dataset,
            ColumnRule(column=one.column, values=one.wanted, low=one.low, high=one.high),
        )
        for one in named
        if one.column
    )


def phrase_slices(
    named: Sequence[NamedSlice], samples: SampleSet, embed: EmbedTexts | None
) -> tuple[FailureSlice, ...]:
    """Return the named slices that are told by words: samples that are nearer to the class with them than to the class alone.

    No result is looked at, so such a slice can be measured on any sample.
    """
    wanted = [one for one in named if one.phrase]
    if wanted and embed is None:
        raise ModelError(
            "The embedder has no text side, so slices cannot be named by phrases.",
            where=f"[[slices]] {wanted[0].name}",
            fix="Name them by a column, or run weakspot lab align.",
        )
    return tuple(_phrase_slice(one, samples, embed) for one in wanted if embed is not None)


def members_of(found: FailureSlice, samples: SampleSet, rows: IntArray) -> BoolArray:
    """Return which rows belong to a named slice.

    Raises:
        ConfigError: if the column holds no numbers and low or high was given.
        DataError: if there is no such column.
    """
    try:
        return found.rule.members(samples, rows)
    except pa.ArrowInvalid as error:
        raise ConfigError(
            "The column holds no numbers, so low and high mean nothing.",
            where=f"[[slices]] {found.names[0].contrast}",
            fix="Give value or values instead.",
        ) from error


def _phrase_slice(one: NamedSlice, samples: SampleSet, embed: EmbedTexts) -> FailureSlice:
    class_name, side = _class_of(one, samples.dataset)
    nobody = np.zeros(0, dtype=np.int64)
    problem = ClassProblem(
        class_name=class_name,
        side=side,
        rows=nobody,
        failed=nobody.astype(np.bool_),
        confidence=nobody.astype(np.float32),
    )
    embeddings = unit_rows(
        np.asarray(embed(matching_prompts(one.phrase, problem)), dtype=np.float32)
    )
    rule = NearestRule(
        encoder_id=samples.space("clip").encoder_id, prototypes=PackedArray.of(embeddings), chosen=0
    )
    return _slice(one, samples.dataset, rule)


def _slice(one: NamedSlice, dataset: Dataset, rule: ColumnRule | NearestRule) -> FailureSlice:
    class_name, side = _class_of(one, dataset)
    name = SliceName(phrase=one.name, contrast=one.name, score=0.0, describer=METHOD)
    return FailureSlice(
        class_name=class_name, side=side, rule=rule, method=METHOD, found_on=NOWHERE, names=(name,)
    )


def _class_of(one: NamedSlice, dataset: Dataset) -> tuple[str, Side | None]:
    is_multi = dataset.task is Task.MULTI_LABEL
    if one.class_name in dataset.class_names:
        return one.class_name, Side.PRESENT if is_multi else None
    bare = one.class_name.removeprefix(ABSENT_PREFIX)
    if is_multi and bare in dataset.class_names:
        return bare, Side.ABSENT
    near = difflib.get_close_matches(one.class_name, dataset.class_names, n=1)
    hint = (
        f"Did you mean {near[0]!r}?" if near else f"Choose one of {list(dataset.class_names)[:20]}."
    )
    raise DataError(
        f"There is no class {one.class_name!r}.",
        where=f"[[slices]] {one.name}",
        given=one.class_name,
        fix=hint,
    )


COMPARISON_RULE = "regressions"
MANY_CHECKS = 10


def note_check(
    project: Project,
    data: AskedData,
    baseline: Baseline,
    policy: Policy,
    entries: Sequence[PolicyEntry],
) -> str:
    """Enter the comparisons of a check in the ledger of the samples, and return in words what is promised of which.

    Args:
        project: the project.
        data: the samples that were compared, with the predictions of now.
        baseline: with the predictions before.
        policy: the rules.
        entries: what became of the policy.
    """
    tests = _tests(data, baseline, policy, entries)
    if not tests:
        return ""
    try:
        n_checks = ledger_at(project.store, data, project.settings).note(tests, source="check")
    except (StoreError, OSError) as error:
        return f"This check could not be entered in the ledger, so it is not counted: {error}"
    return promise(n_checks, 1.0 - policy.judging.level)


def promise(n_checks: int, alpha: float) -> str:
    """Return what a check promises by itself, what is promised over everything, and how often it was done on these samples.

    >>> promise(1, 0.05).split(". ")[0]
    'This is the first model that these samples compare with a baseline'
    """
    counted = (
        "This is the first model that these samples compare with a baseline."
        if n_checks == 1
        else f"These samples have compared {n_checks:,} pairs of a model and a baseline by now."
    )
    expected = (
        f", so about {alpha * n_checks:.0f} in {n_checks:,} if nothing ever fell"
        if n_checks >= MANY_CHECKS
        else ""
    )
    return (
        f"{counted} Falls: each check has a chance of at most {percent(alpha)} of any false alarm{expected}; that is promised for "
        "each check, not for all of them together. Confirmed slices: that holds over everything these samples were asked about this model."
    )


def _tests(
    data: AskedData, baseline: Baseline, policy: Policy, entries: Sequence[PolicyEntry]
) -> list[AskedTest]:
    before = "" if baseline.predictions is None else baseline.predictions.model_dump_json()
    drop = 0.0 if policy.regressions is None else policy.regressions.max_drop
    pair = hashlib.sha256(f"{data.digest}\n{before}".encode()).hexdigest()
    return [
        AskedTest(
            key="fall "
            + hashlib.sha256(
                json.dumps([pair, entry.subject, entry.slice_id, entry.n_samples, drop]).encode()
            ).hexdigest()[:24],
            p_value=entry.p_value,
            about=f"fall: {entry.subject}",
        )
        for entry in entries
        if entry.rule == COMPARISON_RULE and entry.p_value is not None
    ]


ACCEPTED_RULE = "accepted"


class Acceptances:
    """The accepted slices of a policy on a day.

    Args:
        listed: the list.
        figures: what was measured; tells which slices there are and which of the baseline's they are.
        today: the day.
    """

    def __init__(self, listed: Sequence[AcceptedSlice], figures: Figures, today: date) -> None:
        self._listed = listed
        self._today = today
        self._names = _names(figures)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(
            slice_id
            for slice_id in self._names
            if (one := self._of(slice_id)) is not None and not self._is_over(one)
        )

    def applied(self, entry: PolicyEntry) -> PolicyEntry:
        if entry.verdict is not Ruling.VIOLATED:
            return entry
        one = self._of(entry.slice_id) if entry.slice_id else self._by_name({entry.subject})
        if one is None:
            return entry
        verdict, day = Ruling.ACCEPTED, one.until.isoformat()
        said = f"Accepted until {day}: {one.reason}.".replace("..", ".")
        if self._is_over(one):
            verdict = entry.verdict
            said = f"It was accepted until {day}, which is over ({one.reason})."
        told = {"verdict": verdict, "sentence": f"{entry.sentence} {said}"}
        return entry.model_copy(update=told)

    def entries(self) -> Iterator[PolicyEntry]:
        """Yield one entry a listed slice: violated once its day is over while the slice is still there."""
        for one in self._listed:
            day, verdict = one.until.isoformat(), Ruling.KEPT
            if not any(one.slice in names for names in self._names.values()):
                sentence = f"No slice is called “{one.slice}” any more; the entry can be removed."
            elif self._is_over(one):
                verdict = Ruling.VIOLATED
                sentence = f"“{one.slice}” was accepted until {day}, which is over: repair it, or decide anew ({one.reason})."
            else:
                sentence = f"“{one.slice}” is accepted until {day}: {one.reason}."
            yield PolicyEntry(
                rule=ACCEPTED_RULE,
                subject=one.slice,
                verdict=verdict,
                sentence=sentence.replace("..", "."),
            )

    def _of(self, slice_id: str) -> AcceptedSlice | None:
        return self._by_name(self._names.get(slice_id, {slice_id}))

    def _by_name(self, names: set[str]) -> AcceptedSlice | None:
        return next((one for one in self._listed if one.slice in names), None)

    def _is_over(self, one: AcceptedSlice) -> bool:
        return self._today > one.until


def _names(figures: Figures) -> Mapping[str, set[str]]:
    """Return by slice id (named slices: by name) all names that a slice goes by."""
    names: dict[str, set[str]] = {}
    for tally in figures.of(SubjectKind.SLICE, SubjectKind.NAMED):
        key = tally.slice_id or tally.subject
        names.setdefault(key, {key}).add(tally.subject)
    for pair in figures.pairs or ():
        if pair.slice_id:
            names.setdefault(pair.slice_id, {pair.slice_id}).add(pair.subject)
    for one in figures.sightings or ():
        names.setdefault(one.slice_id, {one.slice_id}).update(
            {one.subject, one.known_id, one.known_as} - {""}
        )
    return names


def judge_policy(policy: Policy, figures: Figures, *, today: date) -> tuple[PolicyEntry, ...]:
    """Return one entry a rule and subject.

    Args:
        policy: the rules.
        figures: what was measured.
        today: decides whether slices are still accepted.

    Raises:
        ConfigError: if a rule needs a baseline and there is none, or names a class that there is not.
    """
    _refuse_without_baseline(policy, figures)
    acceptances = Acceptances(policy.accepted, figures, today)
    known = replace(figures, judging=policy.judging, accepted=acceptances.ids)
    entries = [
        entry for name in policy.rules for entry in CHECKS[name](getattr(policy, name), known)
    ]
    return (*map(acceptances.applied, entries), *acceptances.entries())


CHECKS: dict[str, Callable[[Any, Figures], Iterator[PolicyEntry]]] = {
    "overall_accuracy": overall_accuracy,
    "class_accuracy": class_accuracy,
    "slice_accuracy": slice_accuracy,
    "slice_gap": slice_gap,
    "confirmed_slices": confirmed_slices,
    "failing_classes": failing_classes,
    "new_slices": new_slices,
    "regressions": regressions,
}
"""What judges a rule, by its key in the policy."""


def _refuse_without_baseline(policy: Policy, figures: Figures) -> None:
    wanted = [
        ("new_slices", policy.new_slices, figures.sightings),
        ("regressions", policy.regressions, figures.pairs),
    ]
    lacking = [name for name, rule, found in wanted if rule is not None and found is None]
    if lacking:
        raise ConfigError(
            f"The policy compares with a baseline ({', '.join(lacking)}), and there is none with what that needs.",
            fix="Give --baseline a project or a file that `weakspot check --write-baseline` wrote.",
        )


TESTED = (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED)


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """What is asked.

    Args:
        policy: the rules.
        policy_name: the policy file as outputs name it.
        run_id: the run to judge; empty for the one of the present samples, model and settings.
        baseline: what the run is compared with, if anything.
        may_run: whether a run may be made if there is none.
        today: the day, for accepted slices; the present one by default.
    """

    policy: Policy
    policy_name: str = ""
    run_id: str = ""
    baseline: Baseline | None = None
    may_run: bool = True
    today: date | None = None


def check(project: Project, request: CheckRequest) -> tuple[PolicyResult, RunRecord]:
    """Return what became of a policy, and the run that was judged; it is made first if there is none, computing only what is missing.

    Raises:
        StoreError: if there is no run and none may be made, or the run is not finished.
        DataError: if the baseline is of other classes or of other samples.
        ConfigError: if the policy names what there is not, or needs a baseline and there is none.
    """
    record = choose_run(project, request.run_id, may_run=request.may_run)
    figures = _Measuring(project=project, record=record, request=request).figures()
    entries = judge_policy(request.policy, figures, today=request.today or datetime.now(UTC).date())
    noted = (
        note_check(project, figures.compared_on, request.baseline, request.policy, entries)
        if figures.compared_on is not None and request.baseline is not None
        else ""
    )
    result = PolicyResult(
        run_id=record.run_id,
        started=record.started,
        classifier_id=record.inputs.get("classifier", ""),
        baseline_run_id="" if request.baseline is None else request.baseline.run.run_id,
        policy=request.policy_name,
        level=request.policy.judging.level,
        unsure_fails=request.policy.judging.when_unsure == "fail",
        entries=entries,
        notes=(*figures.notes, *filter(None, [noted])),
    )
    return result, record


@dataclass(frozen=True, kw_only=True, eq=False)
class _Measuring:
    """Everything that is measured for a policy; samples are only loaded if a rule reads them."""

    project: Project
    record: RunRecord
    request: CheckRequest

    def figures(self) -> Figures:
        tallies = [*recorded_tallies(self.record)]
        tested = [entry for entry in self.record.evidence if entry.verdict in TESTED]
        n_tested = max([len(tested), *(entry.n_tested for entry in tested)])
        correction = tested[0].correction if tested else "fdr"
        policy, baseline = self.request.policy, self.request.baseline
        if not policy.slices and (baseline is None or not policy.needs_baseline):
            return Figures(tallies=tuple(tallies), n_tested=n_tested, correction=correction)
        named, samples = self._named()
        rows = used_rows(samples, self.project.settings)
        tallies += [self._tally(found, samples.only(rows)) for found in named]
        alone = Figures(tallies=tuple(tallies), n_tested=n_tested, correction=correction)
        return self._compared(alone, named, samples)

    def _named(self) -> tuple[tuple[FailureSlice, ...], SampleSet]:
        policy = self.request.policy
        prepared = self.project.prepared(self.record)
        refuse_other_inputs(self.record, prepared.inputs)
        by_column = column_slices(policy.slices, prepared.samples.dataset)
        if by_column:
            wider = self.record.model_copy(update={"slices": (*self.record.slices, *by_column)})
            prepared = self.project.prepared(wider)
        by_phrase = phrase_slices(policy.slices, prepared.samples, prepared.assistants.embed_texts)
        by_name = {found.names[0].contrast: found for found in (*by_column, *by_phrase)}
        return tuple(by_name[one.name] for one in policy.slices), prepared.samples

    def _tally(self, found: FailureSlice, samples: SampleSet) -> Tally:
        problems = class_problems(samples.dataset, samples.rows, self._criterion)
        problem = next((one for one in problems if matches(found, one)), None)
        counts = [0, 0, 0, 0]
        if problem is not None:
            inside = members_of(found, samples, problem.rows)
            counts = [int(inside.sum()), int(problem.failed[inside].sum())]
            counts += [int((~inside).sum()), int(problem.failed[~inside].sum())]
        return Tally(
            subject=found.names[0].contrast,
            kind=SubjectKind.NAMED,
            n_samples=counts[0],
            n_failed=counts[1],
            n_outside=counts[2],
            failed_outside=counts[3],
        )

    def _compared(
        self, figures: Figures, named: tuple[FailureSlice, ...], samples: SampleSet
    ) -> Figures:
        """Return figures with what the baseline is needed for."""
        policy, baseline = self.request.policy, self.request.baseline
        if baseline is None or not policy.needs_baseline:
            return figures
        refuse_other_task(baseline, samples.dataset.class_names, self.record.criterion)
        now = held_out(self.record, samples, self.project.settings, self._criterion)
        rows, predictions = now
        if policy.new_slices is not None:
            same_at = policy.new_slices.same_at
            sightings = find_sightings(self.record, baseline, now, samples, same_at=same_at)
            figures = replace(figures, sightings=sightings)
        if policy.regressions is not None:
            members = tuple((found, members_of(found, samples, rows)) for found in named)
            groups = samples.dataset.groups[rows]
            pairs, notes = pair_samples(baseline, predictions, members, groups)
            compared_on = AskedData.of(samples.dataset, rows)
            figures = replace(figures, pairs=pairs, notes=notes, compared_on=compared_on)
        return figures

    @property
    def _criterion(self) -> FailureCriterion:
        return self.project.settings.failure.criterion()


def recorded_tallies(record: RunRecord) -> tuple[Tally, ...]:
    """Return what a record says of the whole, of classes and of published slices."""
    facts = record.classifier
    failing = {
        one.class_name
        for one in record.class_findings
        if one.kind is ClassFindingKind.WHOLE and one.is_confirmed
    }
    found: list[Tally] = []
    if facts is not None:
        found.append(
            Tally(
                subject="overall",
                kind=SubjectKind.OVERALL,
                n_samples=facts.n_samples,
                n_failed=facts.n_failed,
            )
        )
        found += [
            Tally(
                subject=title,
                kind=SubjectKind.CLASS,
                n_samples=n_samples,
                n_failed=n_failed,
                is_finding=title in failing,
            )
            for title, (n_samples, n_failed) in facts.per_class.items()
        ]
    found += [
        Tally(
            subject=one.title,
            kind=SubjectKind.SLICE,
            n_samples=entry.n_inside,
            n_failed=entry.failures_inside,
            n_outside=entry.n_outside,
            failed_outside=entry.failures_outside,
            slice_id=one.slice_id,
            is_finding=entry.explained is None,
        )
        for one, entry in record.published()
    ]
    return tuple(found)


def write_outputs(
    result: PolicyResult,
    *,
    junit: Path | None = None,
    sarif: Path | None = None,
    markdown: Path | None = None,
) -> tuple[Path, ...]:
    """Write the files that are asked for, each in one step, and return them.

    Raises:
        StoreError: if a file cannot be written.
    """
    made = (
        (junit, junit_xml),
        (sarif, partial(sarif_json, version=__version__)),
        (markdown, markdown_comment),
    )
    asked = [(path, content_of) for path, content_of in made if path is not None]
    for path, content_of in asked:
        write_file(path, content_of(result).encode(), what="The file")
    return tuple(path for path, _ in asked)
