import pyarrow as pa
import pytest
from tests.data.ingest import assembling
from tests.data.ingest.assembling import assembled, table_of

from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.core.errors import DataError
from weakspot.core.generated import is_generated
from weakspot.data.assemble import MOVED_NOTE
from weakspot.data.source import generated_rows
from weakspot.data.table_source import ManifestSource


def sample(key, *, content=None, split=None, **metadata):
    return assembling.sample(key, "cat", content=content, split=split, metadata=metadata)


def splits(assembly):
    return [SPLIT_ORDER[code].value for code in assembly.splits]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, False),
        ({"synthetic": True}, True),
        ({"synthetic": 1}, True),
        ({"synthetic": 1.0}, True),
        ({"synthetic": " Yes "}, True),
        ({"synthetic": False}, False),
        ({"synthetic": 0}, False),
        ({"synthetic": None}, False),
        ({"generator": "a model"}, True),
        ({"generator": " "}, False),
        ({"generator": None}, False),
        ({"synthetic": False, "generator": "a diesel generator"}, False),
        ({"synthetic": None, "generator": "a model"}, True),
        ({"synthetic": "polyester"}, False),
    ],
)
def test_is_generated__what_columns_say(metadata, expected):
    assert is_generated(metadata) is expected


def test_generated_rows__only_rows_that_say_so():
    told = [
        None,
        '{"colour": "red"}',
        '{"synthetic": true}',
        '{"generator": "x", "n": 1}',
        '{"note": "a generator"}',
    ]
    assert generated_rows(pa.array(told, pa.string())).tolist() == [False, False, True, True, False]


def test_assemble__marked_samples_without_a_split_are_synthetic():
    made = assembled(
        [sample("a", synthetic=True), sample("b"), sample("c", generator="a model")],
        default_split=Split.TEST,
    )
    assert splits(made) == ["synthetic", "test", "synthetic"]
    assert not made.is_renamed.any()


def test_assemble__fractions_never_deal_out_generated_samples():
    real = [sample(f"r{number}", content=f"{number:032x}") for number in range(40)]
    fake = [
        sample(f"f{number}", content=f"{number + 99:032x}", generator="a model")
        for number in range(40)
    ]
    alone = assembled(real, validation_fraction=0.25, test_fraction=0.25)
    together = assembled(real + fake, validation_fraction=0.25, test_fraction=0.25)
    assert splits(together)[40:] == ["synthetic"] * 40
    # The real ones are dealt out as if the others were not there.
    assert splits(together)[:40] == splits(alone)
    assert splits(alone).count("train") == 20


@pytest.mark.parametrize("named", ["train", "pool"])
def test_assemble__naming_train_or_pool_makes_it_synthetic_with_a_note(named):
    made = assembled([sample("a", split=named, synthetic=True), sample("b", split=named)])
    assert splits(made) == ["synthetic", named]
    assert made.is_renamed.tolist() == [True, False]
    assert table_of(made).column("notes").to_pylist() == [[MOVED_NOTE], []]


@pytest.mark.parametrize("named", ["validation", "val", "test"])
def test_assemble__naming_a_verifying_split_is_refused(named):
    samples = [
        sample(f"x{number}", content=f"{number:032x}", split=named, generator="a model")
        for number in range(6)
    ]
    with pytest.raises(DataError, match=r"6 generated samples.*x0, x1, x2, x3, x4 and 1 more"):
        assembled([*samples, sample("real", split=named)])


def test_assemble__a_copy_of_a_generated_image_cannot_be_tested_on():
    same = "f" * 32
    with pytest.raises(DataError, match="1 generated samples.*: second"):
        assembled(
            [
                sample("first", content=same, synthetic=True),
                sample("second", content=same, split="test"),
            ]
        )
    copied = assembled(
        [sample("first", content=same, synthetic=True), sample("second", content=same)],
        default_split=Split.TEST,
    )
    assert splits(copied) == ["synthetic", "synthetic"]


def test_manifest__default_split_is_not_for_generated_rows(tmp_path):
    (tmp_path / "m.csv").write_text("path,label,generator\na.png,cat,\nb.png,cat,a model\n")
    source = ManifestSource(location=str(tmp_path / "m.csv"), default_split=Split.TEST)
    assert [one.split for one in source.read()] == ["test", "synthetic"]
