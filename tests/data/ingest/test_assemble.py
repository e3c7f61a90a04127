import numpy as np
import pytest
from pydantic import ValidationError
from tests.data.ingest.assembling import assembled, sample, table_of

from weakspot.core.dataset import RawSample, Task
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.data.settings import DataSettings


def rows(assembly):
    return table_of(assembly).to_pylist()


def prediction(assembly, name):
    return np.concatenate([predictions[name] for _, predictions in assembly.batches()])


def test_assemble__classes_sorted_and_rows_in_order():
    made = assembled(
        [
            sample("a", "dog"),
            sample("b", "cat", split="Val"),
            sample("c", split="train"),
            sample("d", "cat"),
        ]
    )
    assert made.seen.class_names == ("cat", "dog")
    assert made.seen.task is Task.SINGLE_LABEL
    assert [(row["key"], row["label"], row["location"]) for row in rows(made)] == [
        ("a", 1, "a.jpg"),
        ("b", 0, "b.jpg"),
        ("c", -1, "c.jpg"),
        ("d", 0, "d.jpg"),
    ]
    assert rows(made)[1]["split"] == 1
    assert made.is_labelled.tolist() == [True, True, False, True]


def test_assemble__numbers_in_numerical_order():
    assert assembled([sample("a", "10"), sample("b", "9"), sample("c", "-1")]).seen.class_names == (
        "-1",
        "9",
        "10",
    )


def test_assemble__several_labels_make_it_multi_label():
    made = assembled([sample("a", "x", "y"), sample("b", "y"), sample("c")])
    assert made.seen.task is Task.MULTI_LABEL
    assert [row["labels"] for row in rows(made)] == [[0, 1], [1], None]


def test_assemble__multi_label_without_labels_can_mean_none():
    made = assembled(
        [sample("a", "x"), sample("b")], task=Task.MULTI_LABEL, unlabelled_is_negative=True
    )
    assert [row["labels"] for row in rows(made)] == [[0], []]
    assert made.is_labelled.tolist() == [True, True]


def test_assemble__all_problems_in_one_error():
    samples = [
        sample("a", "cat", split="trian", predictions=("fox",)),
        sample("b", "bird", probabilities={"cat": 0.5, "wolf": 0.5}),
        sample("c", "bird", "cat", probabilities={"cat": 7.5, "dog": -1.0}),
    ]
    with pytest.raises(DataError) as caught:
        assembled(samples, class_names=("cat", "dog"), task=Task.SINGLE_LABEL)
    message = str(caught.value)
    for part in (
        "'trian' is no split",
        "2 samples have the unknown label 'bird'; the classes are 'cat', 'dog' (b)",
        "1 samples have several labels",
        "predictions name the unknown class 'fox'",
        "probabilities name the unknown classes 'wolf'",
        "probabilities lack the classes 'dog'",
        "probabilities must lie in [0, 1]; are these logits? (c)",
        "Where: here",
    ):
        assert part in message


def test_assemble__mixed_label_types():
    samples = [sample("a", "1"), sample("b", "cat"), sample("c", "2")]
    with pytest.raises(DataError, match=r"mixed types: numbers \('1', '2'\) and words \('cat'\)"):
        assembled(samples)
    assert assembled(samples, class_names=("1", "2", "cat")).seen.class_names == ("1", "2", "cat")


def test_assemble__no_label_at_all():
    with pytest.raises(DataError, match="no sample has a label"):
        assembled([sample("a"), sample("b")])


def test_assemble__nothing_left_counts_reasons():
    samples = [RawSample(key=str(number), location=None, reason="truncated") for number in range(3)]
    samples.append(RawSample(key="9", location=None, reason="zero-bytes"))
    with pytest.raises(
        NotEnoughDataError, match="Not one of 4 samples can be used: 3 truncated, 1 zero-bytes"
    ):
        assembled(samples)


def test_assemble__empty_source():
    with pytest.raises(NotEnoughDataError, match="The source has no samples"):
        assembled([])


def test_assemble__quarantined_samples_do_not_shift_rows():
    bad = RawSample(key="bad", location="bad.jpg", reason="truncated", detail="cut")
    made = assembled([bad, sample("a", "x"), bad, sample("b", "y"), bad, bad, bad], part_size=2)
    assert [(row["key"], row["label"]) for row in rows(made)] == [("a", 0), ("b", 1)]
    assert sum(table.num_rows for table in made.quarantine()) == 5
    assert made.seen.reasons == {"truncated": 5}


def test_assemble__copies_get_ids_of_their_own_and_a_table():
    same = "ab" * 16
    samples = [
        sample("a", "x", content=same, split="train"),
        sample("b", "x", split="train"),
        sample("c", "y", content=same, split="test"),
        sample("d", "x", content=same, split="train"),
    ]
    made = assembled(samples, part_size=2)
    assert [row["sample_id"] for row in rows(made)] == [
        same,
        samples[1].content_hash,
        f"{same}-2",
        f"{same}-3",
    ]
    assert made.duplicates().to_pylist() == [
        {
            "content_hash": same,
            "n_samples": 3,
            "keys": ["a", "c", "d"],
            "splits": ["train", "test", "train"],
            "labels": ["x", "y", "x"],
            "crosses_splits": True,
            "has_conflicting_labels": True,
        }
    ]


