"""Generated samples: how sources mark them, and that none of them is ever verified on."""

import json
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray
from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.core.errors import DataError
from weakspot.core.generated import MAKER, MARK, is_generated

_SYNTHETIC = SPLIT_ORDER.index(Split.SYNTHETIC)
_VERIFYING = [SPLIT_ORDER.index(split) for split in (Split.VALIDATION, Split.TEST)]
_MAX_NAMED = 5


def generated_rows(metadata: pa.Array | pa.ChunkedArray) -> BoolArray:
    """Return which samples were generated [n], given their free columns as JSON objects or null."""
    marks = f'"({MARK}|{MAKER})": '
    candidates = np.flatnonzero(
        np.asarray(pc.fill_null(pc.match_substring_regex(metadata, marks), fill_value=False))
    )
    found = np.zeros(len(metadata), dtype=np.bool_)
    found[candidates] = [is_generated(json.loads(metadata[int(row)].as_py())) for row in candidates]
    return found


def generated_values(columns: Mapping[str, pa.Array], n_rows: int) -> BoolArray:
    """Return which samples were generated [n], given their free columns as values."""
    told = {name: columns[name].to_pylist() for name in (MARK, MAKER) if name in columns}
    if not told:
        return np.zeros(n_rows, dtype=np.bool_)
    rows = zip(*told.values(), strict=True)
    return np.array([is_generated(dict(zip(told, row, strict=True))) for row in rows], np.bool_)


def put_apart(
    given: AnyArray, is_marked: BoolArray, first_rows: AnyArray
) -> tuple[AnyArray, BoolArray]:
    """Return splits with every generated sample in `synthetic`, and which samples must not be where they are [n].

    A copy of a generated image is a generated image, whatever its own row says.

    Args:
        given: position of the given split in `SPLIT_ORDER`, -1 where none is given [n].
        is_marked: which samples the source calls generated [n].
        first_rows: the first row with the same content, itself if it is the first [n].
    """
    of_first = np.zeros(len(given), dtype=np.bool_)
    of_first[first_rows[is_marked | (given == _SYNTHETIC)]] = True
    is_ours = of_first[first_rows]
    return np.where(is_ours, _SYNTHETIC, given).astype(np.int8), is_ours & np.isin(
        given, _VERIFYING
    )


def refuse_verifying(is_wrong: BoolArray, keys: Iterable[str], *, where: str) -> None:
    """Raise if a generated sample is to be verified on.

    Args:
        is_wrong: which samples those are [n].
        keys: what all samples are called, in order; only read if there is something to say.
        where: the source.

    Raises:
        DataError: with their number and the first of them.
    """
    n_wrong = int(is_wrong.sum())
    if not n_wrong:
        return
    named: list[str] = []
    for key, wrong in zip(keys, is_wrong.tolist(), strict=True):
        named += [key] * wrong
        if len(named) == _MAX_NAMED:
            break
    more = f" and {n_wrong - len(named)} more" if n_wrong > len(named) else ""
    raise DataError(
        f"{n_wrong} generated samples, or copies of them, are put into validation or test: {', '.join(named)}{more}. "
        "What a classifier does on generated images proves nothing about real ones.",
        where=where,
        fix="Name the split synthetic for them, or none; if they are real, set their column synthetic to false.",
    )
