import json
import pickle

import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.expected_files import require_data
from weakspot_lab.reproduce.metashift_files import (
    METASHIFT,
    METASHIFT_MIXED,
    read_metashift,
    read_mixed_metashift,
)


def _touch(folder, numbers):
    folder.mkdir(parents=True)
    for number in numbers:
        (folder / f"{number}.jpg").touch()


@pytest.fixture
def subsets(tmp_path):
    """The folders of MetaShift-Cat-Dog-indoor-outdoor; the subset of cats outdoors is as large as that of the authors."""
    for place, (path, size) in enumerate(
        {
            "train/cat/cat(indoor)": 994,
            "train/dog/dog(outdoor)": 497,
            "test/cat/cat(outdoor)": 400,
            "test/dog/dog(indoor)": 3,
        }.items()
    ):
        _touch(tmp_path / path, range(1000 * place, 1000 * place + size))
    return tmp_path


def _counts(found, label, value):
    own = (found.labels == label) & (found.attributes == value)
    return [int((found.splits[own] == name).sum()) for name in ("test", "train", "validation")]


def test_read_metashift__subsets_are_dealt_out_as_the_authors_do(subsets):
    assert require_data(subsets, [METASHIFT, METASHIFT_MIXED], paper="p") is METASHIFT
    found = read_metashift(subsets, seed=0)
    assert (found.class_names, found.values) == (("cat", "dog"), ("indoor", "outdoor"))
    assert _counts(found, 0, 0) == [144, 750, 100]
    assert _counts(found, 0, 1) == [144, 100, 50]
    assert _counts(found, 1, 1) == [72, 375, 50]
    assert sum(_counts(found, 1, 0)) == 3
    assert len(set(found.paths)) == len(found.paths)
    assert found.paths[0].parent.name == "cat(indoor)"
    assert read_metashift(subsets, seed=0).paths == found.paths
    assert read_metashift(subsets, seed=1).paths != found.paths


def test_read_metashift__a_subset_of_two_images(subsets):
    (subsets / "test/dog/dog(indoor)/3000.jpg").unlink()
    with pytest.raises(DataError, match="too few") as caught:
        read_metashift(subsets, seed=0)
    assert caught.value.given == 2
    assert "dog(indoor)" in caught.value.where


@pytest.fixture
def mixed(tmp_path):
    """The folders of MetaShift-subpopulation-shift, with the groups as JSON."""
    groups = {}
    for part, size in (("train", 4), ("val_out_of_domain", 6)):
        for name, first in (("cat", 0), ("dog", 100)):
            start = first + (50 if part != "train" else 0)
            _touch(tmp_path / part / name, range(start, start + size))
            for number in range(start, start + size):
                groups[str(number)] = [f"{name}({'indoor' if number % 2 else 'outdoor'})"]
    (tmp_path / "imageID_to_group.json").write_text(json.dumps(groups))
    return tmp_path


def test_read_mixed_metashift__groups_by_image_and_a_third_for_validation(mixed):
    assert require_data(mixed, [METASHIFT, METASHIFT_MIXED], paper="p") is METASHIFT_MIXED
    found = read_mixed_metashift(mixed)
    for label in (0, 1):
        for value in (0, 1):
            assert _counts(found, label, value) == [2, 2, 1]
    by_name = dict(zip((one.stem for one in found.paths), found.attributes.tolist(), strict=True))
    assert (by_name["1"], by_name["2"]) == (0, 1)


def test_require_data__the_pickle_of_groups_is_not_opened(mixed):
    class Harm:
        def __reduce__(self):
            return (open, (str(mixed / "harmed"), "w"))

    (mixed / "imageID_to_group.json").unlink()
    (mixed / "imageID_to_group.pkl").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(DataError, match="MetaShift, mixed") as caught:
        require_data(mixed, [METASHIFT, METASHIFT_MIXED], paper="p")
    assert caught.value.given == ["imageID_to_group.json"]
    assert "not opened" in caught.value.fix
    assert "json.dump" in caught.value.fix
    assert caught.value.exit_code == 2
    assert not (mixed / "harmed").exists()


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("{", "cannot be read"),
        ('{"0": []}', "cannot be read"),
        ('{"0": ["cat(indoor)"]}', "in no group"),
        ('{"0": ["bear(indoor)"]}', "no such group"),
    ],
)
def test_read_mixed_metashift__groups_that_do_not_fit(mixed, groups, said):
    (mixed / "imageID_to_group.json").write_text(groups)
    with pytest.raises(DataError, match=said) as caught:
        read_mixed_metashift(mixed)
    assert caught.value.fix
