"""Corrected labels: laid over what the source gives, and remembered as corrected."""

import pytest

from weakspot.core.dataset import as_given, dataset_from_columns
from weakspot.core.errors import StoreError
from weakspot.store.corrections import CORRECTIONS_FILE, Correction, CorrectionFile

IDS = ["a" * 32, "b" * 32, "c" * 32]


def _dataset():
    return dataset_from_columns(class_names=["cat", "dog"], labels=[0, 1, 1], sample_ids=IDS)


def _correction(sample_id, before, label):
    return Correction(
        sample_id=sample_id, file="x.jpg", before=before, label=label, by="Ada", time="2026-01-01"
    )


def test_apply__label_and_unusable__labels_change_and_as_given_gives_them_back(tmp_path):
    file = CorrectionFile(tmp_path)
    written = file.write(
        [_correction(IDS[1], ("dog",), ("cat",)), _correction(IDS[2], ("dog",), None)]
    )
    found = written.apply(_dataset())
    assert found.labels.tolist() == [0, 0, -1]
    assert as_given(found).labels.tolist() == [0, 1, 1]
    assert CorrectionFile(tmp_path).read() == written


def test_apply__source_has_changed_since__left_alone(tmp_path):
    written = CorrectionFile(tmp_path).write(
        [
            _correction(IDS[0], ("dog",), ("dog",)),
            _correction(IDS[1], ("dog",), ("horse",)),
            _correction("gone", ("dog",), ("cat",)),
        ]
    )
    assert written.apply(_dataset()).labels.tolist() == [0, 1, 1]


def test_apply__several_labels__none_of_them_is_not_unlabelled(tmp_path):
    dataset = dataset_from_columns(
        class_names=["cat", "dog"], label_lists=[[0, 1], [1], [0]], sample_ids=IDS
    )
    written = CorrectionFile(tmp_path).write(
        [
            _correction(IDS[0], ("dog", "cat"), ("dog",)),
            _correction(IDS[1], ("dog",), ()),
            _correction(IDS[2], ("cat",), None),
        ]
    )
    found = CorrectionFile(tmp_path).read().apply(dataset)
    assert found.label_matrix.tolist() == [[False, True], [False, False], [False, False]]
    assert found.is_labelled.tolist() == [True, True, False]
    assert written.mark


def test_write__nothing__no_file_and_no_mark(tmp_path):
    file = CorrectionFile(tmp_path)
    first = file.write([_correction(IDS[1], ("dog",), ("cat",))])
    assert first.mark != file.write([_correction(IDS[1], ("dog",), None)]).mark
    assert file.write([]).mark == ""
    assert not (tmp_path / CORRECTIONS_FILE).exists()


def test_read__no_table__refused(tmp_path):
    (tmp_path / CORRECTIONS_FILE).write_text("nonsense\n1\n")
    with pytest.raises(StoreError, match="cannot be read"):
        CorrectionFile(tmp_path).read()
