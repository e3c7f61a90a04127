"""The list of what a repair trains on: a table for users' own training loops, read without a project and without torch."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from weakspot.core.arrays import DoubleArray
from weakspot.core.errors import DataError

COLUMNS = ("sample_id", "image", "label", "weight", "source")
_N_SHOWN = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingWeights:
    """Samples that a repair trains on.

    Args:
        sample_ids: one a sample.
        images: where the image is, empty without.
        labels: the label; several with `;` between them.
        weights: how much each counts; their mean is one.
        sources: train, pool or synthetic.
        where: the file, for messages.
    """

    sample_ids: tuple[str, ...]
    images: tuple[str, ...]
    labels: tuple[str, ...]
    weights: DoubleArray
    sources: tuple[str, ...]
    where: str = "training weights"

    def of(self, ids: Iterable[str]) -> DoubleArray:
        """Return the weight of samples named by id or by image; 0 for those that the repair does not train on.

        Raises:
            DataError: if an image is listed with different weights, so that only its sample id tells which is meant.
        """
        known = self._by_name
        found = np.array([known.get(name, 0.0) for name in ids], dtype=np.float64)
        if np.isnan(found).any():
            raise DataError(
                "An image is listed more than once, with different weights.",
                where=self.where,
                fix="Name samples by sample_id.",
            )
        return found

    def in_order_of(self, ids: Sequence[str]) -> DoubleArray:
        """Return one weight a sample of a data set that holds everything the repair trains on.

        Args:
            ids: sample id or image of every sample of the data set, in its order.

        Raises:
            DataError: if samples of the repair are not in the data set.
        """
        given = set(ids)
        pairs = zip(self.sample_ids, self.images, self.sources, strict=True)
        missing = [
            f"{image or name} ({source})"
            for name, image, source in pairs
            if name not in given and image not in given
        ]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(self.sample_ids)} samples of the repair are not in this data set, such as "
                f"{', '.join(missing[:_N_SHOWN])}.",
                where=self.where,
                fix="Add them to the data set, or give ids as sample_id or image has them.",
            )
        return self.of(ids)

    @cached_property
    def _by_name(self) -> Mapping[str, float]:
        """Return weights by image and by id; NaN for an image with several."""
        known: dict[str, float] = {}
        for image, weight in zip(self.images, self.weights.tolist(), strict=True):
            if image:
                known[image] = weight if known.get(image, weight) == weight else float("nan")
        return known | dict(zip(self.sample_ids, self.weights.tolist(), strict=True))


def read_training_weights(path: str | Path) -> TrainingWeights:
    """Read `training_weights.csv`.

    Raises:
        DataError: if columns are missing, or a weight is no number of at least zero; with the line.
    """
    place = Path(path)
    if not place.is_file():
        raise DataError("There is no such file.", where=str(path), fix="Correct the path.")
    try:
        with place.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            # Tables written before version 0.2 call the column `picture`.
            reader.fieldnames = [
                "image" if one == "picture" else one for one in reader.fieldnames or ()
            ]
            missing = [name for name in COLUMNS if name not in reader.fieldnames]
            if missing:
                raise DataError(
                    f"These columns are missing: {', '.join(missing)}.",
                    where=str(path),
                    fix="Use the file as written.",
                )
            rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            "This is no table of text.", where=str(path), fix="Use the file as written."
        ) from error
    if not rows:
        raise DataError("The table has no rows.", where=str(path))
    columns = {name: tuple(str(row[name] or "") for row in rows) for name in COLUMNS}
    return TrainingWeights(
        sample_ids=columns["sample_id"],
        images=columns["image"],
        labels=columns["label"],
        weights=_numbers(columns["weight"], where=str(path)),
        sources=columns["source"],
        where=str(path),
    )


def checked_weights(weights: object, *, where: str) -> DoubleArray:
    """Return weights as numbers [n] if they can be drawn by: none negative, some positive.

    Raises:
        DataError: with the first position that is wrong.
    """
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.ndim != 1 or not len(numbers):
        raise DataError("Weights are one number a sample.", where=where, given=numbers.shape)
    wrong = np.flatnonzero(~np.isfinite(numbers) | (numbers < 0))
    if len(wrong):
        raise DataError(
            f"The weight at position {wrong[0]} cannot be used.",
            where=where,
            given=float(numbers[wrong[0]]),
        )
    if not numbers.any():
        raise DataError("All weights are zero.", where=where)
    return numbers


def _numbers(texts: Sequence[str], *, where: str) -> DoubleArray:
    numbers = np.empty(len(texts), np.float64)
    for position, text in enumerate(texts):
        try:
            numbers[position] = float(text)
        except ValueError as error:
            raise DataError(
                "A weight is no number.", where=f"{where}, line {position + 2}", given=text
            ) from error
    return checked_weights(numbers, where=where)
