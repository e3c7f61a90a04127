import io
import json
import tarfile

import numpy as np
import pyarrow as pa
import pytest
from tests.data.ingest import assembling
from tests.data.ingest.assembling import assembled, table_of

from weakspot.core.dataset import SPLIT_ORDER, ExaminedSample, Split
from weakspot.core.errors import DataError
from weakspot.core.generated import is_generated
from weakspot.data.assemble import MOVED_NOTE
from weakspot.data.source import generated_rows, put_apart, refuse_verifying
from weakspot.data.table_source import ManifestSource
from weakspot.data.webdataset import WebDatasetSource


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


def test_put_apart__copies_of_generated_images_are_generated():
    given = np.array([-1, 0, 2, 3, 4, 1], dtype=np.int8)
    marked = np.array([True, False, False, False, False, False])
    # Rows 1 and 2 hold the same image as row 0, row 5 the same as row 4, whose split is synthetic.
    found, wrong = put_apart(given, marked, np.array([0, 0, 0, 3, 4, 4]))
    assert found.tolist() == [4, 4, 4, 3, 4, 4]
    assert wrong.tolist() == [False, False, True, False, False, True]


def test_refuse_verifying__names_five_and_counts_all():
    with pytest.raises(
        DataError, match=r"7 generated samples.*: b, c, d, e, f and 2 more"
    ) as caught:
        refuse_verifying(np.array([False] + [True] * 7), iter("abcdefgh"), where="here")
    assert "synthetic" in caught.value.fix
    assert caught.value.where == "here"


def test_refuse_verifying__nothing_wrong_reads_nothing():
    def never():
        raise AssertionError
        yield ""

    refuse_verifying(np.zeros(3, dtype=bool), never(), where="here")


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


def test_manifest__a_named_split_stays_and_is_judged_later(tmp_path):
    (tmp_path / "m.csv").write_text(
        "path,label,synthetic,split\na.png,cat,true,test\nb.png,cat,false,test\n"
    )
    found = list(ManifestSource(location=str(tmp_path / "m.csv")).read())
    assert [(one.split, one.metadata["synthetic"]) for one in found] == [
        ("test", True),
        ("test", False),
    ]
    samples = [
        ExaminedSample(raw=one, content_hash=f"{place:032x}") for place, one in enumerate(found)
    ]
    with pytest.raises(DataError, match="1 generated samples.*: row 1"):
        assembled(samples)


def test_webdataset__json_beside_the_image_marks_it(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, said in (
            ("a", {"label": "cat", "generator": "a model"}),
            ("b", {"label": "cat"}),
        ):
            for extension, content in (("jpg", b"image"), ("json", json.dumps(said).encode())):
                info = tarfile.TarInfo(f"{name}.{extension}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    for shard, expected in (
        ("shard-0.tar", ["synthetic", "train"]),
        ("synthetic-0.tar", ["synthetic", "synthetic"]),
    ):
        (tmp_path / shard).write_bytes(buffer.getvalue())
        source = WebDatasetSource(location=str(tmp_path / shard), default_split=Split.TRAIN)
        assert [one.split for one in source.read()] == expected
    (tmp_path / "test-0.tar").write_bytes(buffer.getvalue())
    assert [
        one.split for one in WebDatasetSource(location=str(tmp_path / "test-0.tar")).read()
    ] == ["test", "test"]
