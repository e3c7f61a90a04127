"""A person's rule, such as a value of a column, put to held-out samples; entered in the ledger like every other question."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.class_embeddings import obstacle
from weakspot.core.error_score import score_at
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.group_tests import group_p
from weakspot.core.groups import several_to_a_group
from weakspot.core.questions import QuestionKeys
from weakspot.core.rules import Rule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.discover.hypothesis import HypothesisDiscoverer
from weakspot.pipeline.ledger import Answer, AskedTest, Ledger
from weakspot.pipeline.phrase_answers import (
    AskResult,
    HalfAnswer,
    PhraseAnswer,
)
from weakspot.pipeline.phrase_judgement import RULE, judge
from weakspot.verify.holdout import fresh_samples

INSIDE = 0.5


class RuleHalf:
    """The samples of a class on one half, ready to be asked which of them a rule means.

    Args:
        samples: the half.
        criterion: what counts as a failure.
        title: the class, as problems call it.
        method: whose settings hold.
        seen: samples that were looked at before; those that are among them are left out.
    """

    def __init__(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        title: str,
        method: HypothesisDiscoverer,
        *,
        seen: SampleSet | None = None,
    ) -> None:
        self.use = DataUse.of(samples)
        self.samples = (
            samples if seen is None else fresh_samples((), discovery=seen, confirmation=samples)
        )
        self.problem = problem_of(self.samples, criterion, title)
        note = obstacle(self.problem, min_failures=method.min_failures, min_right=method.min_right)
        if note:
            raise NotEnoughDataError(note, where=f"{title}, {samples.name}")

    def meant(self, rule: Rule) -> tuple[ClassProblem, BoolArray]:
        """Return the samples of which it can be said whether they are meant, and which are [n]."""
        known = self.problem.only(
            np.flatnonzero(rule.is_known(self.samples, self.problem.rows)),
        )
        return known, rule.members(self.samples, known.rows)

    def answer(self, rule: Rule) -> HalfAnswer:
        known, inside = self.meant(rule)
        score = score_at(inside.astype(np.float64), known.failed, INSIDE)
        return HalfAnswer(
            samples=self.use,
            error_score=score,
            best_score=score,
            best_p=group_p(inside, known.failed, known.groups),
            inside=Share.of(int(known.failed[inside].sum()), int(inside.sum())),
            outside=Share.of(int(known.failed[~inside].sum()), int((~inside).sum())),
        )

    def question(self, rule: Rule, about: str) -> AskedTest:
        known, inside = self.meant(rule)
        dataset = self.samples.dataset
        groups = several_to_a_group(dataset.groups[known.rows])
        key = QuestionKeys(dataset).key(
            known.title, known.rows, inside, known.failed, groups=groups
        )
        return AskedTest(key=key, p_value=group_p(inside, known.failed, groups), about=about)


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleHalves:
    """The samples of a class on both halves.

    Args:
        discovery: what people may look at.
        confirmation: what every question to counts.
    """

    discovery: RuleHalf
    confirmation: RuleHalf

    @classmethod
    def of(
        cls,
        halves: tuple[SampleSet, SampleSet],
        criterion: FailureCriterion,
        title: str,
        method: HypothesisDiscoverer,
    ) -> "RuleHalves":
        return cls(
            discovery=RuleHalf(halves[0], criterion, title, method),
            confirmation=RuleHalf(halves[1], criterion, title, method, seen=halves[0]),
        )


def ask_rules(
    both: RuleHalves, rules: Mapping[str, Rule], ledger: Ledger, *, by: str = ""
) -> AskResult:
    """Put rules to the confirmation half of a class, and write down that it was done.

    Args:
        both: the samples of the class.
        rules: what is asked, by the person's words.
        ledger: of the samples.
        by: who asks; empty for the command line.
    """
    title = both.confirmation.problem.title
    tests = [
        both.confirmation.question(rule, f"{title}: {phrase}") for phrase, rule in rules.items()
    ]
    said = ledger.ask(tests, source="hypothesis", by=by)
    answers = tuple(
        _answer(phrase, rule, both, test, answer)
        for (phrase, rule), test, answer in zip(rules.items(), tests, said, strict=True)
    )
    standing = ledger.standing()
    return AskResult(answers=answers, n_looks=standing.n_questions, left=standing.sentence)


def _answer(
    phrase: str, rule: Rule, both: RuleHalves, test: AskedTest, said: Answer
) -> PhraseAnswer:
    discovery, confirmation = both.discovery.answer(rule), both.confirmation.answer(rule)
    halves = (discovery, confirmation)
    n_inside = sum(half.inside.total for half in halves)
    matching = Share.of(n_inside, n_inside + sum(half.outside.total for half in halves))
    judged = judge(
        separates=said.is_found,
        matching=matching,
        inside=confirmation.inside,
        outside=confirmation.outside,
        wording=RULE,
    )
    return PhraseAnswer(
        class_name=both.discovery.problem.title,
        phrase=phrase,
        threshold=None,
        discovery=discovery,
        confirmation=confirmation,
        p_value=test.p_value,
        p_after_looks=said.q_value,
        matching=matching,
        fit=judged.fit,
        advice=judged.advice,
        compared_with="columns",
        rule=rule.sentence,
    )


def problem_of(samples: SampleSet, criterion: FailureCriterion, title: str) -> ClassProblem:
    problems = class_problems(samples.dataset, samples.rows, criterion)
    for problem in problems:
        if problem.title == title:
            return problem
    raise DataError(
        f"There is no class {title!r} with samples to look at.",
        where=samples.name,
        given=title,
        fix=f"Choose one of {[problem.title for problem in problems]}.",
    )
