"""A person's phrase, answered at once: how well it separates failures where its threshold was chosen, and on held-out samples.

Every phrase asked is written down, because each look at the confirmation half by hand is a test that counts.
"""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from pydantic import JsonValue

from weakspot.app.config import Settings
from weakspot.app.looks import Look, LookLog
from weakspot.app.loop import halves
from weakspot.app.preparation import Prepared
from weakspot.app.wiring import build_part
from weakspot.core.arrays import BoolArray, FloatArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.class_vectors import obstacle, with_vectors
from weakspot.core.error_score import error_score_null, error_scores, score_at
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.record import Record
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse
from weakspot.core.statistics import fisher_p
from weakspot.discover.hypothesis import HypothesisDiscoverer, as_phrases
from weakspot.lexicon.captions import counted, noun_of
from weakspot.store.project import ProjectStore

LEAST_MATCHING = 0.02
CERTAIN = 0.05


class Fit(StrEnum):
    """What became of a phrase."""

    GOOD = "good"
    SEPARATES_ONLY = "separates but does not match"
    MATCHES_ONLY = "matches but does not separate"
    NEITHER = "neither matches nor separates"


ADVICE = {
    Fit.GOOD: "Samples above the threshold fail more often, also those that took no part in choosing it.",
    Fit.SEPARATES_ONLY: "It separates failures, but hardly any picture looks like these words to the encoder, so it may go by "
    "something else: look at the pictures above the threshold and say what they show.",
    Fit.MATCHES_ONLY: "Pictures with this are found, but they do not fail more often on held-out samples: other words for the same "
    "will not help; think of something else that sets failures apart.",
    Fit.NEITHER: "Hardly any picture looks like these words to the encoder, and they do not separate failures: say the same in "
    "other words (`red square` or `crimson` for `red`) before giving it up.",
}


