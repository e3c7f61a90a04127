"""Captions of samples: given as a metadata column, or asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import IntArray
from weakspot.core.assistants import CaptionRows
from weakspot.core.errors import WeakspotError
from weakspot.core.samples import SampleSet


@dataclass(frozen=True, kw_only=True, eq=False)
class Captions:
    """What is known.

    Args:
        by_row: captions by row of the data set; rows without one are missing.
        problem: why there are none, or an empty text.
    """

    by_row: Mapping[int, str] = field(default_factory=dict)
    problem: str = ""

    def of(self, rows: IntArray) -> list[str]:
        """Return the captions of rows, empty where there is none."""
        return [self.by_row.get(int(row), "") for row in rows]


def read_captions(samples: SampleSet, wanted: Sequence[IntArray], *, column: str, ask: CaptionRows | None) -> Captions:
    """Return the captions of the wanted rows: from the column if it holds any, else from whoever can be asked.

    Args:
        samples: where the rows are.
        wanted: rows, class by class; a row may be wanted more than once and is asked for once.
        column: metadata column.
        ask: rows to captions, or None.
    """
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *wanted]))
    given = _from_column(samples, rows, column)
    if given or ask is None or not len(rows):
        return Captions(by_row=given)
    try:
        answers = ask(rows)
    except WeakspotError as error:
        return Captions(problem=f"The captioner could not be asked: {error}")
    if len(answers) != len(rows):
        return Captions(problem=f"The captioner gave {len(answers)} captions for {len(rows)} samples.")
    return Captions(by_row=_spoken(rows, answers))


def _from_column(samples: SampleSet, rows: IntArray, column: str) -> dict[int, str]:
    if column not in samples.dataset.metadata_names:
        return {}
    return _spoken(rows, samples.dataset.metadata(column).take(pa.array(rows)).to_pylist())


def _spoken(rows: IntArray, texts: Sequence[object]) -> dict[int, str]:
    return {int(row): text.strip() for row, text in zip(rows, texts, strict=True) if isinstance(text, str) and text.strip()}
