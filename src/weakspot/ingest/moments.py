"""Images that one camera took within seconds: a burst may show one object."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.media.capture import CAMERA_BITS

LONGEST_PAUSE = 3
SMALL_BURST = 10
LARGEST_SHARE = 0.1


class Bursts(NamedTuple):
    """Images of a label that one camera took one shortly after the other.

    Args:
        n_images: images in bursts of several.
        n_bursts: the bursts.
        n_dated: images whose moment is known.
    """

    n_images: int = 0
    n_bursts: int = 0
    n_dated: int = 0


@dataclass(kw_only=True)
class MomentsSeen:
    """Moments of all parts that were looked at; eight bytes a sample, and nothing where a part has none."""

    _parts: list[AnyArray | None] = field(default_factory=list)
    _lengths: list[int] = field(default_factory=list)

    def observe(self, part: pa.Table) -> None:
        """Look at the samples of one part; parts of earlier versions do not say."""
        self._lengths.append(part.num_rows)
        column = part.column("moment") if "moment" in part.column_names else None
        is_empty = column is None or column.null_count == len(column)
        self._parts.append(
            None if column is None or is_empty else np.asarray(pc.fill_null(column, 0))
        )

    def moments(self) -> AnyArray | None:
        """Return the moment of every sample, 0 where it is not known [n]; None if it never is. Empties the parts."""
        if all(part is None for part in self._parts):
            return None
        found = [
            np.zeros(length, dtype=np.int64) if part is None else part
            for part, length in zip(self._parts, self._lengths, strict=True)
        ]
        self._parts.clear()
        return np.concatenate(found)


def find_bursts(moments: AnyArray | None, strata: IntArray, is_evaluated: BoolArray) -> Bursts:
    """Count bursts among the samples that failures are looked for on.

    A moment that very many share is that of a clock that was never set.

    Args:
        moments: when samples were taken and by which camera, 0 where it is not known [n]; None if it never is.
        strata: number of every sample's labels [n].
        is_evaluated: which samples count [n].
    """
    if moments is None:
        return Bursts()
    rows = np.flatnonzero(is_evaluated & (moments > 0))
    if not len(rows):
        return Bursts()
    cameras, seconds = moments[rows] & ((1 << CAMERA_BITS) - 1), moments[rows] >> CAMERA_BITS
    order = np.lexsort((seconds, cameras, strata[rows]))
    _, kinds = np.unique(strata[rows], return_inverse=True)
    ordered = [values[order] for values in (kinds, cameras, seconds)]
    begins = np.ones(len(rows), dtype=np.bool_)
    begins[1:] = (
        (np.diff(ordered[0]) != 0)
        | (np.diff(ordered[1]) != 0)
        | (np.diff(ordered[2]) > LONGEST_PAUSE)
    )
    sizes = np.diff(np.append(np.flatnonzero(begins), len(rows)))
    own = np.bincount(ordered[0])[ordered[0][begins]]
    is_burst = (sizes > 1) & (sizes <= np.maximum(SMALL_BURST, LARGEST_SHARE * own))
    return Bursts(int(sizes[is_burst].sum()), int(is_burst.sum()), len(rows))


def burst_sentence(bursts: Bursts) -> str:
    """Return what is to be said of bursts, empty if there are hardly any."""
    n_images, n_bursts, n_dated = bursts
    if n_images < SMALL_BURST:
        return ""
    return (
        f"{n_images:,} of {n_dated:,} evaluation images with a capture time come in {n_bursts:,} bursts that one camera took of one "
        f"class with at most {LONGEST_PAUSE} seconds in between. If a burst shows the same object, add a column that says which object "
        'an image shows, and write its name: [data] group = "..."; group = "none" says that it does not.'
    )
