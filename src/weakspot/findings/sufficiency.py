"""Whether what was given is enough to say anything."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weakspot.core.errors import DataError
from weakspot.findings.given import GivenSamples
from weakspot.media.locations import is_local, local_path


def check_enough(samples: GivenSamples) -> None:
    """Refuse what says nothing of samples but labels and predictions.

    Raises:
        DataError: saying what is missing.
    """
    if not len(samples):
        raise DataError("There are no samples.", fix="Give labels of at least two classes.")
    if all(value is None for value in samples.labels):
        raise DataError("Not one sample has a label.", fix="Give labels: names or codes.")
    if samples.predictions is None or all(value is None for value in samples.predictions):
        raise DataError(
            "Nothing is known of what the classifier says.",
            fix="Give predictions, or probabilities, or a model.",
        )
    columns: Sequence[object] = () if samples.metadata is None else samples.metadata.column_names
    if samples.images is None and samples.embeddings is None and not columns:
        raise DataError(
            "Labels and predictions alone do not say what the failures have in common.",
            fix="Give images, embeddings or metadata of the samples, too.",
        )
    if samples.images is not None:
        _check_files(samples.images)


def _check_files(images: Sequence[Any]) -> None:
    """Refuse images of which not one is there."""
    for image in images:
        if not isinstance(image, (str, os.PathLike)):
            if image is not None:
                return
        elif not is_local(os.fspath(image)) or local_path(os.fspath(image)).is_file():
            return
    raise DataError(
        f"Not one of {len(images)} images is there.",
        given=next((os.fspath(image) for image in images if image is not None), None),
        fix=f"Correct the paths; relative ones start at {Path.cwd()}. Leave images out if there are none.",
    )
