import pytest

from weakspot.core.dataset import Split
from weakspot.data.source import parse_split


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("training", Split.TRAIN),
        ("VAL", Split.VALIDATION),
        ("valid", Split.VALIDATION),
        ("dev", Split.VALIDATION),
        (" test ", Split.TEST),
        ("unlabelled", Split.POOL),
        ("unlabeled", Split.POOL),
        ("Synthetic", Split.SYNTHETIC),
        ("trains", None),
    ],
)
def test_parse_split__synonyms(name, split):
    assert parse_split(name) == split
