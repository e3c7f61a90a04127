"""Samples that fail together: the slice, the rule that decides membership of unseen samples, and its names."""

import hashlib
import json

import numpy as np
from pydantic import Field, JsonValue

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.failures import ClassProblem, Side
from weakspot.core.record import Record
from weakspot.core.rules import MembershipRule, Rule
from weakspot.core.samples import SampleSet

MIN_TOLD = 5


class HeldName(Record):
    """What samples that took no part in choosing words say of them; no prediction of theirs is read.

    Args:
        auc: how well the words tell members from the rest of the class, 0 to 1.
        p_value: chance of telling them so well if they fit members no better.
        q_value: corrected for all words that were asked about in the run.
        n_members: members, counted as groups where samples have groups.
        n_fitting: of these, those that the words fit.
        n_others: others of the class.
        n_others_fitting: of these, those that the words fit.
    """

    auc: float
    p_value: float
    q_value: float = 1.0
    n_members: int = 0
    n_fitting: int = 0
    n_others: int = 0
    n_others_fitting: int = 0


class SliceName(Record):
    """Words for a slice.

    Args:
        phrase: the name itself, for example `a photo of a green apple`.
        contrast: what sets it apart from the class, for example `green`; shown to people.
        score: how well the words fit, larger is better; comparable only within one describer.
        describer: who found it.
        accuracy_nearest: accuracy of the class's samples nearest to the phrase, None when not measured.
        curve: (K, accuracy of the K samples of the class that are nearest to the phrase), K ascending.
        witness: who was asked independently of the embedding contrast, for example `captions`; empty if nobody was.
        witness_score: what it said, -1 to 1; positive agrees that such samples are inside the slice. None if it could not tell.
        is_doubtful: whether a second witness disagrees.
        n_true: of the members with a caption, those whose caption says so; None if the words are the rule itself or nothing tells.
        n_told: members with a caption.
        title: the class with these words as a person would say it, for example `green apples`; empty if they stand after the class.
        measured: how well the text side told held-out images by these words, 0 to 1; None where nobody measured it.
        held: what the confirmation half says; None where words were not asked about there, because they are the rule itself.
        is_unsure: whether the words may not be called the slice's name.
        doubt: why not, in words.
    """

    phrase: str
    contrast: str
    score: float
    describer: str
    accuracy_nearest: float | None = None
    curve: tuple[tuple[int, float], ...] = ()
    witness: str = ""
    witness_score: float | None = None
    is_doubtful: bool = False
    n_true: int | None = None
    n_told: int = 0
    title: str = ""
    measured: float | None = None
    held: HeldName | None = None
    is_unsure: bool = False
    doubt: str = ""

    @property
    def is_untrue(self) -> bool:
        """Return whether fewer than half of the members are said to be so: then these are not its words."""
        return self.n_true is not None and self.n_told >= MIN_TOLD and 2 * self.n_true < self.n_told

    @property
    def said_of(self) -> str:
        """Return of how many members the words are said, empty if that is not known."""
        return (
            ""
            if self.n_true is None or not self.n_told
            else f"said of {self.n_true} of {self.n_told}"
        )


class DataUse(Record):
    """Which samples a step looked at."""

    name: str
    n_samples: int
    digest: str

    @classmethod
    def of(cls, samples: SampleSet) -> "DataUse":
        """Return what a step that looks at these samples looks at; costs a hash over all ids, so call it once."""
        return cls(name=samples.name, n_samples=len(samples), digest=samples.digest())

    @classmethod
    def nothing(cls) -> "DataUse":
        """Return what a step that reads no prediction looks at: the predictions of no sample."""
        return cls(name="no predictions", n_samples=0, digest=hashlib.sha256(b"").hexdigest()[:32])


MAX_IDS = 1024
_IDS: dict[tuple[object, ...], tuple[Rule, str]] = {}
"""Ids of the last slices; rules never change, so a slice with the same rule object is known again without reading the rule."""


_WORDS_OF_IDS = {
    ("space", "clip"): "joint",
    ("space", "features"): "own",
    ("kind", "prediction"): "outcome",
}