class HalfAnswer(Record):
    """A phrase on one half of the samples.

    Args:
        samples: which half.
        error_score: with the threshold of the discovery half; on that half it is the best one.
        best_score: with the threshold that is best here.
        best_p: chance of such a best score when outcomes are shuffled.
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
        p_after_looks: the same, times the number of phrases that were ever put to this confirmation half.
        matching: samples of both halves that are nearer to the class with the phrase than to the class alone.
        fit: what became of it.
        advice: what to do next, in words.
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


class HypothesisReport(Record):
    """Answers to the phrases asked now.

    Args:
        answers: in the order of the phrases.
        n_looks: different phrases that were put to this confirmation half so far, these ones among them.
    """

    answers: tuple[PhraseAnswer, ...]
    n_looks: int


class _Half:
    """The samples of a class on one half, with similarities to phrases."""

    def __init__(self, samples: SampleSet, criterion: FailureCriterion, title: str, method: HypothesisDiscoverer) -> None:
        problem = _problem(samples, criterion, title)
        known, raw = with_vectors(samples, problem, method.space)
        note = obstacle(known, min_failures=method.min_failures, min_right=method.min_right)
        if note:
            raise NotEnoughDataError(note, where=f"{problem.title}, {samples.name}")
        self.use = DataUse.of(samples)
        self.problem: ClassProblem = known
        self.vectors: FloatArray = unit_rows(raw)

    def answer(self, phrase: FloatArray, cut: float, draws: np.random.Generator, n_shuffles: int) -> HalfAnswer:
        """Measure a phrase vector [d], with the given threshold and with the best one of this half."""
        similarities, failed = phrase[None] @ self.vectors.T, self.problem.failed
        best = error_scores(similarities, failed)
        null = error_score_null(similarities, failed, n_permutations=n_shuffles, generator=draws)
        inside: BoolArray = similarities[0] >= cut
        return HalfAnswer(
            samples=self.use,
            error_score=score_at(similarities[0], failed, cut),
            best_score=float(best.score[0]),
            best_p=float(null.p_value[0]),
            inside=Share.of(int(failed[inside].sum()), int(inside.sum())),
            outside=Share.of(int(failed[~inside].sum()), int((~inside).sum())),
        )

    def threshold(self, phrase: FloatArray) -> float:
        """Return the best threshold of this half."""
        return float(error_scores(phrase[None] @ self.vectors.T, self.problem.failed).threshold[0])


def ask(
    prepared: Prepared,
    settings: Settings,
    criterion: FailureCriterion,
    store: ProjectStore,
    *,
    class_name: str,
    phrases: Sequence[str],
) -> HypothesisReport:
    """Put phrases to the samples of a class, and write down that it was done.

    Args:
        prepared: the project's samples and models.
        settings: the project's settings; templates and shuffles are those of the method `hypothesis`.
        criterion: what counts as a failure.
        store: the project folder, where `hypotheses.jsonl` is kept.
        class_name: the class; `no apple` for samples of a multi-label task that lack a label.
        phrases: a person's words.
    """
    wanted = tuple(dict.fromkeys(as_phrases(phrases)))
    if not wanted:
        raise ConfigError("No phrase was given.", fix='Say what failures have in common, for example "on a shelf".')
    embed = prepared.assistants.embed_texts
    if embed is None:
        raise ModelError("The embedder has no text side, so phrases cannot be compared with samples.", fix="weakspot align")
    options: dict[str, JsonValue] = {**settings.discover.parameters.get("hypothesis", {}), "phrases": {class_name: [*wanted]}}
    method: HypothesisDiscoverer = build_part("discoverers", "hypothesis", options, where="[discover] parameters.hypothesis")
    discovery, confirmation = halves(prepared.samples, settings, criterion)[0]
    found_on, held_out = (_Half(half, criterion, class_name, method) for half in (discovery, confirmation))
    with store.writing():
        log = LookLog(store)
        n_looks = _n_looks(log, held_out, wanted)
        vectors = method.phrase_vectors(wanted, embed)
        answers = tuple(
            _answer(phrase, vectors[phrase], (found_on, held_out), embed, method, (settings.seed, n_looks)) for phrase in wanted
        )
        log.add([_look(answer) for answer in answers])
    return HypothesisReport(answers=answers, n_looks=n_looks)


def _answer(
    phrase: str,
    vector: FloatArray,
    both: tuple[_Half, _Half],
    embed: EmbedTexts,
    method: HypothesisDiscoverer,
    seed_and_looks: tuple[int, int],
) -> PhraseAnswer:
    seed, n_looks = seed_and_looks
    threshold = both[0].threshold(vector)
    n_shuffles = max(method.n_permutations, 1)
    measured = [
        half.answer(vector, threshold, generator(seed, "hypothesis", half.problem.title, name), n_shuffles)
        for half, name in zip(both, ("discovery", "confirmation"), strict=True)
    ]
    inside, outside = measured[1].inside, measured[1].outside
    p_value = fisher_p(inside.count, inside.total, outside.count, outside.total)
    matching = _matching(phrase, both, embed)
    fit = _fit(separates=p_value * n_looks <= CERTAIN, matches=matching.value >= LEAST_MATCHING)
    return PhraseAnswer(
        class_name=both[0].problem.title,
        phrase=phrase,
        threshold=threshold if np.isfinite(threshold) else None,
        discovery=measured[0],
        confirmation=measured[1],
        p_value=p_value,
        p_after_looks=min(1.0, p_value * n_looks),
        matching=matching,
        fit=fit,
        advice=ADVICE[fit],
    )


def _fit(*, separates: bool, matches: bool) -> Fit:
    if separates:
        return Fit.GOOD if matches else Fit.SEPARATES_ONLY
    return Fit.MATCHES_ONLY if matches else Fit.NEITHER


def _matching(phrase: str, both: tuple[_Half, _Half], embed: EmbedTexts) -> Share:
    """Return how many samples of the class the phrase fits: adding it to the class brings the words nearer."""
    problem = both[0].problem
    noun = noun_of(problem.class_name)
    plain = "an image" if problem.side is Side.ABSENT else f"an image of {counted(noun, noun)}"
    with_phrase, without = unit_rows(np.asarray(embed([f"{plain}, {phrase}", plain]), dtype=np.float32))
    nearer = np.concatenate([half.vectors @ with_phrase > half.vectors @ without for half in both])
    return Share.of(int(nearer.sum()), len(nearer))


def _problem(samples: SampleSet, criterion: FailureCriterion, title: str) -> ClassProblem:
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


def _n_looks(log: LookLog, held_out: _Half, phrases: Sequence[str]) -> int:
    """Return how many different questions the confirmation half has had to answer, these ones among them."""
    asked = {look.question for look in log.at(held_out.use.digest)}
    return len(asked | {(held_out.problem.title, phrase, None) for phrase in phrases})


def _look(answer: PhraseAnswer) -> Look:
    return Look(
        class_name=answer.class_name,
        phrase=answer.phrase,
        measured_on=answer.confirmation.samples.digest,
        p_value=answer.p_value,
        error_score=answer.discovery.error_score,
        held_out_error_score=answer.confirmation.error_score,
    )
