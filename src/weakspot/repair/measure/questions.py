"""What makes two measurements of a repair the same question: the same samples, right before and right after."""

import hashlib
from collections.abc import Iterable

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.repair.measure.predictions import Result


def question_of(digest: str, parts: Iterable[tuple[Result, BoolArray | None]]) -> str:
    """Return the name of a question.

    Args:
        digest: of the measured samples.
        parts: classes, each with the samples of it that are meant; None for all.
    """
    content = hashlib.sha256(digest.encode())
    for one, chosen in parts:
        members = slice(None) if chosen is None else chosen
        content.update(f"\n{one.problem.title}\n".encode())
        content.update(one.positions[members].astype(np.int64).tobytes())
        content.update(np.packbits(one.right_before[members]).tobytes())
        content.update(np.packbits(one.right_after[members]).tobytes())
    return f"repair {content.hexdigest()[:24]}"
