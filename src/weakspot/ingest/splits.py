"""Names of splits, as people write them."""

import re

from weakspot.core.dataset import Split

_SYNONYMS: dict[Split, tuple[str, ...]] = {
    Split.TRAIN: ("train", "training", "trn"),
    Split.VALIDATION: ("validation", "val", "valid", "validate", "dev", "development"),
    Split.TEST: ("test", "testing", "tst"),
    Split.POOL: ("pool", "unlabelled", "unlabeled", "unsupervised"),
    Split.SYNTHETIC: ("synthetic",),
}
_BY_NAME = {name: split for split, names in _SYNONYMS.items() for name in names}
_LEADING_WORD = re.compile(r"^[A-Za-z]+")


def parse_split(name: str) -> Split | None:
    """Return the split that a name means, or None when it means none.

    >>> parse_split("Val"), parse_split("unlabeled"), parse_split("green")
    (<Split.VALIDATION: 'validation'>, <Split.POOL: 'pool'>, None)
    """
    return _BY_NAME.get(name.strip().lower())


def split_of_file_name(relative: str) -> Split | None:
    """Return the split that a shard's path tells: the first word of its name, else a folder above it.

    >>> split_of_file_name("data/train-00001-of-00004.parquet")
    <Split.TRAIN: 'train'>
    """
    *folders, name = relative.replace("\\", "/").split("/")
    word = _LEADING_WORD.match(name)
    found = parse_split(word.group()) if word else None
    for folder in reversed(folders):
        found = found or parse_split(folder)
    return found


def split_names() -> str:
    return ", ".join(_BY_NAME)
