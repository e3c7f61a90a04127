"""Three lines from what is in memory to findings: arrays, tables, images, data sets and models."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import weakspot
from weakspot.core.errors import ConfigError, DataError
from weakspot.project.project import Project

TILES = {"red": (200, 40, 40), "green": (110, 180, 70), "blue": (40, 60, 200)}


def tiles_of(fruit):
    tiles = []
    for place, colour in enumerate(fruit.columns["colour"]):
        tile = np.full((8, 8, 3), TILES[colour], dtype=np.uint8)
        tile[-1, -1] = (place // 256, place % 256, 0)  # no two are the same file
        tiles.append(tile)
    return tiles


def test_find__arrays_and_columns__the_slice_with_its_members(fruit):
    findings = weakspot.find(
        labels=fruit.labels,
        predictions=fruit.predictions,
        class_names=fruit.names,
        metadata=fruit.columns,
    )

    assert findings[0].title == "apple: green"
    assert sorted(findings[0].members) == np.flatnonzero(fruit.is_hard).tolist()
    assert (findings[0].failed == fruit.has_failed[findings[0].members]).all()
    record = findings.record
    assert len(repr(record)) < 200
    assert "first: apple: green" in repr(record)
    assert record._repr_html_().count("<tr>") == 1 + len(findings)


def test_find__data_frame_only(fruit):
    import pandas as pd

    frame = pd.DataFrame(
        {
            "label": pd.Categorical.from_codes(fruit.labels, fruit.names),
            "prediction": np.array(fruit.names)[fruit.predictions],
            **fruit.columns,
        }
    )

    table = weakspot.find(frame).table

    assert isinstance(table, pd.DataFrame)
    assert table.loc[0, "title"] == "apple: green"
    assert table.loc[0, "samples"] == fruit.is_hard.sum()
    assert table.loc[0, "gap_low"] < table.loc[0, "gap"] < table.loc[0, "gap_high"]


@pytest.mark.parametrize("form", ["arrow", "reader", "rows"])
def test_find__other_tables(fruit, form):
    columns = {"label": fruit.labels, "prediction": fruit.predictions, **fruit.columns}
    table = pa.table({name: list(values) for name, values in columns.items()})
    given = {
        "arrow": table,
        "reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "rows": table.to_pylist(),
    }[form]

    findings = weakspot.find(given)

    assert findings[0].title == "0: green"
    assert findings.arrow.column("class").to_pylist()[0] == "0"


def test_find__images_in_memory__are_shown_and_the_folder_is_a_project(fruit, tmp_path):
    findings = weakspot.find(
        images=tiles_of(fruit),
        labels=fruit.labels,
        predictions=fruit.predictions,
        class_names=fruit.names,
        embeddings=fruit.embeddings,
        groups=np.arange(len(fruit.labels)),
        folder=tmp_path / "kept",
    )

    assert len(findings) == 1
    members = findings[0].members
    assert fruit.is_hard[members].mean() > 0.9
    with Image.open(findings[0].images[0]) as first:
        assert first.size == (8, 8)
        assert np.asarray(first)[0, 0].tolist() == tiles_of(fruit)[members[0]][0, 0].tolist()
    assert findings[0].plot().width > 4 * 112
    assert findings._repr_html_().count("<img") == 16
    assert Project.open(tmp_path / "kept").run_record().run_id == findings.record.run_id
    assert not (tmp_path / "kept" / "report.html").exists()  # it is written when it is asked for


def test_find__training_samples__tell_the_cause(fruit):
    draws = np.random.default_rng(1)
    colour = draws.choice(["red", "green", "blue"], 900, p=[0.75, 0.005, 0.245])
    embeddings = draws.normal(0, 0.3, (900, 6))
    learnt = draws.integers(0, 2, 900)
    embeddings[:, 0] += np.where(colour == "green", 2.0, 0.0)
    embeddings[:, 1] += np.where(learnt == 1, 2.0, 0.0)

    findings = weakspot.find(
        labels=fruit.labels,
        predictions=fruit.predictions,
        embeddings=fruit.embeddings,
        metadata=fruit.columns,
        train={
            "labels": learnt,
            "predictions": learnt,
            "embeddings": embeddings,
            "metadata": {"colour": colour, "weight": draws.normal(100, 9, 900)},
        },
    )

    assert findings.rows[0]["cause"] in ("rare in training", "more common than in training")
    assert max(findings[0].members) < len(fruit.labels)


def test_find__nothing_to_find__says_so(fruit):
    findings = weakspot.find(
        labels=fruit.labels, predictions=fruit.labels, metadata=fruit.columns, splits=None
    )

    assert len(findings) == 0
    assert not findings
    assert "100 % right" in str(findings)
    assert findings.arrow.num_rows == 0


def test_find__estimator__is_asked(fruit):
    from sklearn.linear_model import LogisticRegression

    names = np.array(fruit.names)
    model = LogisticRegression().fit(fruit.embeddings, names[fruit.predictions])

    findings = weakspot.find(
        embeddings=fruit.embeddings, labels=names[fruit.labels], metadata=fruit.columns, model=model
    )

    told = findings.evaluated.samples.dataset
    assert told.probabilities is not None
    expected = model.predict_proba(fruit.embeddings)
    places = findings.evaluated.places(findings.evaluated.samples.rows)
    assert np.allclose(told.probabilities, expected[places], atol=1e-5)


def test_find__multi_label(fruit):
    labels = [["fruit", name] for name in np.array(fruit.names)[fruit.labels]]
    predictions = [["fruit", name] for name in np.array(fruit.names)[fruit.predictions]]

    findings = weakspot.find(labels=labels, predictions=predictions, metadata=fruit.columns)

    assert {one.class_name for one in findings} <= {"apple", "pear"}
    assert any("green" in one.title for one in findings)


def test_find__without_a_folder__leaves_nothing_behind(fruit):
    findings = weakspot.find(
        labels=fruit.labels, predictions=fruit.predictions, metadata=fruit.columns
    )
    folder = Path(findings.project.folder)
    assert findings.report().is_file()

    findings.close()

    assert not folder.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no labels"),
        ({"labels": [0, 1]}, "what the classifier says"),
        ({"labels": [0, 1], "predictions": [0, 1]}, "alone do not say"),
        ({"labels": [0, 1], "predictions": [0], "metadata": {"a": [1, 2]}}, "2 labels but 1"),
        ({"labels": "apple", "predictions": [0, 1]}, "one value"),
        ({"labels": [0, 1], "predictions": [0, 1], "images": "photos"}, "one path"),
        (
            {"labels": [0, 1], "predictions": [0, 1], "metadata": {"label": [1, 2]}},
            "made of the other arguments",
        ),
        ({"labels": [0, 1], "predictions": [0, 1], "embeddings": [1.0, 2.0]}, "dimensions"),
        ({"labels": [0, 5], "predictions": [0, 1], "class_names": ["a", "b"]}, "label 5"),
        ({"labels": ["a", "c"], "probabilities": [[0.1, 0.2, 0.7]] * 2}, "not clear which classes"),
        ({"labels": [0], "predictions": [0], "embeddings": [[1.0]], "train": {}}, "no labels"),
        ({"data": 3}, "neither a table nor a data set"),
        ({"data": "photos/"}, "neither a table nor a data set"),
        ({"data": [1, 2], "labels": [0, 1]}, "no pairs of image and label"),
        (
            {"labels": [0, 1], "predictions": [0, 1], "embeddings": [[1e300], [1e300]]},
            "finite in 32",
        ),
        ({"labels": [0, 1], "predictions": [0, 1], "embeddings": [[], []]}, "no columns"),
        (
            {"labels": [0, 1], "predictions": ["a", "b"], "metadata": {"a": [1, 2]}},
            "Labels are codes",
        ),
        ({"labels": [0, 1], "predictions": [0, 1], "images": [object(), None]}, "Where: image 0"),
        (
            {"labels": [0, 1], "predictions": [0, 1], "class_names": {1: "a", 2: "b"}},
            "every code from 0",
        ),
        (
            {
                "labels": ["a", "b"],
                "predictions": ["a", "b"],
                "metadata": {"a": [1, 2]},
                "train": {"labels": ["a"], "metadata": {"a": ["x"]}},
            },
            "another kind",
        ),
        ({"data": {"colour": ["red"]}}, "no column of labels"),
        ({"data": {"label": ["a"], "prediction": ["a"]}, "labels": ["a"]}, "given twice"),
    ],
)
def test_find__bad_input__says_what_to_do(given, said):
    with pytest.raises(DataError, match=said):
        weakspot.find(**given)


def test_find__bad_input_found_late__leaves_no_folder_and_names_none(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(DataError, match=r"Where: what was given to weakspot\.find") as caught:
        weakspot.find(
            labels=["a", "b"],
            predictions=["a", "b"],
            splits=["valid", "nowhere"],
            metadata={"colour": ["red", "green"]},
        )
    assert str(tmp_path) not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_find__settings_that_are_none__says_so():
    with pytest.raises(ConfigError, match="weakspot.Settings"):
        weakspot.find(labels=["a"], predictions=["a"], metadata={"a": [1]}, settings={"seed": 3})


def test_find__id2label__names_the_codes(fruit):
    findings = weakspot.find(
        labels=fruit.labels,
        predictions=fruit.predictions,
        class_names={1: "pear", 0: "apple"},
        metadata=fruit.columns,
        train=pa.table({"label": fruit.labels, "colour": fruit.columns["colour"]}),
    )
    assert findings[0].title == "apple: green"
    assert findings.project.samples().dataset.labels.size == 2 * len(fruit.labels)


def test_find__folder_with_a_project__is_not_overwritten(fruit, tmp_path):
    (tmp_path / "weakspot.toml").write_text("seed = 4\n")
    with pytest.raises(ConfigError, match="already"):
        weakspot.find(
            labels=fruit.labels,
            predictions=fruit.predictions,
            metadata=fruit.columns,
            folder=tmp_path,
        )
    assert (tmp_path / "weakspot.toml").read_text() == "seed = 4\n"
