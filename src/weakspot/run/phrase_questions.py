"""A person's phrase or rule, answered at once on held-out samples: how well it separates failures, and what may be said of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from math import sqrt
from typing import Literal

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, FloatArray, generator, unit_rows
from weakspot.core.assistants import MIN_TRUST, Assistants, EmbedTexts, TrustPhrases
from weakspot.core.dataset import several_to_a_group
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.group_tests import effective_number, group_p
from weakspot.core.questions import QuestionKeys
from weakspot.core.record import Record
from weakspot.core.rules import Rule
from weakspot.core.samples import SampleSet, obstacle, with_embeddings
from weakspot.core.slices import DataUse
from weakspot.core.statistics import fisher_p
from weakspot.discover.error_score import error_score_null, error_scores, score_at
from weakspot.discover.hypothesis import HypothesisDiscoverer, as_phrases, class_noun
from weakspot.run.ledger import Answer, AskedTest, Ledger
from weakspot.run.preparation import Prepared
from weakspot.run.settings import Settings
from weakspot.run.verdicts import open_ledger
from weakspot.run.wiring import build_part
from weakspot.store.project import ProjectStore
from weakspot.verify.holdout import fresh_samples
from weakspot.words.caption_rule import spoken_rule
from weakspot.words.captions import counted
from weakspot.words.meanings import addition_of, parts_of

CERTAIN = 0.05


class Fit(StrEnum):
    """What became of a phrase."""

    GOOD = "good"
    SEPARATES_ONLY = "separates but does not match"
    MATCHES_ONLY = "matches but does not separate"
    CANNOT_TELL = "cannot tell"


class HalfAnswer(Record):
    """A phrase on one half of the samples.

    Args:
        samples: which half.
        error_score: with the threshold of the discovery half; on that half it is the best one.
        best_score: with the threshold that is best here.
        best_p: chance of such a best score when predictions are shuffled.
        inside: failures among the samples above the discovery half's threshold.
        outside: failures among the others.
    """

    samples: DataUse
    error_score: float
    best_score: float
    best_p: float
    inside: Share
    outside: Share


class PhraseAnswer(Record):
    """What is known of a phrase.

    Args:
        class_name: the class, as problems call it.
        phrase: the person's words.
        threshold: similarity from which on a sample is meant, chosen on the discovery half; None if none is better than guessing.
        discovery: where the threshold was chosen.
        confirmation: samples that took no part in it.
        p_value: Fisher's exact test on the confirmation half: that samples above the threshold fail no more often.
        p_after_looks: error rate, over everything that these samples were ever asked, at which it would just be a finding.
        matching: samples of both halves that are nearer to the class with the phrase than to the class alone.
        fit: what became of it.
        advice: what to do next, in words.
        compared_with: what the words were compared with.
        rule: who is meant, in a sentence; empty for what is similar to the words.
        trust: how well the text side knows the words, from 0 to 1; None if it cannot say.
        tries: parts of the phrase that separate failures of the discovery half where the whole does not.
    """

    class_name: str
    phrase: str
    threshold: float | None
    discovery: HalfAnswer
    confirmation: HalfAnswer
    p_value: float
    p_after_looks: float
    matching: Share
    fit: Fit
    advice: str
    compared_with: Literal["embeddings", "columns"] = "embeddings"
    rule: str = ""
    trust: float | None = None
    tries: tuple[str, ...] = ()


class AskResult(Record):
    """Answers to the phrases asked now.

    Args:
        answers: in the order of the phrases.
        n_looks: different questions that these samples were asked so far, these ones among them.
        left: in words, what was asked and what a further question would need.
    """

    answers: tuple[PhraseAnswer, ...]
    n_looks: int
    left: str = ""


MIN_MATCHING = 0.02
MIN_SAMPLES = 5
MAX_OVERLOOKED = 0.2


@dataclass(frozen=True, kw_only=True)
class Wording:
    """How the answers are put.

    Args:
        good: fits and separates.
        separates_only: separates, and hardly any sample fits.
        matches_only: fits and does not separate.
        few_match: cannot tell because hardly any sample fits; with {count} and {total}.
        what: what the samples inside are called.
    """

    good: str
    separates_only: str
    matches_only: str
    few_match: str
    what: str


PHRASE = Wording(
    good="Samples above the threshold fail more often, also those that took no part in choosing it.",
    separates_only="It separates failures, but {count} of {total} images look like these words to the encoder, so it may go by "
    "something else: look at the images above the threshold and say what they show.",
    matches_only="Images with this are found, but on held-out samples they do not fail clearly more often{bound}: think of "
    "something else that sets failures apart.",
    few_match="To the encoder {count} of {total} samples look like these words, too few to say whether they fail more often: "
    "say the same in other words (`red square` or `crimson` for `red`).",
    what="held-out samples above the threshold",
)
RULE = Wording(
    good="Such samples fail more often, on the held-out half too.",
    separates_only="Such samples fail more often, but there are hardly any: {count} of {total}.",
    matches_only="There are such samples, but held-out ones do not fail clearly more often{bound}: think of something else that "
    "sets failures apart.",
    few_match="{count} of {total} samples of the class are meant by this, too few to say whether they fail more often: ask for a "
    "more frequent value, or for fewer at once.",
    what="such held-out samples",
)


def matches(matching: Share) -> bool:
    """Return whether enough samples fit a phrase to speak of them."""
    return matching.count >= MIN_SAMPLES and matching.value >= MIN_MATCHING


def judge(
    *,
    separates: bool,
    matching: Share,
    inside: Share | None,
    outside: Share | None,
    trust: float | None = None,
    wording: Wording = PHRASE,
) -> tuple[Fit, str]:
    """Say what is known of a phrase, nothing stronger, and what to do next in words.

    Args:
        separates: whether it is a finding.
        matching: samples that the phrase fits.
        inside: failures among held-out samples above the threshold; None if no threshold is better than guessing.
        outside: failures among the others.
        trust: how well the text side knows the words; None if it cannot say.
        wording: how the answers are put.
    """
    counts = {"count": matching.count, "total": matching.total}
    is_known = trust is None or trust >= MIN_TRUST
    if separates and matches(matching) and is_known:
        return Fit.GOOD, wording.good
    if separates:
        return Fit.SEPARATES_ONLY, wording.separates_only.format(**counts)
    reason = "" if is_known else unknown_words(trust or 0.0)
    reason = reason or ("" if matches(matching) else wording.few_match.format(**counts))
    bound = ""
    if inside is not None and outside is not None and not reason:
        reason = _too_few(inside, outside, wording.what)
        bound = f" ({100 * largest_difference(inside, outside):.0f} points at most, at 95 %)"
    if reason:
        return Fit.CANNOT_TELL, reason
    return Fit.MATCHES_ONLY, wording.matches_only.format(bound=bound)


def unknown_words(trust: float) -> str:
    return (
        f"The text side does not know these words well enough to say (trust {trust:.2f} of 1, {MIN_TRUST} is needed): say it in "
        "plainer words, or ask for a value of a column."
    )


def largest_difference(inside: Share, outside: Share) -> float:
    """Return the upper end of Newcombe's interval of how much more often samples inside fail."""
    above, below = inside.interval.high - inside.value, outside.value - outside.interval.low
    return inside.value - outside.value + sqrt(above**2 + below**2)


