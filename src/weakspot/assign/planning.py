"""Attributes before assignment: their values and the phrases for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from weakspot.assign.columns import LeftOut
from weakspot.assign.phrases import NO_NOUN, free_phrases, no_phrases, worded_phrases, yes_phrases
from weakspot.assign.values import (
    CanBeTold,
    Cut,
    ProposedValue,
    ProposedValues,
    SameMeaning,
    cleaned,
    proposed_values,
)
from weakspot.core.attributes import Attribute, AttributeSource, AttributeValue
from weakspot.lexicon.captions import noun_of
from weakspot.lexicon.vocabulary import WordedAttribute

USUAL_CUT = Cut()
KEEP_ALL = Cut(least_count=1, least_share=0.0)
FEWEST_VALUES = 2
CLASS_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class Plan:
    """An attribute that is to be assigned, or the reason why it is not.

    Args:
        attribute: with values and phrases; None if it is left out.
        left_out: why, if it is.
        notes: what else to know, in sentences.
    """

    attribute: Attribute | None = None
    left_out: LeftOut | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Planner:
    """Makes attributes from words.

    Args:
        class_names: the classes of the task; an attribute whose values are the classes is none.
        same_meaning: whether two words mean the same.
        nouns: what the captions are of, beside anything; see `class_nouns`.
        cut: which answers are rare, and how many values are kept.
        can_be_told: which of some rare answers the text side knows; None if it cannot say.
    """

    class_names: Sequence[str]
    same_meaning: SameMeaning
    nouns: tuple[str, ...] = ()
    cut: Cut = USUAL_CUT
    can_be_told: CanBeTold | None = None

    def built_in(
        self, worded: WordedAttribute, *, source: AttributeSource = "built-in", name: str = ""
    ) -> Attribute:
        values = tuple(self._word(worded, each.value) for each in worded.values)
        named = name or worded.name
        return Attribute(
            name=named, column=named, source=source, question=worded.question, values=values
        )

    def from_answers(
        self,
        name: str,
        answers: Sequence[str],
        *,
        worded: WordedAttribute | None,
        question: str,
        source: AttributeSource,
    ) -> Plan:
        """Return an attribute whose values were found in answers to a question about samples."""
        return self._plan(name, answers, self.cut, worded=worded, question=question, source=source)

    def from_list(
        self, name: str, values: Sequence[str], *, worded: WordedAttribute | None, question: str
    ) -> Plan:
        return self._plan(
            name, values, KEEP_ALL, worded=worded, question=question, source="proposed"
        )

    def given(
        self, name: str, titles: Sequence[str], *, worded: WordedAttribute | None
    ) -> tuple[AttributeValue, ...]:
        """Return values that a person named, as they are, with phrases."""
        is_yes_no = {title.lower() for title in titles} <= {"yes", "no"}
        found = [
            ProposedValue(value=title.lower() if is_yes_no else title, count=1) for title in titles
        ]
        return tuple(self._value(name, each, worded, is_yes_no=is_yes_no) for each in found)

    def _plan(
        self,
        name: str,
        answers: Sequence[str],
        cut: Cut,
        *,
        worded: WordedAttribute | None,
        question: str,
        source: AttributeSource,
    ) -> Plan:
        known = {} if worded is None else {each.value: each.wordings for each in worded.values}
        found = proposed_values(
            answers,
            same_meaning=self.same_meaning,
            known=known,
            cut=cut,
            can_be_told=self.can_be_told,
        )
        obstacle = self._obstacle(found, len(answers))
        if obstacle and worded is not None:
            kept = self.built_in(worded, source=source, name=name)
            return Plan(
                attribute=kept,
                notes=(f"The attribute {name!r} has its built-in values: {obstacle}.",),
            )
        if obstacle:
            return Plan(left_out=LeftOut(name=name, why=obstacle))
        values = tuple(
            self._value(name, each, worded, is_yes_no=found.is_yes_no) for each in found.values
        )
        attribute = Attribute(
            name=name, column=name, source=source, question=question, values=values
        )
        rare = f"Of the answers on {name!r}, {found.n_cut} different ones were rare and could not be told, or too many."
        return Plan(attribute=attribute, notes=(rare,) if found.n_cut else ())

    def _obstacle(self, found: ProposedValues, n_answers: int) -> str:
        nouns = {noun_of(name) for name in self.class_names}
        if not found.n_usable:
            return f"none of {n_answers} answers says anything"
        if len(found.values) < FEWEST_VALUES:
            only = (
                f"the only answer is {found.values[0].value!r}"
                if found.values
                else "no answer is frequent"
            )
            return f"{only} ({found.n_usable} answers)"
        n_classes = sum(each.count for each in found.values if cleaned(each.value) in nouns)
        if n_classes > CLASS_SHARE * sum(each.count for each in found.values):
            return "its values are the classes themselves"
        return ""

    def _value(
        self, name: str, found: ProposedValue, worded: WordedAttribute | None, *, is_yes_no: bool
    ) -> AttributeValue:
        if is_yes_no:
            return AttributeValue(
                value=found.value,
                phrases=yes_phrases(name) if found.value == "yes" else no_phrases(),
            )
        if worded is not None and found.value in {each.value for each in worded.values}:
            return self._word(worded, found.value, merged=found.merged)
        if worded is not None and worded.slot == "adjective":
            phrases = worded_phrases("adjective", (found.value,), (*NO_NOUN, *self.nouns))
        else:
            phrases = free_phrases(name, found.value)
        return AttributeValue(value=found.value, phrases=phrases, merged=found.merged)

    def _word(
        self, worded: WordedAttribute, value: str, *, merged: tuple[str, ...] = ()
    ) -> AttributeValue:
        wordings = next(each.wordings for each in worded.values if each.value == value)
        return AttributeValue(
            value=value,
            phrases=worded_phrases(worded.slot, wordings, (*NO_NOUN, *self.nouns)),
            merged=merged,
        )
