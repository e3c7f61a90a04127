import json

import numpy as np
import pytest

from weakspot.core.errors import StoreError
from weakspot.core.run import RunRecord
from weakspot.gate.baseline import (
    Baseline,
    ClassPredictions,
    HeldOutPredictions,
    Packed,
    decode_baseline,
    encode_baseline,
)

RECORD = RunRecord(run_id="r", command="", started="2026-01-01", seed=0)


def _baseline(n_bits=3):
    bits = Packed.of_bits(np.array([True] * n_bits))
    predictions = HeldOutPredictions(
        keys=Packed.of_hashes([f"{place:016x}" for place in range(3)]),
        classes=(ClassPredictions(class_name="a", members=bits, failed=bits),),
    )
    return Baseline(run=RECORD, class_names=("a",), predictions=predictions)


def test_decoded__gives_back_what_was_encoded():
    assert decode_baseline(encode_baseline(_baseline()), where="here") == _baseline()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[]", "no baseline"),
        (b'{"kind": "something"}', "no baseline"),
        (b'{"kind": "weakspot baseline", "version": 2}', "newer weakspot"),
        (b'{"run_id": "a", "record_version": 99}', "newer weakspot"),
        (b'{"kind": "weakspot baseline"}', "1 fields are wrong or missing"),
        (b'{"run_id": "a"}', "fields are wrong or missing"),
    ],
)
def test_decoded__says_what_is_wrong(content, said):
    with pytest.raises(StoreError, match=said) as caught:
        decode_baseline(content, where="here")
    assert caught.value.where == "here"


def test_decoded__parts_of_different_sizes_are_refused():
    with pytest.raises(StoreError, match="do not fit together"):
        decode_baseline(encode_baseline(_baseline(n_bits=4)), where="here")


def test_decoded__any_cut_is_noticed():
    content = encode_baseline(_baseline())
    for length in range(0, len(content) - 2, 37):
        with pytest.raises(StoreError):
            decode_baseline(content[:length], where="here")


def test_decoded__changed_keys_are_noticed():
    given = json.loads(encode_baseline(_baseline()))
    data = given["predictions"]["keys"]["data"]
    given["predictions"]["keys"]["data"] = data[:9] + ("A" if data[9] != "A" else "B") + data[10:]
    with pytest.raises(StoreError, match="damaged"):
        decode_baseline(json.dumps(given).encode(), where="here")