def _too_few(inside: Share, outside: Share, what: str) -> str:
    n_failed = inside.count + outside.count
    most = min(inside.total, n_failed)
    if fisher_p(most, inside.total, n_failed - most, outside.total) > CERTAIN:
        return f"There are {inside.total} {what}: even if all of them failed, that would prove nothing. Ask again with more samples."
    largest = largest_difference(inside, outside)
    if largest > MAX_OVERLOOKED:
        return (
            f"The {inside.total} {what} fail {100 * inside.value:.0f} %, the others {100 * outside.value:.0f} %: no difference is "
            f"proven, and up to {100 * largest:.0f} points cannot be ruled out with so few."
        )
    return ""


INSIDE = 0.5
MIN_SHUFFLES = 100
MAX_SHUFFLED = 50_000_000


class ClassHalf:
    """The samples of a class on one half, ready to be asked which of them a rule or a phrase means.

    Args:
        samples: the half.
        criterion: what counts as a failure.
        title: the class, as problems call it.
        method: whose settings hold.
        seen: samples that were looked at before; images that are among them, and repeated ones, are left out.
        is_compared: whether the samples are to be compared with phrases; those without an embedding are left out then.
    """

    def __init__(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        title: str,
        method: HypothesisDiscoverer,
        *,
        seen: SampleSet | None = None,
        is_compared: bool = False,
    ) -> None:
        self.use = DataUse.of(samples)
        self.samples = (
            samples if seen is None else fresh_samples((), discovery=seen, confirmation=samples)
        )
        self.problem = problem_of(self.samples, criterion, title)
        self.embeddings: FloatArray = np.zeros((0, 0), dtype=np.float32)
        if is_compared:
            self.problem, raw = with_embeddings(self.samples, self.problem, method.space)
            self.embeddings = unit_rows(raw)
        note = obstacle(self.problem, min_failures=method.min_failures, min_right=method.min_right)
        if note:
            raise NotEnoughDataError(note, where=f"{title}, {samples.name}")

    def meant(self, rule: Rule) -> tuple[ClassProblem, BoolArray]:
        """Return the samples of which it can be said whether they are meant, and which are [n]."""
        known = self.problem.only(
            np.flatnonzero(rule.is_known(self.samples, self.problem.rows)),
        )
        return known, rule.members(self.samples, known.rows)

    def rule_answer(self, rule: Rule) -> HalfAnswer:
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

    def answer(
        self, phrase: FloatArray, cut: float, draws: np.random.Generator, n_shuffles: int
    ) -> HalfAnswer:
        """Measure a phrase embedding [d], with the given threshold and with the best one of this half."""
        similarities, failed = phrase[None] @ self.embeddings.T, self.problem.failed
        best = error_scores(similarities, failed)
        n_most, groups = MAX_SHUFFLED // max(len(failed), 1), self.problem.groups
        n_shuffles = min(n_shuffles, max(MIN_SHUFFLES, n_most))
        chances, _ = error_score_null(
            similarities, failed, n_permutations=n_shuffles, generator=draws, groups=groups
        )
        exact = similarities[0].astype(np.float64)
        inside: BoolArray = exact >= cut
        worth = effective_number(groups, inside), effective_number(groups, ~inside)
        return HalfAnswer(
            samples=self.use,
            error_score=score_at(exact, failed, cut),
            best_score=float(best.score[0]),
            best_p=float(chances[0]),
            inside=Share.of(int(failed[inside].sum()), int(inside.sum()), effective=worth[0]),
            outside=Share.of(int(failed[~inside].sum()), int((~inside).sum()), effective=worth[1]),
        )

    def rule_question(self, rule: Rule, about: str) -> AskedTest:
        """Return what is asked with a rule, and what these samples say."""
        known, inside = self.meant(rule)
        return self._question(known, inside, about)

    def question(self, phrase: FloatArray, cut: float, about: str) -> AskedTest:
        """Return what is asked with a phrase embedding [d] and a threshold, and what these samples say."""
        inside = (phrase[None] @ self.embeddings.T)[0].astype(np.float64) >= cut
        return self._question(self.problem, inside, about)

    def _question(self, problem: ClassProblem, inside: BoolArray, about: str) -> AskedTest:
        dataset = self.samples.dataset
        groups = several_to_a_group(dataset.groups[problem.rows])
        key = QuestionKeys(dataset).key(
            problem.title, problem.rows, inside, problem.failed, groups=groups
        )
        return AskedTest(key=key, p_value=group_p(inside, problem.failed, groups), about=about)

    def threshold(self, phrase: FloatArray) -> float:
        return float(
            error_scores(phrase[None] @ self.embeddings.T, self.problem.failed).threshold[0]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassHalves:
    """The samples of a class on both halves.

    Args:
        discovery: what people may look at, and where thresholds are chosen.
        confirmation: what every question to counts; without images that the discovery half has too, as evidence is measured.
        method: whose templates and shuffles hold.
    """

    discovery: ClassHalf
    confirmation: ClassHalf
    method: HypothesisDiscoverer

    @classmethod
    def of(
        cls,
        halves: tuple[SampleSet, SampleSet],
        criterion: FailureCriterion,
        title: str,
        method: HypothesisDiscoverer,
        *,
        is_compared: bool,
    ) -> "ClassHalves":
        made = partial(
            ClassHalf, criterion=criterion, title=title, method=method, is_compared=is_compared
        )
        return cls(
            discovery=made(halves[0]), confirmation=made(halves[1], seen=halves[0]), method=method
        )


def ask_rules(
    both: ClassHalves, rules: Mapping[str, Rule], ledger: Ledger, *, by: str = ""
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
        both.confirmation.rule_question(rule, f"{title}: {phrase}")
        for phrase, rule in rules.items()
    ]
    said = ledger.ask(tests, source="hypothesis", by=by)
    answers = tuple(
        _rule_answer(phrase, rule, both, test, answer)
        for (phrase, rule), test, answer in zip(rules.items(), tests, said, strict=True)
    )
    standing = ledger.standing()
    return AskResult(answers=answers, n_looks=standing.n_questions, left=standing.sentence)


def _rule_answer(
    phrase: str, rule: Rule, both: ClassHalves, test: AskedTest, said: Answer
) -> PhraseAnswer:
    discovery, confirmation = both.discovery.rule_answer(rule), both.confirmation.rule_answer(rule)
    halves = (discovery, confirmation)
    n_inside = sum(half.inside.total for half in halves)
    matching = Share.of(n_inside, n_inside + sum(half.outside.total for half in halves))
    fit, advice = judge(
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
        fit=fit,
        advice=advice,
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


ALIGN = " Or learn to compare words with the embeddings: weakspot lab align."
NOT_MEASURED = "Nobody measured how well these words are told: look at the images."


def told_of(words: TrustPhrases | None, phrase: str, problem: ClassProblem) -> float | None:
    """Return what `Assistants.trust` or `measured` says of what a phrase adds to a class; None if that cannot be said."""
    figures = None if words is None else words([addition_of(phrase, class_noun(problem))])
    return None if figures is None else float(figures[0])


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
        both = ClassHalves.of(halves, criterion, class_name, method, is_compared=False)
        reports.append(ask_rules(both, rules, ledger))
    if embed is not None and len(rules) < len(wanted):
        both = ClassHalves.of(halves, criterion, class_name, method, is_compared=True)
        thresholds = dict.fromkeys(phrase for phrase in wanted if phrase not in rules)
        reports.append(asked(both, thresholds, prepared.assistants, ledger, seed=settings.seed))
    known = {answer.phrase: answer for report in reports for answer in report.answers}
    answers = tuple(known[phrase] for phrase in wanted)
    return reports[-1].model_copy(update={"answers": answers})


def asked(
    both: ClassHalves,
    thresholds: Mapping[str, float | None],
    assistants: Assistants,
    ledger: Ledger,
    *,
    seed: int,
    by: str = "",
) -> AskResult:
    """Put phrases to the confirmation half of a class, and write down that it was done.

    Args:
        both: the samples of the class.
        thresholds: by phrase, the similarity from which on a sample is meant; None for the one that is best on the discovery half.
        assistants: phrases to embeddings, and how well they are known.
        ledger: of the samples.
        seed: seed of the run.
        by: who asks; empty for the command line.
    """
    problem, embed = both.discovery.problem, _text_side(assistants)
    embeddings = both.method.phrase_directions(thresholds, embed, problem)
    cuts = {
        phrase: both.discovery.threshold(embeddings[phrase]) if threshold is None else threshold
        for phrase, threshold in thresholds.items()
    }
    tests = [
        both.confirmation.question(embeddings[phrase], cut, f"{problem.title}: {phrase}")
        for phrase, cut in cuts.items()
    ]
    said = ledger.ask(tests, source="hypothesis", by=by)
    answers = tuple(
        _phrase_answer(phrase, cut, embeddings[phrase], both, assistants, test, answer, seed)
        for (phrase, cut), test, answer in zip(cuts.items(), tests, said, strict=True)
    )
    standing = ledger.standing()
    return AskResult(answers=answers, n_looks=standing.n_questions, left=standing.sentence)


def _text_side(assistants: Assistants) -> EmbedTexts:
    if assistants.embed_texts is None:
        raise ModelError("The embedder has no text side, so phrases cannot be compared.")
    return assistants.embed_texts


def _phrase_answer(
    phrase: str,
    threshold: float,
    embedding: FloatArray,
    both: ClassHalves,
    assistants: Assistants,
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
    problem = both.discovery.problem
    prompts = _text_side(assistants)(matching_prompts(phrase, problem))
    words = unit_rows(np.asarray(prompts, dtype=np.float32))
    matching = share_matching(
        np.concatenate([half.embeddings @ words.T for half in (both.discovery, both.confirmation)])
    )
    trust = told_of(assistants.trust, phrase, problem)
    separates_anything = measured[0].error_score > 0
    fit, advice = judge(
        separates=said.is_found,
        matching=matching,
        inside=measured[1].inside if separates_anything else None,
        outside=measured[1].outside if separates_anything else None,
        trust=trust,
    )
    tries = () if said.is_found else better_parts(phrase, measured[0], both, assistants, seed)
    advice += f" Try: {', '.join(tries)}." if tries else ""
    area = told_of(assistants.measured, phrase, problem)
    if fit is not Fit.CANNOT_TELL and area is not None and not np.isfinite(area):
        advice += f" {NOT_MEASURED}"
    return PhraseAnswer(
        class_name=problem.title,
        phrase=phrase,
        threshold=threshold if np.isfinite(threshold) else None,
        discovery=measured[0],
        confirmation=measured[1],
        p_value=test.p_value,
        p_after_looks=said.q_value,
        matching=matching,
        fit=fit,
        advice=advice,
        trust=trust,
        tries=tries,
    )


def better_parts(
    phrase: str, whole: HalfAnswer, both: ClassHalves, assistants: Assistants, seed: int
) -> tuple[str, ...]:
    """Return the single words of a phrase that separate failures of the discovery half better than the whole, best first.

    Only the discovery half is looked at, so nothing is asked of the ledger.
    """
    half, method = both.discovery, both.method
    parts = parts_of(phrase, class_noun(half.problem))
    directions = method.phrase_directions(parts, _text_side(assistants), half.problem)
    found: list[tuple[float, str]] = []
    for part, direction in directions.items():
        draws = generator(seed, "hypothesis", half.problem.title, "discovery", part)
        shuffles = max(method.n_permutations, 1)
        said = half.answer(direction, half.threshold(direction), draws, shuffles)
        trust = told_of(assistants.trust, part, half.problem)
        is_known = trust is None or trust >= MIN_TRUST
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