def _in_words_of_ids(value: JsonValue) -> JsonValue:
    """Return a rule in the words that ids are made of: decisions and evidence name slices by these ids, so they never change."""
    if isinstance(value, dict):
        return {
            name: _WORDS_OF_IDS.get((name, one), one)
            if isinstance(one, str)
            else _in_words_of_ids(one)
            for name, one in value.items()
        }
    return [_in_words_of_ids(one) for one in value] if isinstance(value, list) else value


class FailureSlice(Record):
    """A kind of sample on which the classifier fails more often than on the rest of the class.

    Args:
        class_name: the true class.
        side: for multi-label tasks, whether members have or lack the label.
        rule: decides membership of any sample of the class, seen or unseen.
        method: registered name of the discoverer.
        parameters: what the discoverer was set to.
        found_on: the data that was looked at.
        fold: 0, or the fold of cross-fitting that found a rule which an earlier fold found too: each has evidence of its own.
        strength: how consistent the failure is on the data it was found on, in the method's own measure.
        strength_p: chance of at least this strength when there is nothing to find, or None.
        n_found: members among the samples it was found on.
        names: words, sure ones first, then best first.
        easy_names: words for the samples at the other end, best first.
        number: its place among the slices of its class in its run, from 1 on; 0 if it was found otherwise.
    """

    class_name: str
    side: Side | None = None
    rule: MembershipRule
    method: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    found_on: DataUse
    fold: int = 0
    strength: float | None = None
    strength_p: float | None = None
    n_found: int = 0
    names: tuple[SliceName, ...] = ()
    easy_names: tuple[SliceName, ...] = ()
    number: int = 0

    @property
    def slice_id(self) -> str:
        """Return a stable id: the same class, rule, method and fold give the same id, whatever the names."""
        key = (self.class_name, self.side, self.method, self.fold, id(self.rule))
        known = _IDS.get(key)
        if known is None:
            if len(_IDS) >= MAX_IDS:
                _IDS.clear()
            rule = _in_words_of_ids(self.rule.model_dump(mode="json"))
            content = [self.class_name, self.side, self.method, rule]
            content += [self.fold] if self.fold else []
            text = json.dumps(content, sort_keys=True)
            known = self.rule, hashlib.sha256(text.encode()).hexdigest()[:12]
            # The rule is kept, so that no other object gets its number.
            _IDS[key] = known
        return known[1]

    @property
    def name(self) -> SliceName | None:
        """Return the words that it may be called by; None if there are none that are sure."""
        return next((one for one in self.names if not one.is_unsure), None)

    @property
    def nearest_words(self) -> tuple[SliceName, ...]:
        """Return words that may fit, and may not be said of it as if they did."""
        return tuple(one for one in self.names if one.is_unsure)

    @property
    def _label(self) -> str:
        return f"no {self.class_name}" if self.side is Side.ABSENT else self.class_name

    @property
    def title(self) -> str:
        label, name = self._label, self.name
        if name is not None:
            return name.title or f"{label}: {name.contrast}"
        return (
            f"{label}, group {self.number}" if self.number else f"{label}: unnamed ({self.method})"
        )

    def members(self, samples: SampleSet, rows: IntArray | None = None) -> IntArray:
        """Return the member rows among the given rows (the set's own by default), whatever their class."""
        wanted = samples.rows if rows is None else rows
        return wanted[self.rule.members(samples, wanted)]

    def class_rows(self, samples: SampleSet) -> IntArray:
        dataset = samples.dataset
        code = dataset.class_code(self.class_name)
        labelled = samples.rows[dataset.is_labelled[samples.rows]]
        if dataset.task is Task.SINGLE_LABEL:
            return np.asarray(labelled[dataset.labels[labelled] == code], dtype=np.int64)
        has_label = dataset.label_matrix[labelled, code]
        return np.asarray(
            labelled[~has_label if self.side is Side.ABSENT else has_label], dtype=np.int64
        )

    def inside(self, samples: SampleSet, problem: ClassProblem) -> BoolArray:
        return self.rule.members(samples, problem.rows)


def matches(found: FailureSlice, problem: ClassProblem) -> bool:
    return found.class_name == problem.class_name and found.side == problem.side
