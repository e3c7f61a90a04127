import pytest

from weakspot.core.errors import DataError
from weakspot.ingest.predictions import PredictionsSource


def read_all(path, text):
    path.write_text(text)
    return list(PredictionsSource(location=str(path)).read())


def test_read__labels_predictions_and_free_columns(tmp_path):
    rows = read_all(tmp_path / "p.csv", "sample_id,label,prediction,split,colour,path\na7,cat,dog,test,red,x.jpg\n")
    (sample,) = rows
    assert (sample.key, sample.location, sample.data) == ("a7", None, None)
    assert (sample.labels, sample.predictions, sample.split) == (("cat",), ("dog",), "test")
    assert sample.metadata == {"colour": "red", "path": "x.jpg"}


def test_read__probabilities_alone(tmp_path):
    (sample,) = read_all(tmp_path / "p.csv", "label,prob_cat,prob_big dog\ncat,0.9,0.1\n")
    assert sample.probabilities == {"cat": 0.9, "big dog": 0.1}
    assert sample.predictions is None


def test_read__says_both_that_labels_and_predictions_are_missing(tmp_path):
    with pytest.raises(DataError) as caught:
        read_all(tmp_path / "p.csv", "colour\nred\n")
    assert "No column says what was predicted" in str(caught.value)
    assert "No column says what is true" in str(caught.value)
