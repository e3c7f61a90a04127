"""The samples that failures were looked for in, by their place in what was given."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.samples import SampleSet
from weakspot.findings.folder import place_of
from weakspot.media.images import jpeg_at


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluatedSamples:
    """The samples of a run that have labels and predictions.

    Args:
        samples: only these.
        criterion: what counts as a failure.
    """

    samples: SampleSet
    criterion: FailureCriterion

    @cached_property
    def problems(self) -> tuple[ClassProblem, ...]:
        return tuple(class_problems(self.samples.dataset, self.samples.rows, self.criterion))

    def places(self, rows: IntArray) -> IntArray:
        """Return the places of rows of the data set in what was given."""
        keys = self.samples.dataset.table.column("key").take(rows).to_pylist()
        return np.array([place_of(key) for key in keys], dtype=np.int64)

    def thumbnails(self, sample_ids: Iterable[str], side: int) -> dict[str, bytes]:
        """Return JPEG files of samples by id; those without an image that can be read are left out."""
        wanted = set(sample_ids)
        dataset, rows = self.samples.dataset, self.samples.rows
        places = zip(dataset.sample_ids(rows), dataset.locations(rows), strict=True)
        made = {name: jpeg_at(location, side) for name, location in places if name in wanted}
        return {name: data for name, data in made.items() if data is not None}
