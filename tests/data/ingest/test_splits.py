import pytest

from weakspot.core.dataset import Split
from weakspot.data.source import parse_split, split_of_file_name


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


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("train-00000-of-00001.parquet", Split.TRAIN),
        ("validation.parquet", Split.VALIDATION),
        ("test/part-0.parquet", Split.TEST),
        ("synthetic-0.parquet", Split.SYNTHETIC),
        ("trainer-0.parquet", None),
        ("0001.parquet", None),
    ],
)
def test_split_of_file_name__cases(path, split):
    assert split_of_file_name(path) == split
