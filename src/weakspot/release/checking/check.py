"""A policy put to a run of a project, and its result as files for other programs."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np

from weakspot import __version__
from weakspot.core.class_findings import ClassFindingKind
from weakspot.core.errors import StoreError
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.pipeline.asked_data import AskedData
from weakspot.pipeline.halves import used_rows
from weakspot.project.project import Project
from weakspot.release.baseline import Baseline
from weakspot.release.checking.held_out import HeldOut, find_sightings, held_out
from weakspot.release.checking.named_slices import column_slices, members_of, phrase_slices
from weakspot.release.checking.noting import note_check
from weakspot.release.checking.runs import choose_run, refuse_other_inputs, refuse_other_task
from weakspot.release.figures import Figures, Sighting, SubjectKind, Tally
from weakspot.release.judging import judge_policy
from weakspot.release.junit import junit_xml
from weakspot.release.markdown import markdown_comment
from weakspot.release.pairing import NamedMembers, Pairing, pair_samples
from weakspot.release.policy import Policy
from weakspot.release.result import PolicyResult
from weakspot.release.sarif import sarif_json
from weakspot.store import atomic

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


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What came of it.

    Args:
        result: what became of the policy.
        record: the run that was judged.
    """

    result: PolicyResult
    record: RunRecord


def check(project: Project, request: CheckRequest) -> Checked:
    """Judge a run of a project by a policy; the run is made first if there is none, and computes only what is missing.

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
    return Checked(result=result, record=record)


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
        if not self._reads_samples:
            return Figures(tallies=tuple(tallies), n_tested=n_tested, correction=correction)
        named, samples = self._named()
        rows = used_rows(samples, self.project.settings)
        tallies += [self._tally(found, samples.only(rows)) for found in named]
        sightings, pairing = self._compare(named, samples)
        return Figures(
            tallies=tuple(tallies),
            n_tested=n_tested,
            correction=correction,
            sightings=sightings,
            pairs=None if pairing is None else pairing.pairing.pairs,
            notes=() if pairing is None else _notes(pairing.pairing),
            compared_on=None if pairing is None else pairing.data,
        )

    @property
    def _reads_samples(self) -> bool:
        return bool(self.request.policy.slices) or (
            self.request.baseline is not None and self.request.policy.needs_baseline
        )

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

    def _compare(
        self, named: tuple[FailureSlice, ...], samples: SampleSet
    ) -> "tuple[tuple[Sighting, ...] | None, _Paired | None]":
        policy, baseline = self.request.policy, self.request.baseline
        if baseline is None or not policy.needs_baseline:
            return None, None
        refuse_other_task(baseline, samples.dataset.class_names, self.record.criterion)
        now = held_out(self.record, samples, self.project.settings, self._criterion)
        sightings, pairing = None, None
        if policy.new_slices is not None:
            sightings = find_sightings(
                self.record, baseline, now, samples, same_at=policy.new_slices.same_at
            )
        if policy.regressions is not None:
            found = pair_samples(
                baseline,
                now.predictions,
                _named_members(named, samples, now),
                samples.dataset.groups[now.rows],
            )
            pairing = _Paired(pairing=found, data=AskedData.of(samples.dataset, now.rows))
        return sightings, pairing

    @property
    def _criterion(self) -> FailureCriterion:
        return self.project.settings.failure.criterion()


@dataclass(frozen=True, kw_only=True)
class _Paired:
    """Two classifiers' predictions beside each other, and the samples that they are of."""

    pairing: Pairing
    data: AskedData


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
    return (*found, *_slice_tallies(record))


def _slice_tallies(record: RunRecord) -> tuple[Tally, ...]:
    return tuple(
        Tally(
            subject=found.title,
            kind=SubjectKind.SLICE,
            n_samples=entry.n_inside,
            n_failed=entry.failures_inside,
            n_outside=entry.n_outside,
            failed_outside=entry.failures_outside,
            slice_id=found.slice_id,
            also_called=found.plain_title,
            is_finding=entry.explained is None,
        )
        for found, entry in record.published()
    )


def _named_members(
    named: tuple[FailureSlice, ...], samples: SampleSet, now: HeldOut
) -> tuple[NamedMembers, ...]:
    return tuple(
        NamedMembers(found=found, members=np.asarray(members_of(found, samples, now.rows)))
        for found in named
    )


def _notes(pairing: Pairing) -> tuple[str, ...]:
    notes = [
        f"{pairing.n_shared} of {pairing.n_now} held-out samples are in the baseline too; only these are compared with it."
    ]
    if pairing.n_relabelled:
        notes.append(f"{pairing.n_relabelled} of them have another label now and are left out.")
    return tuple(notes)


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
    contents = (
        (junit, junit_xml(result) if junit is not None else ""),
        (sarif, sarif_json(result, version=__version__) if sarif is not None else ""),
        (markdown, markdown_comment(result) if markdown is not None else ""),
    )
    written: list[Path] = []
    for path, content in contents:
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_bytes(path, content.encode())
        except OSError as error:
            raise StoreError(
                f"The file cannot be written: {error.strerror}.", where=str(path)
            ) from error
        written.append(path)
    return tuple(written)
