"""Words and example images for both ends of a shift."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray, unit_rows
from weakspot.core.assistants import LEAST_TRUST, Assistants
from weakspot.core.class_findings import ClassFinding, ClassFindingKind
from weakspot.core.dataset import Dataset, Split, Task, dataset_from_columns
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.failures import FailureCriterion
from weakspot.core.roles import Describer
from weakspot.core.rules import LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.lexicon.captions import plain_caption
from weakspot.verify.classes.ranks import RankSum
from weakspot.verify.classes.shift import TwoSides, discriminant, two_sides
from weakspot.verify.classes.wording import shift_sentence

MOST_NAMED = 10
MOST_WORDS = 1
N_EXAMPLES = 6
LEAST_AUC = 0.85
LARGEST_P = 0.01
TOGETHER = ", "
BACKGROUND = " background"
LEAST_SCORE = 2.5
"""In units of the spread over all captions tried; chosen on real photographs, where smaller scores were mostly wrong (decision 026)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ShiftNamer:
    """Names shifts. Predictions are not read, and no image of the confirmation half is shown.

    Args:
        samples: all samples.
        space: the embeddings that are shared with text.
        shown: rows of evaluation samples that may be shown: the discovery half.
        kept: rows of the others, on which words are only checked.
        describer: the describe stage's own; it names evaluation images as if they were the slice, training images as the other end.
        assistants: who can be asked for words.
    """

    samples: SampleSet
    space: str
    shown: IntArray
    kept: IntArray
    describer: Describer
    assistants: Assistants

    def named(self, findings: Sequence[ClassFinding]) -> tuple[ClassFinding, ...]:
        """Return findings, the first few confirmed shifts among them with examples, and with words where words are known to fit."""
        shifts = [
            one for one in findings if one.kind is ClassFindingKind.SHIFT and one.is_confirmed
        ]
        told = {one.finding_id: self._named(one) for one in shifts[:MOST_NAMED]}
        return tuple(told.get(one.finding_id, one) for one in findings)

    def _named(self, finding: ClassFinding) -> ClassFinding:
        dataset = self.samples.dataset
        code = dataset.class_code(finding.class_name)
        training = _class_rows(dataset, dataset.rows_of(Split.TRAIN), code)
        sides = two_sides(
            self.samples, self.space, _class_rows(dataset, self.shown, code), training, least=2
        )
        if sides is None:
            return finding
        direction = discriminant(sides.embeddings, sides.is_here)
        depth = sides.embeddings @ direction
        here, there = self._words(finding, code, training)
        sentence = finding.sentence
        if here or there:
            plain = shift_sentence(finding.class_name, finding.rate)
            worded = shift_sentence(finding.class_name, finding.rate, here=here, there=there)
            sentence = sentence.replace(plain, worded)
        return finding.model_copy(
            update={
                "words_here": here,
                "words_there": there,
                "sentence": sentence,
                "examples_here": self._examples(sides, depth, is_here=True),
                "examples_there": self._examples(sides, -depth, is_here=False),
            }
        )

    def _examples(self, sides: TwoSides, depth: DoubleArray, *, is_here: bool) -> tuple[str, ...]:
        places = np.flatnonzero(sides.is_here == is_here)
        deepest = places[np.argsort(-depth[places], kind="stable")][:N_EXAMPLES]
        return tuple(self.samples.dataset.sample_ids(sides.rows[deepest]))

    def _words(
        self, finding: ClassFinding, code: int, training: IntArray
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return words of both ends that are chosen on one half of the images and tell the sides of the other half apart."""
        embed_texts = self.assistants.embed_texts
        if embed_texts is None or not self.samples.space(self.space).has_text:
            return (), ()
        dataset = self.samples.dataset
        chosen, checked = (
            two_sides(self.samples, self.space, here, there, least=5)
            for here, there in (
                (_class_rows(dataset, self.shown, code), training[::2]),
                (_class_rows(dataset, self.kept, code), training[1::2]),
            )
        )
        if chosen is None or checked is None:
            return (), ()
        try:
            named = self._described(finding.class_name, chosen)
        except (ModelError, UnavailableError):
            return (), ()
        caption = plain_caption(finding.class_name)
        plain, noun = caption.phrase, caption.noun or finding.class_name

        def fits(name: SliceName, sign: int) -> bool:
            texts = unit_rows(np.asarray(embed_texts([name.phrase, plain]), dtype=np.float32))
            depth = sign * (checked.embeddings @ (texts[0] - texts[1]))
            found = RankSum.of(depth, checked.is_here)
            return found.auc >= LEAST_AUC and found.p_value <= LARGEST_P

        def sayable(name: SliceName) -> bool:
            says = self.assistants.says
            told = None if says is None else says([name.contrast])
            return told is None or told[0] >= LEAST_TRUST or (name.witness_score or 0.0) > 0

        return (
            _trusted([one for one in named.names if sayable(one) and fits(one, 1)], noun),
            _trusted([one for one in named.easy_names if sayable(one) and fits(one, -1)], noun),
        )

    def _described(self, class_name: str, sides: TwoSides) -> FailureSlice:
        """Return what the describe stage calls the evaluated side, as if its images had failed and training images had not."""
        rows, space = sides.rows, self.samples.space(self.space)
        dataset = dataset_from_columns(
            class_names=(class_name, ""),
            labels=np.zeros(len(rows), dtype=np.int64),
            predictions=sides.is_here.astype(np.int64),
            sample_ids=self.samples.dataset.sample_ids(rows),
            metadata={
                name: self.samples.dataset.metadata(name).take(rows).to_pylist()
                for name in self.samples.dataset.metadata_names
            },
        )
        spaces = {
            name: EmbeddingSpace(
                encoder_id=one.encoder_id, embeddings=one.embeddings[rows], has_text=one.has_text
            )
            for name, one in self.samples.spaces.items()
        }
        pseudo = SampleSet(dataset=dataset, rows=np.arange(len(rows)), spaces=spaces, name="shift")
        direction = discriminant(sides.embeddings, sides.is_here)
        depth = sides.embeddings @ direction
        middle = (depth[sides.is_here].mean() + depth[~sides.is_here].mean()) / 2
        found = FailureSlice(
            class_name=class_name,
            rule=LinearRule(
                space=self.space,
                encoder_id=space.encoder_id,
                direction=tuple(direction.tolist()),
                threshold=float(middle),
            ),
            method="shift",
            found_on=DataUse.of(pseudo),
        )
        (named,) = self.describer.describe(
            (found,), pseudo, FailureCriterion(), self._assistants_for(rows)
        )
        return named

    def _assistants_for(self, rows: IntArray) -> Assistants:
        """Return the assistants as they answer about some rows, numbered from 0 on."""
        captions, answers = self.assistants.captions, self.assistants.answers
        return replace(
            self.assistants,
            captions=None if captions is None else lambda places: captions(rows[places]),
            answers=None
            if answers is None
            else lambda places, question: answers(rows[places], question),
        )


def _trusted(names: Sequence[SliceName], noun: str) -> tuple[str, ...]:
    """Return the words of names that nobody who was asked doubts, and that have a witness or need none, best first.

    Of several things said together only the whole was checked, so one of them may be wrong: such names are left out.
    """
    kept = [
        one.contrast
        for one in names
        if not one.is_doubtful
        and not one.is_untrue
        and TOGETHER not in one.contrast
        and ((one.witness_score or 0.0) > 0 or _needs_no_witness(one, noun))
    ]
    return tuple(dict.fromkeys(kept))[:MOST_WORDS]


def _needs_no_witness(name: SliceName, noun: str) -> bool:
    """Return whether words stand out and are of those that embeddings alone tell.

    The embedding of a whole image does not tell the colour of a background from that of the object, nor one kind of the class from
    its relatives.
    """
    is_kind = noun not in name.phrase
    return name.score >= LEAST_SCORE and not is_kind and not name.contrast.endswith(BACKGROUND)


def _class_rows(dataset: Dataset, rows: IntArray, code: int) -> IntArray:
    labelled = rows[dataset.is_labelled[rows]]
    is_single = dataset.task is Task.SINGLE_LABEL
    chosen = dataset.labels[labelled] == code if is_single else dataset.label_matrix[labelled, code]
    return np.asarray(labelled[chosen], dtype=np.int64)
