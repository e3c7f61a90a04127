"""Which attributes in words a project has: names from a language model or the built-in ones, values from whoever can be asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from weakspot.assign.planning import Plan, Planner
from weakspot.assign.proposals import built_in_attribute, proposed_names, values_from_model
from weakspot.assign.representatives import medoids, most_unlike, spread_rows
from weakspot.core.arrays import IntArray
from weakspot.core.assistants import LEAST_TRUST, Assistants
from weakspot.core.attributes import Attribute, AttributeSource
from weakspot.core.dataset import Split
from weakspot.core.errors import ModelError, UnavailableError, WeakspotError
from weakspot.core.samples import SampleSet
from weakspot.lexicon.vocabulary import WordedAttribute, built_in_attributes
from weakspot.lexicon.wordnet import are_synonyms
from weakspot.pipeline.settings import Settings

Found = TypeVar("Found")

N_REPRESENTATIVES = 100
N_UNLIKE = 50
MOST_COMPARED = 5000
ASK_AGAIN = "Remove .weakspot/attributes to ask again."


@dataclass(frozen=True, kw_only=True)
class PlannedAttributes:
    """The attributes that are to be assigned, and what to know about them."""

    attributes: tuple[Attribute, ...]
    notes: tuple[str, ...]


@dataclass
class _Asking:
    """Asks the assistants for words; one that fails is not asked again."""

    samples: SampleSet
    assistants: Assistants
    settings: Settings
    rows: IntArray
    planner: Planner
    notes: list[str] = field(default_factory=list)

    def one(self, name: str) -> Plan:
        known = built_in_attribute(name, are_synonyms)
        is_asked = self.assistants.propose is not None or self.assistants.answers is not None
        return self._plan(name, known, source="proposed" if is_asked else "built-in")

    def run(self) -> PlannedAttributes:
        names = self._names()
        if names is None:
            plans = [
                self._plan(known.name, known, source="built-in") for known in built_in_attributes()
            ]
        else:
            plans = [
                self._plan(name, built_in_attribute(name, are_synonyms), source="proposed")
                for name in names
            ]
        for plan in plans:
            self.notes += [*plan.notes, *([plan.left_out.sentence] if plan.left_out else [])]
        found = tuple(plan.attribute for plan in plans if plan.attribute is not None)
        return PlannedAttributes(attributes=found, notes=tuple(self.notes))

    @property
    def _class_names(self) -> tuple[str, ...]:
        return self.samples.dataset.class_names

    def _names(self) -> tuple[str, ...] | None:
        propose = self.assistants.propose
        if propose is None:
            return None
        task = self.settings.attributes.task
        return self._try_all(
            lambda: proposed_names(propose, task, self._class_names, same_meaning=are_synonyms),
            otherwise="The language model proposed no attributes, so the built-in ones are used",
        )

    def _plan(self, name: str, known: WordedAttribute | None, *, source: AttributeSource) -> Plan:
        question = f"What is the {name} in this image?" if known is None else known.question
        answers = self._answers(question)
        if answers is not None:
            return self.planner.from_answers(
                name, answers, worded=known, question=question, source=source
            )
        listed = self._listed(name) if source == "proposed" else None
        if listed is not None or known is None:
            return self.planner.from_list(name, listed or [], worded=known, question=question)
        return Plan(attribute=self.planner.built_in(known, source=source, name=name))

    def _answers(self, question: str) -> list[str] | None:
        ask = self.assistants.answers
        if ask is None:
            return None
        found = self._try_all(
            lambda: ask(self.rows, question),
            otherwise="The question answerer failed and is not asked again",
        )
        if found is None:
            self.assistants = Assistants(
                embed_texts=self.assistants.embed_texts, propose=self.assistants.propose
            )
        return found

    def _listed(self, name: str) -> list[str] | None:
        propose = self.assistants.propose
        if propose is None:
            return None
        return self._try_all(
            lambda: values_from_model(
                propose, name, self.settings.attributes.task, self._class_names
            ),
            otherwise=f"The language model lists no values of {name!r}",
        )

    def _try_all(self, ask: Callable[[], Found], *, otherwise: str) -> Found | None:
        try:
            return ask()
        except WeakspotError as error:
            self.notes.append(f"{otherwise}: {error} {ASK_AGAIN}")
            return None


def planned_attributes(
    samples: SampleSet, assistants: Assistants, settings: Settings, reference_rows: IntArray
) -> PlannedAttributes:
    """Return the attributes in words, with values and phrases.

    Args:
        samples: with embeddings in the space `joint`.
        assistants: whom to ask; nobody is needed.
        settings: the task is told to the language model.
        reference_rows: samples among which representative ones are chosen for questions.
    """
    return _asking(samples, assistants, settings, reference_rows).run()


def proposed_attribute(
    name: str,
    samples: SampleSet,
    assistants: Assistants,
    settings: Settings,
    reference_rows: IntArray,
) -> tuple[Attribute, tuple[str, ...]]:
    """Return an attribute that a person names, with values from whoever can be asked, and notes.

    Raises:
        UnavailableError: if nobody can be asked, and the name is none of the built-in ones.
        ModelError: if whoever was asked gave no values that can be used.
    """
    if (
        assistants.propose is None
        and assistants.answers is None
        and built_in_attribute(name, are_synonyms) is None
    ):
        raise UnavailableError(
            f"Nobody can be asked for values of {name!r}.",
            fix="Give the values yourself, or configure [language] or [answerer] in weakspot.toml.",
        )
    asking = _asking(samples, assistants, settings, reference_rows)
    plan = asking.one(name)
    if plan.attribute is None:
        why = plan.left_out.why if plan.left_out else "nothing was answered"
        raise ModelError(
            f"No values of {name!r} were found: {why}.", fix="Give the values yourself."
        )
    return plan.attribute, (*asking.notes, *plan.notes)


def given_values(
    name: str, given: Sequence[tuple[str, Sequence[str]]], class_names: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """Return the phrases of values that a person gives, each as a title and phrases.

    A value without phrases gets some; one with a single phrase gets a second in other words, because a sample whose value depends
    on the wording is unsure.
    """
    planner = Planner(class_names=tuple(class_names), same_meaning=are_synonyms)
    known = built_in_attribute(name, are_synonyms)
    planned = planner.given(name, [title for title, _ in given], worded=known)
    found: list[tuple[str, ...]] = []
    for (_, phrases), value in zip(given, planned, strict=True):
        own = tuple(dict.fromkeys(" ".join(phrase.split()) for phrase in phrases if phrase.strip()))
        found.append(
            value.phrases if not own else (own[0], value.phrases[1]) if len(own) == 1 else own
        )
    return tuple(found)


def representatives(samples: SampleSet, reference_rows: IntArray, *, seed: int) -> IntArray:
    """Return the rows that questions are asked about: training samples, and as many evaluation samples.

    A value that training lacks is often the one that fails, so evaluation samples are asked about, half of them those that are least
    like training. Predictions play no part: values are tested as rules that were made without them.
    """
    trained = samples.embeddings("clip", reference_rows)
    found = [reference_rows[medoids(trained, N_REPRESENTATIVES, seed=seed)]]
    evaluated = samples.dataset.rows_of(Split.VALIDATION, Split.TEST)
    fresh = spread_rows(np.setdiff1d(evaluated, reference_rows), MOST_COMPARED)
    if len(fresh):
        shown = samples.embeddings("clip", fresh)
        few = spread_rows(np.arange(len(trained)), MOST_COMPARED)
        odd = fresh[most_unlike(shown, trained[few], N_UNLIKE)]
        usual = fresh[medoids(shown, N_REPRESENTATIVES - len(odd), seed=seed)]
        found += [odd, usual]
    return np.unique(np.concatenate(found))


def _known_words(assistants: Assistants, words: Sequence[str]) -> list[bool]:
    trust = None if assistants.trust is None else assistants.trust(words)
    return [True] * len(words) if trust is None else [bool(one >= LEAST_TRUST) for one in trust]


def _asking(
    samples: SampleSet, assistants: Assistants, settings: Settings, reference_rows: IntArray
) -> _Asking:
    planner = Planner(
        class_names=samples.dataset.class_names,
        same_meaning=are_synonyms,
        can_be_told=lambda words: _known_words(assistants, words),
    )
    rows = reference_rows[:0]
    if assistants.answers is not None:
        rows = representatives(samples, reference_rows, seed=settings.seed)
    return _Asking(
        samples=samples, assistants=assistants, settings=settings, rows=rows, planner=planner
    )