def test_assemble__split_by_fractions_within_every_class():
    samples = [
        sample(f"{number:03d}", "x" if number < 40 else "y", content=f"{number:032x}")
        for number in range(60)
    ]
    made = assembled(samples, validation_fraction=0.25, test_fraction=0.2, seed=5)
    of_x = np.bincount(made.splits[:40], minlength=4).tolist()
    of_y = np.bincount(made.splits[40:], minlength=4).tolist()
    assert of_x == [22, 10, 8, 0]
    assert of_y == [11, 5, 4, 0]
    assert np.array_equal(
        made.splits,
        assembled(samples, validation_fraction=0.25, test_fraction=0.2, seed=5, part_size=7).splits,
    )
    assert not np.array_equal(
        made.splits, assembled(samples, validation_fraction=0.25, test_fraction=0.2, seed=6).splits
    )


def test_assemble__unlabelled_without_split_is_pool():
    made = assembled(
        [sample("a", "x"), sample("b"), sample("c", split="test")],
        test_fraction=1.0,
        validation_fraction=0.0,
    )
    assert made.splits.tolist() == [2, 3, 2]
    assert made.n_dealt == 1


def test_assemble__copies_fall_into_the_same_split():
    samples = [sample(f"{number:03d}", "x", content=f"{number // 2:032x}") for number in range(40)]
    splits = assembled(samples).splits.reshape(20, 2)
    assert (splits[:, 0] == splits[:, 1]).all()
    assert len(set(splits[:, 0].tolist())) == 3


def test_assemble__copy_of_a_sample_with_a_split_follows_it():
    samples = [sample(str(number), "x", content=f"{number % 2:032x}") for number in range(6)]
    samples.append(sample("given", "x", content=f"{1:032x}", split="test"))
    assert assembled(samples, validation_fraction=0.0, test_fraction=0.0).splits.tolist() == [
        0,
        2,
        0,
        2,
        0,
        2,
        2,
    ]


def test_assemble__given_predictions_and_probabilities():
    samples = [
        sample("a", "x", predictions=("y",), probabilities={"x": 0.75, "y": 0.25}),
        sample("b", "y", probabilities={"y": 1.0, "x": 0.0}),
        sample("c", "y"),
        sample("d", "y", predictions=("x",)),
    ]
    made = assembled(samples, part_size=2)
    assert prediction(made, "predictions").tolist() == [1, 1, -1, 0]
    np.testing.assert_array_equal(
        prediction(made, "probabilities"),
        np.array([[0.75, 0.25], [0, 1], [np.nan] * 2, [np.nan] * 2], dtype=np.float32),
    )


def test_assemble__given_multi_label_predictions():
    made = assembled(
        [
            sample("a", "x", "y", predictions=("y",)),
            sample("b", "x", predictions=()),
            sample("c", "y"),
        ]
    )
    assert prediction(made, "predicted_matrix").tolist() == [
        [False, True],
        [False, False],
        [False, False],
    ]
    assert "predictions" not in next(made.batches())[1]


def test_assemble__metadata_types_do_not_depend_on_parts():
    values = [1, 2.5, None, 3]
    mixed = [True, "b", 1, None]
    samples = [
        sample(
            str(place),
            "x",
            metadata={"number": values[place], "mixed": mixed[place], "flag": place > 1},
        )
        for place in range(4)
    ]
    for part_size in (1, 2, 4):
        found = rows(assembled(samples, part_size=part_size))
        assert [row["meta.number"] for row in found] == [1.0, 2.5, None, 3.0]
        assert [row["meta.mixed"] for row in found] == ["true", "b", "1", None]
        assert [row["meta.flag"] for row in found] == [False, False, True, True]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"validation_fraction": 0.6, "test_fraction": 0.6}, "must not exceed 1 together"),
        ({"validation_fraction": -0.1}, "greater than or equal to 0"),
        ({"class_names": ("a", "b", "a")}, r"repeats \['a'\]"),
    ],
)
def test_assembly_settings__nonsense(settings, message):
    with pytest.raises(ValidationError, match=message):
        DataSettings(**settings)


def test_assemble__dealt_splits_keep_groups_whole():
    names = [f"g{number // 4}" for number in range(80)]
    samples = [
        sample(f"s{number}", "ab"[number // 40], content=f"{number:032x}", metadata={"group": name})
        for number, name in enumerate(names)
    ]
    splits = assembled(samples).splits.reshape(20, 4)
    assert (splits == splits[:, :1]).all()
    assert len(np.unique(splits)) == 3
