"""What was measured of the words that the describer may say, for the text side that ships."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.assistants import LEAST_AREA
from weakspot.core.text_memory import bare_phrase

CARD_PATH = Path(__file__).parent / "weights" / "word_card.json"


@cache
def measured_areas() -> dict[str, float]:
    """Return the held-out area under the curve of every word that could be measured, by bare phrase."""
    return _areas("words")


@cache
def _areas(part: str) -> dict[str, float]:
    rows = json.loads(CARD_PATH.read_text(encoding="utf-8"))[part]
    return {bare_phrase(row["word"]): row["auc"] for row in rows if row["auc"] is not None}


def areas_of(phrases: Sequence[str]) -> FloatArray:
    """Return the held-out area under the curve of words and kinds [m], not a number for one that was not measured.

    A kind was told from the photographs of its relatives, so it counts only where a kind is meant, and not for what people type.
    """
    areas = {**_areas("kinds"), **measured_areas()}
    return np.array([areas.get(bare_phrase(one), np.nan) for one in phrases], dtype=np.float32)


def judged(phrases: Sequence[str], trust: FloatArray) -> FloatArray:
    """Return how well phrases are known [m]: 1 or 0 for those that were measured, as they reach the floor, else their trust."""
    areas = measured_areas()
    found = [areas.get(bare_phrase(phrase)) for phrase in phrases]
    return np.array(
        [
            own if area is None else float(area >= LEAST_AREA)
            for area, own in zip(found, trust, strict=True)
        ],
        dtype=np.float32,
    )
