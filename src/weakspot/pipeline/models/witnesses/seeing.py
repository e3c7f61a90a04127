"""What independent witnesses see in the images of a data set, asked for only where somebody wants to know."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray, even_part
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import WeakspotError
from weakspot.core.roles import Engine
from weakspot.core.run import Progress
from weakspot.pipeline.models.image_texts import ImageTexts, Speaker
from weakspot.pipeline.models.witnesses.witness import Judge, Looker, Witness
from weakspot.store.project import ProjectStore

STAGE = "witnesses"
ANYTHING = "object"


@dataclass(kw_only=True, eq=False)
class Seeing:
    """Asks witnesses about rows: each image is looked at once by each witness that can tell the words, and that is kept.

    A witness that is not there, or fails, is left out for good and named in `problems`.

    Args:
        witnesses: who there is.
        dataset: whose rows are meant.
        store: the project's data.
        engine: reads and decodes images, and asks the models.
        progress_of: gives the progress callback of a step.
        most_asked: of more rows than this, so many at even steps are looked at and the others stay unknown; None for no end.
        problems: why a witness cannot be asked, by kind.
    """

    witnesses: tuple[Witness, ...]
    dataset: Dataset
    store: ProjectStore
    engine: Engine
    progress_of: Callable[[str], Progress]
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
            who = f"witness {witness.kind!r}"
            self._texts[identity] = ImageTexts(
                Speaker(who=who, part=looker, identity=lambda: identity),
                dataset=self.dataset,
                store=self.store,
                engine=self.engine,
                progress=self.progress_of(STAGE),
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

    def _judged(self, rows: IntArray, words: str) -> list[tuple[list[str], Judge]]:
        found = []
        for witness in self.witnesses:
            judge = self._judge(witness, words)
            if judge is not None:
                said = self.try_said(witness, rows)
                found += [(said, judge)] if witness.kind not in self.problems else []
        return found

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
        if not witness.is_by_class or self.dataset.task is not Task.SINGLE_LABEL:
            return [(ANYTHING, np.arange(len(rows)))]
        names = (*self.dataset.class_names, ANYTHING)
        codes = self.dataset.labels[rows]
        return [(names[code], np.flatnonzero(codes == code)) for code in np.unique(codes)]
