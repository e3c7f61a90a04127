"""What the witnesses see in the images of a data set, asked for only where somebody wants to know: captions.

And attributes that they give.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray, even_part
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ModelError, WeakspotError
from weakspot.core.samples import Attribute, AttributeValue
from weakspot.run.image_texts import ImageBench, ImageTexts
from weakspot.run.settings import WitnessSettings
from weakspot.run.witnesses import Judge, Looker, Witness
from weakspot.words.attribute_columns import AssignedColumn, LeftOut, words_column
from weakspot.words.captions import with_article

STAGE = "witnesses"
ANYTHING = "object"


@dataclass(kw_only=True, eq=False)
class Seeing:
    """Asks witnesses about rows: each image is looked at once by each witness that can tell the words, and that is kept.

    A witness that is not there, or fails, is left out for good and named in `problems`.

    Args:
        witnesses: who there is.
        bench: where they are asked about the images of a data set.
        most_asked: of more rows than this, so many at even steps are looked at and the others stay unknown; None for no end.
        problems: why a witness cannot be asked, by kind.
    """

    witnesses: tuple[Witness, ...]
    bench: ImageBench
    most_asked: int | None = None
    problems: dict[str, str] = field(default_factory=dict)
    _texts: dict[str, ImageTexts] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, rows: IntArray, words: str) -> FloatArray | None:
        """Return how surely the words are seen in each image [n]; None where no witness can tell them.

        Of several witnesses the surest counts; an image that none could look at is not a number.
        """
        every_row = np.arange(len(rows))
        chosen = every_row if self.most_asked is None else even_part(every_row, self.most_asked)
        found = [
            np.array([judge(said) if said else np.nan for said in texts], dtype=np.float64)
            for texts, judge in self._judged(rows[chosen], words)
        ]
        if not found:
            return None
        every = np.where(np.isnan(found), -np.inf, found).max(axis=0)
        scores = np.full(len(rows), np.nan, dtype=np.float32)
        scores[chosen] = np.where(np.isinf(every), np.nan, every)
        return scores

    def said(self, witness: Witness, rows: IntArray) -> list[str]:
        """Return what a witness says of images, one text a row; empty where it could not look.

        Raises:
            ModelError: if the witness cannot be asked at all.
        """
        said = np.full(len(rows), "", dtype=object)
        for class_name, places in self._groups(witness, rows):
            looker = witness.looker(class_name)
            said[places] = self._texts_of(witness, looker).said(rows[places], looker.speak)
        return [str(text) for text in said]

    def try_said(self, witness: Witness, rows: IntArray) -> list[str]:
        """Return what `said` returns; nothing, and a note, if the witness cannot be asked."""
        if witness.kind not in self.problems:
            try:
                return self.said(witness, rows)
            except WeakspotError as error:
                self.problems[witness.kind] = str(error)
        return [""] * len(rows)

    def _texts_of(self, witness: Witness, looker: Looker) -> ImageTexts:
        identity = looker.witness_id
        if identity not in self._texts:
            self._texts[identity] = ImageTexts(
                self.bench,
                who=f"witness {witness.kind!r}",
                part=looker,
                identity=lambda: identity,
                step=STAGE,
            )
        return self._texts[identity]

    def ids(self) -> dict[str, str]:
        """Return who can be asked, with hashes."""
        return {f"witness {one.kind}": one.looker(ANYTHING).witness_id for one in self.witnesses}

    def notes(self) -> tuple[str, ...]:
        """Return who could not be asked, in sentences."""
        return tuple(
            f"The witness {kind!r} was not asked: {why}" for kind, why in self.problems.items()
        )

    def _judged(self, rows: IntArray, words: str) -> Iterator[tuple[list[str], Judge]]:
        for witness in self.witnesses:
            if (judge := self._judge(witness, words)) is not None:
                said = self.try_said(witness, rows)
                if witness.kind not in self.problems:
                    yield said, judge

    def _judge(self, witness: Witness, words: str) -> Judge | None:
        if witness.kind in self.problems:
            return None
        try:
            return witness.judge(words)
        except WeakspotError as error:
            self.problems[witness.kind] = str(error)
            return None

    def _groups(self, witness: Witness, rows: IntArray) -> list[tuple[str, IntArray]]:
        """Return class names and the places of their rows; one group for a witness that looks at all classes alike."""
        dataset = self.bench.dataset
        if not witness.is_by_class or dataset.task is not Task.SINGLE_LABEL:
            return [(ANYTHING, np.arange(len(rows)))]
        names, codes = (*dataset.class_names, ANYTHING), dataset.labels[rows]
        return [(names[code], np.flatnonzero(codes == code)) for code in np.unique(codes)]


OBJECT, LOOK = "objects", "properties"


def tag_captions(seeing: Seeing, rows: IntArray) -> list[str]:
    """Return one caption a row, made of what each witness is sure of; empty where none could look.

    Raises:
        ModelError: if no witness can be asked.
    """
    phrases: list[dict[str, str]] = [{} for _ in rows]
    for witness in seeing.witnesses:
        for own, said in zip(phrases, seeing.try_said(witness, rows), strict=True):
            own.update({witness.kind: witness.phrase(said)} if said else {})
    if seeing.witnesses and all(one.kind in seeing.problems for one in seeing.witnesses):
        raise ModelError(" ".join(seeing.notes()))
    return [caption_of(one) if one else "" for one in phrases]


def caption_of(phrases: Mapping[str, str]) -> str:
    """Return a caption from what witnesses say, by kind.

    >>> caption_of({"text": "with text", "objects": "lemon", "scenes": "in a supermarket", "properties": "dark"})
    'a dark photo of a lemon with text, in a supermarket'
    >>> caption_of({"text": "", "objects": "", "masks": "green object"})
    'a photo, green object'
    """
    look, thing = phrases.get(LOOK, ""), phrases.get(OBJECT, "")
    caption = with_article(f"{look} photo".strip()) + (
        f" of {with_article(thing)}" if thing else ""
    )
    for kind, phrase in phrases.items():
        if phrase and kind not in {LOOK, OBJECT}:
            caption += f" {phrase}" if phrase.startswith("with ") else f", {phrase}"
    return caption


def tag_values(seeing: Seeing, rows: IntArray) -> dict[str, list[str]]:
    """Return the values of all attributes that witnesses give, by name, one a row; empty where they are not sure."""
    found: dict[str, list[str]] = {}
    for witness in seeing.witnesses:
        tags = [witness.tags(said) if said else {} for said in seeing.try_said(witness, rows)]
        names = dict.fromkeys(name for one in tags for name in one)
        found |= {name: [one.get(name, "") for one in tags] for name in names}
    return found


MIN_SAMPLES = 3
MAX_VALUES = 40


def witnessed_columns(
    seeing: Seeing, dataset: Dataset, settings: WitnessSettings, notes: list[str]
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield a column for every attribute of the witnesses; a value that few samples have is kept, one that hardly any has is not."""
    if settings.on == "asked" and len(dataset) > settings.most_images:
        notes.append(
            f"Witnesses were not asked about all {len(dataset)} images, more than witnesses.most_images; "
            'set [witnesses] on = "all" to ask them.'
        )
        return
    for name, values in tag_values(seeing, np.arange(len(dataset))).items():
        yield _column(name, values)
    notes += seeing.notes()


def _column(name: str, values: Sequence[str]) -> AssignedColumn | LeftOut:
    counts = Counter(value for value in values if value)
    kept = tuple(value for value, count in counts.most_common(MAX_VALUES) if count >= MIN_SAMPLES)
    if len(kept) < 2:  # noqa: PLR2004 - two values to tell apart
        return LeftOut(name=name, why="hardly any image has a second value of it")
    codes = {value: code for code, value in enumerate(kept)}
    attribute = Attribute(
        name=name,
        column=name,
        source="property",
        values=tuple(
            AttributeValue(value=value, share=round(counts[value] / len(values), 6))
            for value in kept
        ),
        missing_share=round(sum(value not in codes for value in values) / len(values), 6),
    )
    return AssignedColumn(
        attribute=attribute,
        column=words_column(np.array([codes.get(value, -1) for value in values]), kept),
    )
