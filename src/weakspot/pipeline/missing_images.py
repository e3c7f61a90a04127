"""Whether the images of a project are still where they were: a folder that was moved must not pass for images that cannot be read."""

import os

import numpy as np

from weakspot.core.dataset import Dataset
from weakspot.core.record import Record
from weakspot.media.locations import is_local, local_path, split_range

LOOKED_AT = 60
FIX = (
    "Put the folder with the images back, or give its new place under [data] in weakspot.toml and run `weakspot ingest`; what was "
    "computed of images is kept."
)


class MissingImages(Record):
    """Images that are not where they were.

    Args:
        n_missing: how many of those that were looked at are gone.
        n_looked_at: how many were looked at, evenly over all.
        example: one place where an image is missing.
    """

    n_missing: int
    n_looked_at: int
    example: str

    @property
    def sentence(self) -> str:
        """Return what is wrong, without a place on this machine."""
        share = "None" if self.n_missing == self.n_looked_at else f"{self.n_missing}"
        verb = "cannot" if share != "None" else "can"
        return f"{share} of {self.n_looked_at} images that were looked at {verb} be found."

    @property
    def notice(self) -> str:
        """Return what is wrong, where, and what to do."""
        return f"{self.sentence} The first is {self.example}. {FIX}"


def find_missing_images(dataset: Dataset) -> MissingImages | None:
    """Look at some images on this machine, None if all are there."""
    if not dataset.has_images:
        return None
    rows = np.unique(
        np.linspace(0, len(dataset) - 1, min(LOOKED_AT, len(dataset))).astype(np.int64)
    )
    places = [split_range(place)[0] for place in dataset.locations(rows) if place is not None]
    local = [str(local_path(place)) for place in places if is_local(place)]
    missing = [path for path in local if not os.path.exists(path)]
    if not missing:
        return None
    return MissingImages(n_missing=len(missing), n_looked_at=len(local), example=missing[0])
