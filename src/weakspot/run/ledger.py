"""One ledger per data set: every question that touches held-out samples is entered.

With which samples were asked and what is left of them.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from heapq import nsmallest
from pathlib import Path

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Task, identities
from weakspot.core.failures import predicted_classes, predicted_labels
from weakspot.core.questions import AskedFamily, largest_accepted_p, online_q_values, spending_share
from weakspot.core.record import Record
from weakspot.core.statistics import Correction
from weakspot.store.project import ProjectStore

MAX_MARKS = 256
SAME_SAMPLES = 0.5
OTHER_ANSWERS = 0.01
"""Share of samples on which one classifier may answer otherwise, because a machine rounds otherwise, and still be the same."""
SPARE_ANSWERS = 1
AT_ONCE = 100_000


class AskedData(Record):
    """The samples that are asked, with the predictions that they are asked about.

    Args:
        digest: hash over both, in whatever order of samples and under whatever labels.
        n_samples: different samples.
        marks: the smallest hashes of single samples: by these, samples that were asked before are known again among others.
        answers: the prediction for every mark, shortened; empty where there is none.
    """

    digest: str
    n_samples: int
    marks: tuple[str, ...]
    answers: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset, rows: IntArray) -> "AskedData":
        """Return what is asked; samples without an image are known by their keys."""
        said = dict(zip(identities(dataset, rows), _answers(dataset, rows), strict=True))
        whole = "\n".join(sorted(f"{one} {answer}" for one, answer in said.items()))
        marks = {hashlib.sha256(one.encode()).hexdigest()[:16]: one for one in said}
        smallest = nsmallest(MAX_MARKS, marks)
        return cls(
            digest=hashlib.sha256(whole.encode()).hexdigest()[:32],
            n_samples=len(said),
            marks=tuple(smallest),
            answers=tuple(said[marks[mark]] for mark in smallest),
        )

    def is_mostly(self, other: "AskedData") -> bool:
        """Return whether two sets of samples share their questions: mostly the same samples, and the same classifier."""
        return self.digest == other.digest or (
            self.has_same_samples(other) and self.has_same_classifier(other)
        )

    def has_same_samples(self, other: "AskedData") -> bool:
        """Return whether half of the smaller of two sets is in the other.

        A sample more or less, another split beside the first, or other labels make no fresh samples.
        """
        smallest = sorted({*self.marks, *other.marks})[:MAX_MARKS]
        both = {*self.marks} & {*other.marks}
        alike = sum(one in both for one in smallest) / max(len(smallest), 1)
        n_shared = alike / (1.0 + alike) * (self.n_samples + other.n_samples)
        return n_shared >= SAME_SAMPLES * min(self.n_samples, other.n_samples)

    def has_same_classifier(self, other: "AskedData") -> bool:
        """Return whether the predictions for shared samples are nearly all the same; where none is known, that is assumed.

        Labels and what counts as a failure play no part: both can be set, and setting them makes no other classifier.
        """
        own, theirs = (dict(zip(one.marks, one.answers, strict=False)) for one in (self, other))
        shared = [mark for mark in own if own[mark] and theirs.get(mark)]
        n_other = sum(own[mark] != theirs[mark] for mark in shared)
        return n_other <= OTHER_ANSWERS * len(shared) + SPARE_ANSWERS


def _answers(dataset: Dataset, rows: IntArray) -> list[str]:
    """Return the prediction for every row by the names of its classes, shortened; the order of classes plays no part."""
    if not dataset.has_predictions:
        return [""] * len(rows)
    if dataset.task is Task.SINGLE_LABEL:
        short = [*map(_short, dataset.class_names), ""]
        parts = [predicted_classes(dataset, part) for part in _parts(rows)]
        codes = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        return [short[code] for code in codes.tolist()]
    names = np.array(dataset.class_names, dtype=np.str_)
    return [
        _short("\n".join(sorted(names[said].tolist())))
        for part in _parts(rows)
        for said in predicted_labels(dataset, part)
    ]


def _parts(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE)]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:4]


class Standing(Record):
    """What was asked of some samples about a classifier so far, and what is left.

    Args:
        n_samples: the samples.
        n_questions: different questions.
        n_batches: times that something new was asked.
        n_found: findings among them.
        share: part of the error rate that a single question asked now may spend; earlier findings raise it where `fdr` is held.
        largest_p: a single question that is asked now is a finding up to this p-value.
        alpha: error rate over everything.
        n_other_classifiers: other classifiers that the same samples were asked about; each has an error rate of its own.
        n_checks: comparisons of two classifiers on these samples; each of them promises for itself.
    """

    n_samples: int
    n_questions: int
    n_batches: int
    n_found: int
    share: float
    largest_p: float
    alpha: float
    n_other_classifiers: int = 0
    n_checks: int = 0

    @property
    def sentence(self) -> str:
        """Return it in plain words."""
        return " ".join([self._asked, *self._beside])

    @property
    def _asked(self) -> str:
        samples = _counted(self.n_samples, "sample")
        if not self.n_batches:
            return (
                f"Nothing was asked of these {samples} yet; the first batch of questions may spend {_percent(self.share)} of the "
                f"error rate of {_percent(self.alpha)}, so a single question is a finding at p ≤ {self.largest_p:.2g}."
            )
        questions = _counted(self.n_questions, "question")
        batches = "1 batch" if self.n_batches == 1 else f"{self.n_batches:,} batches"
        asked = (
            questions
            if self.n_batches == self.n_questions
            else f"{batches} of questions ({self.n_questions:,} in all)"
        )
        verb = "was" if self.n_batches == 1 else "were"
        return (
            f"{asked} {verb} asked of these {samples}; the next may spend {_percent(self.share)} of the error rate of "
            f"{_percent(self.alpha)}, so a single question is a finding at p ≤ {self.largest_p:.2g}. "
            "The same question again is free; fresh samples restore the full level."
        )

    @property
    def _beside(self) -> list[str]:
        found = []
        if self.n_other_classifiers:
            others = _counted(self.n_other_classifiers, "other classifier")
            found.append(f"They were also asked about {others}; each has an error rate of its own.")
        if self.n_checks:
            checks = _counted(self.n_checks, "comparison")
            found.append(f"{checks} of two classifiers on them promise for themselves only.")
        return found


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _percent(share: float) -> str:
    """Return a share in percent with two digits that mean something.

    >>> [_percent(share) for share in (0.6, 0.0541, 0.0029, 0.05, 1.0)]
    ['60 %', '5.4 %', '0.29 %', '5 %', '100 %']
    """
    percents = f"{100 * share:.2g}"
    return f"{float(percents):g} %"


LEDGER_FILE = "ledger.jsonl"
PATIENCE_SECONDS = 20.0
ANY_DATA = ""
BESIDE = "beside "
"""Begins the names of tests that were made together with questions and are never told; without new questions they cost nothing."""


class AskedTest(Record):
    """One question, with what the samples said.

    Args:
        key: names the question: two with the same key have the same answer.
        p_value: what the samples said; 1 for what would not be published whatever they say.
        weight: how much it counts in its family, fixed before the samples were asked.
        family: questions of a batch with the same number are corrected together.
        about: in words, for whoever reads the file.
    """

    key: str
    p_value: float
    weight: float = 1.0
    family: int = 0
    about: str = ""


class LedgerBatch(Record):
    """What was asked at one time.

    Args:
        data: digest of the samples and predictions.
        questions: the new ones among what was asked.
        parts: of what the batch may spend, for every family; none: all of it for each.
        is_alone: whether its promise is about itself only, as that of a check is: it is written down and counted, and spends nothing.
        source: what asked, for example `verify`.
        by: who asked; empty for the command line.
        time: when.
    """

    data: str
    questions: tuple[AskedTest, ...]
    parts: tuple[float, ...] = ()
    is_alone: bool = False
    source: str = ""
    by: str = ""
    time: str = ""


class Answer(Record):
    """What the ledger says of a question.

    Args:
        q_value: error rate over everything that these samples were asked at which it would just be a finding.
        is_found: whether that is within the error rate that is held.
        p_value: as it was counted when it was asked first.
        batch: its place, from 1.
        share: part of the error rate that its family may spend.
        n_tested: questions that are corrected with it.
    """

    q_value: float
    is_found: bool
    p_value: float
    batch: int
    share: float
    n_tested: int


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The ledger of a project, as it concerns some samples.

    Args:
        store: the project.
        data: the samples.
        alpha: error rate over everything that they are ever asked.
        correction: which error rate is meant.
    """

    store: ProjectStore
    data: AskedData
    alpha: float = 0.05
    correction: Correction = "fdr"

    def ask(
        self,
        questions: Sequence[AskedTest],
        *,
        source: str,
        by: str = "",
        parts: Sequence[float] = (1.0,),
    ) -> tuple[Answer, ...]:
        """Enter questions and return the answers, in the same order.

        Args:
            questions: with what the samples said. Whoever asks shows none of it before this returns.
            source: what asks.
            by: who asks; empty for the command line.
            parts: of what new questions may spend, for every family; at most one together over families that ask.
        """
        with self.store.writing(patience=PATIENCE_SECONDS):
            known = self._read()
            new = {one.key: one for one in questions if one.key not in known.places}
            if any(not key.startswith(BESIDE) for key in new):
                batch = self._batch(tuple(new.values()), source)
                self._append(known, batch.model_copy(update={"parts": tuple(parts), "by": by}))
                known = self._read()
        return tuple(
            known.answer(one.key, self.alpha, self.correction)
            for one in questions
            if one.key in known.places
        )

    def note(self, questions: Sequence[AskedTest], *, source: str) -> int:
        """Write down what was asked with a promise that holds for this one time, and return how many such times there were.

        Whatever was noted before in the same words is not noted again.
        """
        with self.store.writing(patience=PATIENCE_SECONDS):
            known = self._read()
            noted = {one.key for batch in known.alone for one in batch.questions}
            if not {one.key for one in questions} <= noted:
                batch = self._batch(tuple(questions), source)
                self._append(known, batch.model_copy(update={"is_alone": True}))
                known = self._read()
        return len(known.alone)

    def recall(self, keys: Sequence[str]) -> dict[str, Answer]:
        """Return the answers of those questions that were asked before."""
        known = self._read()
        return {
            key: known.answer(key, self.alpha, self.correction)
            for key in keys
            if key in known.places
        }

    def standing(self) -> Standing:
        """Return what was asked and what is left."""
        known = self._read()
        answers, n_fruitful = known.judged(self.alpha, self.correction)
        largest_p = largest_accepted_p(
            len(known.batches) + 1, n_fruitful, self.alpha, self.correction
        )
        return Standing(
            n_samples=self.data.n_samples,
            n_questions=len(known.places),
            n_batches=len(known.batches),
            n_found=sum(one.is_found for batch in answers for one in batch.values()),
            share=largest_p / self.alpha,
            largest_p=largest_p,
            alpha=self.alpha,
            n_other_classifiers=known.n_other_classifiers,
            n_checks=len(known.alone),
        )

    def _batch(self, questions: tuple[AskedTest, ...], source: str) -> LedgerBatch:
        return LedgerBatch(
            data=self.data.digest,
            questions=questions,
            source=source,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    @property
    def _path(self) -> Path:
        return self.store.root / LEDGER_FILE

    def _read(self) -> "_Known":
        datas, batches = _parse(self._path)
        mine = {one.digest for one in datas if one.is_mostly(self.data)} | {self.data.digest}
        shared = [one for one in datas if one.has_same_samples(self.data)]
        places = {one.digest for one in shared}
        spending = {batch.data for batch in batches if not batch.is_alone}
        return _Known(
            batches=tuple(
                batch for batch in batches if batch.data in {*mine, ANY_DATA} and not batch.is_alone
            ),
            alone=tuple(batch for batch in batches if batch.is_alone and batch.data in places),
            n_other_classifiers=_n_others(
                [one for one in shared if one.digest in spending], self.data
            ),
            has_data=any(one.digest == self.data.digest for one in datas),
        )

    def _append(self, known: "_Known", batch: LedgerBatch) -> None:
        lines = [{"batch": batch.model_dump(mode="json", exclude_defaults=True)}]
        if not known.has_data:
            lines.insert(0, {"data": self.data.model_dump(mode="json", exclude_defaults=True)})
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        with self._path.open("a+b") as stream:
            stream.seek(0)
            whole = stream.read().rpartition(b"\n")
            stream.truncate(len(whole[0]) + len(whole[1]))
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Known:
    """What some samples were asked about a classifier, oldest first, and beside it."""

    batches: tuple[LedgerBatch, ...]
    alone: tuple[LedgerBatch, ...]
    n_other_classifiers: int
    has_data: bool
    _judged: dict[tuple[float, Correction], tuple[list[dict[str, Answer]], int]] = field(
        default_factory=dict, init=False
    )

    @cached_property
    def places(self) -> dict[str, int]:
        """Return where every question was asked first."""
        found: dict[str, int] = {}
        for place, batch in enumerate(self.batches):
            for one in batch.questions:
                found.setdefault(one.key, place)
        return found

    def answer(self, key: str, alpha: float, correction: Correction) -> Answer:
        return self.judged(alpha, correction)[0][self.places[key]][key]

    def judged(self, alpha: float, correction: Correction) -> tuple[list[dict[str, Answer]], int]:
        """Return the answers of every batch by question, and how many batches had findings."""
        wanted = alpha, correction
        if wanted not in self._judged:
            families = [list(_families(batch)) for batch in self.batches]
            tests = [[_tests(own, batch) for own in each] for each, batch in self._pair(families)]
            values, n_fruitful = online_q_values(tests, alpha=alpha, correction=correction)
            self._judged[wanted] = (
                [
                    {
                        one.key: _answer(one, float(q_value), place, len(own), batch, alpha)
                        for own, adjusted in zip(each, given, strict=True)
                        for one, q_value in zip(own, adjusted, strict=True)
                    }
                    for place, (each, given, batch) in enumerate(
                        zip(families, values, self.batches, strict=True), start=1
                    )
                ],
                n_fruitful,
            )
        return self._judged[wanted]

    def _pair(
        self, families: Sequence[list[list[AskedTest]]]
    ) -> Iterator[tuple[list[list[AskedTest]], LedgerBatch]]:
        return zip(families, self.batches, strict=True)


def _n_others(shared: Sequence[AskedData], own: AskedData) -> int:
    """Return how many different classifiers the same samples were asked about, beside this one."""
    known = [own]
    for one in shared:
        if not any(one.has_same_classifier(other) for other in known):
            known.append(one)
    return len(known) - 1


def _families(batch: LedgerBatch) -> Iterator[list[AskedTest]]:
    for number in sorted({one.family for one in batch.questions}):
        yield [one for one in batch.questions if one.family == number]


def _part(batch: LedgerBatch, questions: Sequence[AskedTest]) -> float:
    return batch.parts[questions[0].family] if batch.parts else 1.0


def _tests(questions: Sequence[AskedTest], batch: LedgerBatch) -> AskedFamily:
    return (
        np.array([one.p_value for one in questions]),
        np.array([one.weight for one in questions]),
        _part(batch, questions),
    )


def _answer(
    one: AskedTest, q_value: float, place: int, n_tested: int, batch: LedgerBatch, alpha: float
) -> Answer:
    return Answer(
        q_value=q_value,
        is_found=q_value <= alpha,
        p_value=one.p_value,
        batch=place,
        share=spending_share(place) * _part(batch, [one]),
        n_tested=n_tested,
    )


def _parse(path: Path) -> tuple[list[AskedData], list[LedgerBatch]]:
    """Return what the file says; of a line that cannot be read, only that something was asked there, of whatever samples.

    A last line without an end was cut off while it was written; nobody saw the answer.
    """
    datas: list[AskedData] = []
    batches: list[LedgerBatch] = []
    text = path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
    for line in text.split("\n")[:-1]:
        try:
            entry = json.loads(line)
            if "data" in entry:
                datas.append(AskedData.model_validate(entry["data"]))
            else:
                batches.append(LedgerBatch.model_validate(entry["batch"]))
        except (ValueError, TypeError, KeyError):
            batches.append(LedgerBatch(data=ANY_DATA, questions=()))
    return datas, batches
