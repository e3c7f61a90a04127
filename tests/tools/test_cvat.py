import csv
import json
import zipfile

import pytest
from tests.tools.made_bundle import made_bundle
from tests.tools.real_libraries import run_real

from weakspot.core.errors import DataError
from weakspot.tools.cvat import read_annotations, write_tasks

CHECK = """
import json, sys
from pathlib import Path
from cvat_sdk.api_client import models
folder = Path(sys.argv[1])
specification = json.loads((folder / "labels.json").read_text())
labels = [models.PatchedLabelRequest(**{**one, "type": models.LabelType(one["type"])}) for one in specification]
task = models.TaskWriteRequest(name="shapes", labels=labels)
print("TOLD" + json.dumps([label["name"] for label in task.to_dict()["labels"]]))
"""
TAG = '<image id="{number}" name="{name}" width="12" height="9"><tag label="{label}" source="{source}"></tag></image>'


def _xml(*images):
    return f"<annotations><version>1.1</version>{''.join(images)}</annotations>"


def _lines(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_write_tasks__real_library_accepts_the_labels(tmp_path):
    write_tasks(made_bundle(tmp_path / "images"), tmp_path / "out")
    printed = run_real(CHECK, tmp_path / "out", home=tmp_path)
    assert json.loads(printed.split("TOLD")[1]) == ["disc", "square"]


def test_write_tasks__images_are_named_after_samples_and_answers_are_suggestions(tmp_path):
    bundle = made_bundle(tmp_path / "images")
    written = write_tasks(bundle, tmp_path / "out")
    ids = bundle.samples.dataset.sample_ids()
    assert sorted(path.name for path in (tmp_path / "out" / "images").iterdir()) == sorted(
        f"{ids[row]}.png" for row in (3, 7)
    )
    text = (tmp_path / "out" / "annotations.xml").read_text()
    assert f'name="{ids[3]}.png" width="12" height="9"><tag label="square" source="auto">' in text
    assert [line["why"] for line in _lines(tmp_path / "out" / "to_label.csv")] == [
        one.why for one in bundle.to_label
    ]
    assert "cvat-cli task create shapes" in written.sentence


def test_read_annotations__suggestions_nobody_touched_are_no_labels(tmp_path):
    bundle = made_bundle(tmp_path / "images")
    write_tasks(bundle, tmp_path / "out")
    with pytest.raises(DataError, match="no labels yet"):
        read_annotations(tmp_path / "out" / "annotations.xml", tmp_path / "labels.csv")
    ids = bundle.samples.dataset.sample_ids()
    text = (
        (tmp_path / "out" / "annotations.xml")
        .read_text()
        .replace('"square" source="auto"', '"disc" source="manual"', 1)
    )
    (tmp_path / "done.xml").write_text(text)
    written = read_annotations(tmp_path / "done.xml", tmp_path / "labels.csv")
    assert _lines(tmp_path / "labels.csv") == [{"sample_id": ids[3], "label": "disc"}]
    assert "1 have no label yet" in written.sentence


def test_read_annotations__zip_file_and_names_of_others(tmp_path):
    with zipfile.ZipFile(tmp_path / "job.zip", "w") as archive:
        archive.writestr(
            "annotations.xml",
            _xml(TAG.format(number=0, name="folder/a &amp; b.png", label="disc", source="manual")),
        )
    read_annotations(tmp_path / "job.zip", tmp_path / "labels.csv")
    assert _lines(tmp_path / "labels.csv") == [{"path": "folder/a & b.png", "label": "disc"}]


BOMB = '<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;&x;&x;&x;">]><annotations>&y;</annotations>'
OUTSIDE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><annotations>&x;</annotations>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB, "document type"),
        (OUTSIDE, "document type"),
        ("<annotations>", "no element found"),
        ("<other/>", "no element annotations"),
        ("no xml", "syntax error"),
        (_xml(), "no labels yet"),
    ],
)
def test_read_annotations__what_it_refuses(tmp_path, content, message):
    (tmp_path / "annotations.xml").write_text(content)
    with pytest.raises(DataError, match=message):
        read_annotations(tmp_path / "annotations.xml", tmp_path / "labels.csv")
    assert not (tmp_path / "labels.csv").exists()


def test_read_annotations__zip_file_without_annotations(tmp_path):
    with zipfile.ZipFile(tmp_path / "job.zip", "w") as archive:
        archive.writestr("other.xml", "<a/>")
    with pytest.raises(DataError, match="holds no annotations.xml"):
        read_annotations(tmp_path / "job.zip", tmp_path / "labels.csv")
