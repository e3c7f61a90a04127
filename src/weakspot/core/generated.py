"""How samples say that a model made them."""

from collections.abc import Mapping
from math import isnan

MARK, MAKER = "synthetic", "generator"
_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


def is_generated(metadata: Mapping[str, object]) -> bool:
    """Return whether free columns say that a sample was generated: `synthetic` is true, or else a `generator` is named.

    >>> [is_generated(told) for told in ({"synthetic": True}, {"generator": "a model"}, {"synthetic": "no", "generator": "diesel"})]
    [True, True, False]
    """
    mark = metadata.get(MARK)
    said = str(int(mark) if mark in (0, 1) else mark).strip().lower()
    if said in _YES | _NO:
        return said in _YES
    maker = metadata.get(MAKER)
    is_missing = maker is None or (isinstance(maker, float) and isnan(maker))
    return not is_missing and bool(str(maker).strip())
