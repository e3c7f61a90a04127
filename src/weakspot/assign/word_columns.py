"""Attributes in words as columns: phrases to embeddings, calibrated on reference samples, told for every sample."""

from collections.abc import Iterator, Sequence

import numpy as np

from weakspot.assign.bins import words_column
from weakspot.assign.columns import AssignedColumn, LeftOut
from weakspot.assign.phrases import no_phrases
from weakspot.assign.zero_shot import (
    MISSING,
    UNSURE,
    Caution,
    Contrast,
    assigned,
    calibrated,
    half_prototypes,
    known_units,
)
from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.assistants import EmbedTexts
from weakspot.core.attributes import Attribute
from weakspot.core.run import Progress, no_progress


def word_columns(
    attributes: Sequence[Attribute],
    *,
    embed_texts: EmbedTexts,
    embeddings: FloatArray,
    reference: FloatArray,
    caution: Caution | None = None,
    progress: Progress = no_progress,
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield the column of every attribute, or why its values cannot be told.

    Args:
        attributes: with phrases for at least two values each.
        embed_texts: phrases to embeddings of the same space.
        embeddings: of all samples [n, d], may be memory-mapped; NaN where there is none.
        reference: embeddings [m, d] on which offsets and thresholds are found.
        caution: when a value is believed.
        progress: told how many samples are done.
    """
    care, units = caution or Caution(), known_units(reference)
    usable: list[tuple[Attribute, Contrast]] = []
    for attribute in attributes:
        prototypes = half_prototypes([value.phrases for value in attribute.values], embed_texts)
        absent = [
            place for place, value in enumerate(attribute.values) if value.phrases == no_phrases()
        ]
        contrast = calibrated(prototypes, units, care, without_floor=absent)
        obstacle = contrast.obstacle(care)
        if obstacle:
            yield LeftOut(name=attribute.name, why=obstacle)
        else:
            usable.append((attribute, contrast))
    codes = assigned([contrast for _, contrast in usable], embeddings, progress=progress)
    for (attribute, contrast), told in zip(usable, codes, strict=True):
        yield _column(attribute, contrast, told)


def _column(attribute: Attribute, contrast: Contrast, codes: IntArray) -> AssignedColumn | LeftOut:
    counts = np.bincount(codes[codes >= 0], minlength=contrast.n_values)
    if (counts > 0).sum() < 2:  # noqa: PLR2004 - two values to tell apart
        return LeftOut(
            name=attribute.name, why="all samples of which it is sure have the same value"
        )
    n_rows, n_missing = len(codes), int((codes == MISSING).sum())
    values = tuple(
        value.model_copy(update={"share": round(int(count) / n_rows, 6)})
        for value, count in zip(attribute.values, counts, strict=True)
    )
    update = {
        "values": values,
        "unsure_share": round(int((codes == UNSURE).sum()) / max(n_rows - n_missing, 1), 6),
        "missing_share": round(n_missing / n_rows, 6),
        "agreement": round(contrast.agreement, 6),
        "least_margin": round(contrast.least_margin, 6),
    }
    words = tuple(value.value for value in attribute.values)
    return AssignedColumn(
        attribute=attribute.model_copy(update=update), column=words_column(codes, words)
    )
