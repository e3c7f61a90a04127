"""A person's phrase, answered at once: how well it separates failures where its threshold was chosen, and on held-out samples.

Every phrase asked is entered in the ledger, and what is said of it is read off it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, FloatArray, unit_rows
from weakspot.core.assistants import LEAST_TRUST, EmbedTexts, TrustPhrases
from weakspot.core.class_embeddings import obstacle, with_embeddings
from weakspot.core.error_score import error_score_null, error_scores, score_at
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, FailureCriterion
from weakspot.core.group_tests import effective_number, group_p
from weakspot.core.questions import QuestionKeys
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse
from weakspot.discover.hypothesis import HypothesisDiscoverer, as_phrases, class_noun
from weakspot.lexicon.captions import counted
from weakspot.lexicon.paraphrases import addition_of, parts_of
from weakspot.lexicon.spoken_rules import spoken_rule
from weakspot.pipeline.ledger import Answer, AskedTest, Ledger
from weakspot.pipeline.phrase_answers import (
    CERTAIN,
    AskResult,
    Fit,
    HalfAnswer,
    PhraseAnswer,
    Question,
)
from weakspot.pipeline.phrase_judgement import judge
from weakspot.pipeline.preparation import Prepared
from weakspot.pipeline.rule_hypotheses import RuleHalves, ask_rules, problem_of
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.verdicts import open_ledger
from weakspot.pipeline.wiring import build_part
from weakspot.store.project import ProjectStore
from weakspot.verify.holdout import fresh_samples

ALIGN = " Or learn to compare words with the embeddings: weakspot lab align."
NOT_MEASURED = "Nobody measured how well these words are told: look at the images."
FEWEST_SHUFFLES = 100
MOST_SHUFFLED = 50_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class TextSide:
    """Phrases to embeddings, and how well they are known.

    Args:
        embed: phrases to unit vectors [m, d].
        trust: phrases to how well each is known [m]; None if that cannot be said.
        measured: words to the area under the curve with which each told held-out images [m]; None if nothing was measured.
    """

    embed: EmbedTexts
    trust: TrustPhrases | None = None
    measured: TrustPhrases | None = None

    def is_measured(self, phrase: str, problem: ClassProblem) -> bool:
        """Return whether what a phrase adds to a class was measured; True of a text side of which nothing was."""
        added = addition_of(phrase, class_noun(problem))
        found = None if self.measured is None else self.measured([added])
        return found is None or bool(np.isfinite(found[0]))

    def known(self, phrase: str, problem: ClassProblem) -> float | None:
        """Return how well what a phrase adds to a class is known, from 0 to 1; None if that cannot be said."""
        added = addition_of(phrase, class_noun(problem))
        found = None if self.trust is None else self.trust([added])
        return None if found is None else float(found[0])


class PhraseHalf:
    """The samples of a class on one half, ready to be compared with phrases.

    Args:
        samples: the half.
        criterion: what counts as a failure.
        title: the class, as problems call it.
        method: whose settings hold.
        seen: samples that were looked at before; images that are among them, and repeated ones, are left out.
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
        fresh = samples if seen is None else fresh_samples((), discovery=seen, confirmation=samples)
        problem = problem_of(fresh, criterion, title)
        known, raw = with_embeddings(fresh, problem, method.space)
        note = obstacle(known, min_failures=method.min_failures, min_right=method.min_right)
        if note:
            raise NotEnoughDataError(note, where=f"{problem.title}, {samples.name}")
        self.problem: ClassProblem = known
        self.dataset = fresh.dataset
        self.embeddings: FloatArray = unit_rows(raw)

    def answer(
        self, phrase: FloatArray, cut: float, draws: np.random.Generator, n_shuffles: int
    ) -> HalfAnswer:
        """Measure a phrase embedding [d], with the given threshold and with the best one of this half."""
        similarities, failed = phrase[None] @ self.embeddings.T, self.problem.failed
        best = error_scores(similarities, failed)
        n_most, groups = MOST_SHUFFLED // max(len(failed), 1), self.problem.groups
        n_shuffles = min(n_shuffles, max(FEWEST_SHUFFLES, n_most))
        null = error_score_null(
            similarities, failed, n_permutations=n_shuffles, generator=draws, groups=groups
        )
        exact = similarities[0].astype(np.float64)
        inside: BoolArray = exact >= cut
        worth = effective_number(groups, inside), effective_number(groups, ~inside)
        return HalfAnswer(
            samples=self.use,
            error_score=score_at(exact, failed, cut),
            best_score=float(best.score[0]),
            best_p=float(null.p_value[0]),
            inside=Share.of(int(failed[inside].sum()), int(inside.sum()), effective=worth[0]),
            outside=Share.of(int(failed[~inside].sum()), int((~inside).sum()), effective=worth[1]),
        )

    def question(self, phrase: FloatArray, cut: float, about: str) -> AskedTest:
        """Return what is asked with a phrase embedding [d] and a threshold, and what these samples say."""
        inside = (phrase[None] @ self.embeddings.T)[0].astype(np.float64) >= cut
        problem, groups = self.problem, self.problem.groups
        key = QuestionKeys(self.dataset).key(
            problem.title, problem.rows, inside, problem.failed, groups=groups
        )
        p_value = group_p(inside, problem.failed, groups)
        return AskedTest(key=key, p_value=p_value, about=about)

    def threshold(self, phrase: FloatArray) -> float:
        return float(
            error_scores(phrase[None] @ self.embeddings.T, self.problem.failed).threshold[0]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassHalves:
    """The samples of a class on both halves.

    Args:
        discovery: where thresholds are chosen.
        confirmation: what every question to counts; without images that the discovery half has too, as evidence is measured.
        method: whose templates and shuffles hold.
    """

    discovery: PhraseHalf
    confirmation: PhraseHalf
    method: HypothesisDiscoverer

    @classmethod
    def of(
        cls,
        halves: tuple[SampleSet, SampleSet],
        criterion: FailureCriterion,
        title: str,
        method: HypothesisDiscoverer,
    ) -> "ClassHalves":
        return cls(
            discovery=PhraseHalf(halves[0], criterion, title, method),
            confirmation=PhraseHalf(halves[1], criterion, title, method, seen=halves[0]),
            method=method,
        )


def hypothesis_method(
    settings: Settings, phrases: Mapping[str, Sequence[str]] | None = None
) -> HypothesisDiscoverer:
    """Return the method `hypothesis` as it is configured, for other phrases than the configured ones."""
    given: dict[str, JsonValue] = {name: [*listed] for name, listed in (phrases or {}).items()}
    options: dict[str, JsonValue] = {
        **settings.discover.parameters.get("hypothesis", {}),
        "phrases": given,
    }
    method: HypothesisDiscoverer = build_part(
        "discoverers", "hypothesis", options, where="[discover] parameters.hypothesis"
    )
    return method


def ask(
    prepared: Prepared,
    settings: Settings,
    criterion: FailureCriterion,
    store: ProjectStore,
    *,
    class_name: str,
    phrases: Sequence[str],
) -> AskResult:
    """Put phrases to the samples of a class, and write down that it was done.

    Args:
        prepared: the project's samples and models.
        settings: the project's settings; templates and shuffles are those of the method `hypothesis`.
        criterion: what counts as a failure.
        store: the project folder, where the ledger is kept.
        class_name: the class; `no apple` for samples of a multi-label task that lack a label.
        phrases: a person's words: values of columns, words of captions, or what images show.
    """
    wanted = tuple(dict.fromkeys(as_phrases(phrases)))
    if not wanted:
        raise ConfigError(
            "No phrase was given.",
            fix='Say what failures have in common, for example "on a shelf".',
        )
    embed = prepared.assistants.embed_texts
    dataset = prepared.samples.dataset
    advice = ALIGN if prepared.samples.spaces else ""
    spoken = {
        phrase: spoken_rule(phrase, dataset, has_text_side=embed is not None, advice=advice)
        for phrase in wanted
    }
    rules = {phrase: rule for phrase, rule in spoken.items() if rule is not None}
    method = hypothesis_method(settings, {class_name: wanted})
    halves = prepared.halves(settings, criterion)[0]
    ledger = open_ledger(store, prepared.samples, settings)
    reports = []
    if rules:
        both_rules = RuleHalves.of(halves, criterion, class_name, method)
        reports.append(ask_rules(both_rules, rules, ledger))
    questions = [Question(phrase=phrase) for phrase in wanted if phrase not in rules]
    if questions and embed is not None:
        both = ClassHalves.of(halves, criterion, class_name, method)
        helping = prepared.assistants
        text_side = TextSide(embed=embed, trust=helping.trust, measured=helping.measured)
        reports.append(asked(both, questions, text_side, ledger, seed=settings.seed))
    known = {answer.phrase: answer for report in reports for answer in report.answers}
    answers = tuple(known[phrase] for phrase in wanted)
    return reports[-1].model_copy(update={"answers": answers})


def asked(
    both: ClassHalves,
    questions: Sequence[Question],
    text_side: TextSide,
    ledger: Ledger,
    *,
    seed: int,
    by: str = "",
) -> AskResult:
    """Put questions to the confirmation half of a class, and write down that it was done.

    Args:
        both: the samples of the class.
        questions: what is asked.
        text_side: phrases to embeddings, and how well they are known.
        ledger: of the samples.
        seed: seed of the run.
        by: who asks; empty for the command line.
    """
    title = both.discovery.problem.title
    phrases = {one.phrase for one in questions}
    embeddings = both.method.phrase_directions(phrases, text_side.embed, both.discovery.problem)
    cuts = [
        both.discovery.threshold(embeddings[one.phrase]) if one.threshold is None else one.threshold
        for one in questions
    ]
    tests = [
        both.confirmation.question(embeddings[one.phrase], cut, f"{title}: {one.phrase}")
        for one, cut in zip(questions, cuts, strict=True)
    ]
    said = ledger.ask(tests, source="hypothesis", by=by)
    answers = tuple(
        _answer(one.phrase, cut, embeddings[one.phrase], both, text_side, test, answer, seed)
        for one, cut, test, answer in zip(questions, cuts, tests, said, strict=True)
    )
    standing = ledger.standing()
    return AskResult(answers=answers, n_looks=standing.n_questions, left=standing.sentence)


def _answer(  # noqa: PLR0913, PLR0917 - what was asked, of whom, and what was said
    phrase: str,
    threshold: float,
    embedding: FloatArray,
    both: ClassHalves,
    text_side: TextSide,
    test: AskedTest,
    said: Answer,
    seed: int,
) -> PhraseAnswer:
    n_shuffles = max(both.method.n_permutations, 1)
    measured = [
        half.answer(
            embedding,
            threshold,
            generator(seed, "hypothesis", half.problem.title, name),
            n_shuffles,
        )
        for half, name in ((both.discovery, "discovery"), (both.confirmation, "confirmation"))
    ]
    words = unit_rows(
        np.asarray(
            text_side.embed(matching_prompts(phrase, both.discovery.problem)), dtype=np.float32
        )
    )
    matching = share_matching(
        np.concatenate([half.embeddings @ words.T for half in (both.discovery, both.confirmation)])
    )
    trust = text_side.known(phrase, both.discovery.problem)
    separates_anything = measured[0].error_score > 0
    judged = judge(
        separates=said.is_found,
        matching=matching,
        inside=measured[1].inside if separates_anything else None,
        outside=measured[1].outside if separates_anything else None,
        trust=trust,
    )
    tries = () if said.is_found else better_parts(phrase, measured[0], both, text_side, seed)
    advice = f"{judged.advice} Try: {', '.join(tries)}." if tries else judged.advice
    if judged.fit is not Fit.CANNOT_TELL and not text_side.is_measured(
        phrase, both.discovery.problem
    ):
        advice = f"{advice} {NOT_MEASURED}"
    return PhraseAnswer(
        class_name=both.discovery.problem.title,
        phrase=phrase,
        threshold=threshold if np.isfinite(threshold) else None,
        discovery=measured[0],
        confirmation=measured[1],
        p_value=test.p_value,
        p_after_looks=said.q_value,
        matching=matching,
        fit=judged.fit,
        advice=advice,
        trust=trust,
        tries=tries,
    )


def better_parts(
    phrase: str, whole: HalfAnswer, both: ClassHalves, text_side: TextSide, seed: int
) -> tuple[str, ...]:
    """Return the single words of a phrase that separate failures of the discovery half better than the whole, best first.

    Only the discovery half is looked at, so nothing is asked of the ledger.
    """
    half, method = both.discovery, both.method
    parts = parts_of(phrase, class_noun(half.problem))
    directions = method.phrase_directions(parts, text_side.embed, half.problem)
    found: list[tuple[float, str]] = []
    for part, direction in directions.items():
        draws = generator(seed, "hypothesis", half.problem.title, "discovery", part)
        shuffles = max(method.n_permutations, 1)
        said = half.answer(direction, half.threshold(direction), draws, shuffles)
        trust = text_side.known(part, half.problem)
        is_known = trust is None or trust >= LEAST_TRUST
        is_clear = said.best_p * len(parts) <= CERTAIN
        if is_known and is_clear and said.error_score > whole.error_score:
            found.append((-said.error_score, part))
    return tuple(part for _, part in sorted(found))


def matching_prompts(phrase: str, problem: ClassProblem) -> tuple[str, str]:
    noun = class_noun(problem)
    plain = f"an image of {counted(noun, noun)}" if noun else "an image"
    return f"{plain}, {addition_of(phrase, noun)}", plain


def share_matching(similarities: FloatArray) -> Share:
    """Return how many samples a phrase fits: adding it to the class brings the words nearer.

    Args:
        similarities: [n, 2] of samples with the two prompts of `matching_prompts`.
    """
    return Share.of(int((similarities[:, 0] > similarities[:, 1]).sum()), len(similarities))
