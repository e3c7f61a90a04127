import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.failures import FailureCriterion
from weakspot.generate.adversarial_sources import (
    Baselines,
    captions_of_table,
    chosen_rows,
    failed_rows,
)

BASELINES = Baselines(
    class_names=("fly", "bee"),
    template="a photo of {a class} ({parent}).",
    parents={"bee": "animal"},
)


def _table(path, text):
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def test_captions_of_table__all_sentences_are_taken_and_equal_captions_are_one(tmp_path):
    text = "\ufefflabel,caption\nfly,It is wet. It is dark. It is far.\nbee,dots\nfly,it is wet. it is dark. it is far\n"
    first, second = captions_of_table(_table(tmp_path / "c.csv", text), BASELINES)
    assert first.prompt == "a photo of a fly (insect). it is wet. it is dark. it is far."
    assert first.origins == ("c.csv:2", "c.csv:4")
    assert second.prompt == "a photo of a bee (animal). dots."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "lacks the columns"),
        ("", "lacks the columns"),
        ("label,caption\n", "has no captions"),
        (
            "label,caption\nwasp,it is wet\nfly,\nfly\n",
            r"line 2: there is no class 'wasp'(.|\n)*line 3(.|\n)*line 4: the caption",
        ),
        (b"label,caption\nfly,\xff\xfe\n", "no CSV file"),
        (b'label,caption\nfly,"' + b"x" * 200_000 + b'"\n', "no CSV file"),
    ],
)
def test_captions_of_table__what_is_wrong_is_said(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        captions_of_table(_table(tmp_path / "c.csv", text), BASELINES)


def test_captions_of_table__no_such_file(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        captions_of_table(tmp_path / "absent.csv", BASELINES)


def test_failed_rows__only_validation_and_test():
    dataset = dataset_from_columns(
        class_names=["fly", "bee"],
        labels=[0, 0, 1, 1],
        splits=["train", "test", "validation", "test"],
        predictions=np.array([1, 1, 0, 1]),
    )
    assert failed_rows(dataset, FailureCriterion()).tolist() == [1, 2]
    right = dataset.with_predictions(predictions=dataset.labels)
    with pytest.raises(NotEnoughDataError, match="fails on no validation or test sample"):
        failed_rows(right, FailureCriterion())


def test_chosen_rows__the_same_ones_every_time_and_in_order():
    rows = np.arange(100, 200)
    chosen = chosen_rows(rows, 10, seed=1)
    assert len(set(chosen.tolist())) == 10
    assert (np.diff(chosen) > 0).all()
    assert chosen.tolist() == chosen_rows(rows, 10, seed=1).tolist()
    assert chosen_rows(rows, 100, seed=1).tolist() == rows.tolist()
