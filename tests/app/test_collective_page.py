import csv
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from weakspot.app.collective import FamilyResult
from weakspot.app.collective_page import family_page, headline, set_sentence, write_family
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Share
from weakspot.core.heads import Head
from weakspot.core.slices import DataUse
from weakspot.repair.collective import CollectiveRepair, FamilyModel, FamilyOutcomes, RepairSet, family_figures

USE = DataUse(name="test samples", n_samples=8, digest="t")


def _bits(text):
    return np.array([letter == "1" for letter in text])


def _model(name):
    outcomes = FamilyOutcomes(
        before=_bits("11110000"), individual=_bits("11101110"), collective=_bits("11111100"), random=_bits("11110001")
    )
    figures = family_figures(USE, outcomes)
    return FamilyModel(name=name, n_slices=1, n_individual=5, n_collective=6, figures=(figures,), notes=("A note.",))


@pytest.fixture
def repair():
    return CollectiveRepair(
        kind=1,
        method="slice-balanced",
        source=None,
        n_in_set=6,
        note="Six samples.",
        n_samples=8,
        overlaps=((1.0, 0.5), (0.5, 1.0)),
        models=(_model("small"), _model("<b>large</b>")),
        shared=Share.of(4, 6),
        shared_random=Share.of(1, 6),
        notes=("Two.",),
    )


@pytest.fixture
def result(repair):
    head = Head(weights=np.ones((2, 3), dtype=np.float32), bias=np.zeros(2, dtype=np.float32))
    chosen = RepairSet(sample_ids=("a", "b"), weights=np.array([0.5, 1.5]), note="Six samples.")
    return FamilyResult(repair=repair, repair_set=chosen, heads={"small": head}, class_names={"small": ("apple", "pear")})


def test_headline__share_with_interval_beside_the_twin(repair):
    assert headline(repair) == (
        "One repair set resolves 4 of the 6 failures that the models' own repairs resolve (67 %, 95 % interval 30–90 %); "
        "its random twin resolves 1 of them (17 %)."
    )
    nothing = repair.model_copy(update={"shared": Share.of(0, 0)})
    assert headline(nothing).startswith("The models' own repairs resolve no failure")


def test_set_sentence__whose_failures(repair):
    assert set_sentence(repair) == "Made from the failures of all models (type 1) by slice-balanced. Six samples."
    one = repair.model_copy(update={"kind": 2, "source": "small"})
    assert set_sentence(one).startswith("Made from the failures of small alone (type 2)")


def test_family_page__names_are_text_and_nothing_is_loaded(repair):
    page = family_page(repair)
    HTMLParser().feed(page)
    assert "<b>large" not in page
    assert "&lt;b&gt;large&lt;/b&gt;" in page
    assert "src=" not in page
    assert "href=" not in page
    assert "<th>" not in page
    assert page.count("<svg") == 2
    for words in ("may be chance", "A note.", "Two.", "prefers-color-scheme:dark"):
        assert words in page


def test_write_family__page_record_set_and_heads(result, tmp_path):
    files = write_family(result, tmp_path / "out")
    assert [path.name for path in files] == [
        "collective.html",
        "collective.json",
        "collective_set.csv",
        "small_head.safetensors",
    ]
    content = json.loads(files[1].read_text())
    assert content["shared"]["count"] == 4
    assert content["models"][0]["figures"][0]["relative_accuracy"] == 1.0
    assert list(csv.reader(files[2].read_text().splitlines())) == [["sample_id", "weight"], ["a", "0.5"], ["b", "1.5"]]
    assert files[3].stat().st_size > 0


def test_write_family__folder_cannot_be_written(result, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_family(result, tmp_path / "file")
