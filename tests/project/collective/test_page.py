import csv
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Share
from weakspot.core.heads import Head
from weakspot.core.slices import DataUse
from weakspot.project.collective import (
    FamilyResult,
    collective_lines,
    family_page,
    headline,
    set_sentence,
    write_family,
)
from weakspot.repair.collective import (
    CollectiveRepair,
    FamilyModel,
    RepairSet,
    family_figures,
)

USE = DataUse(name="test samples", n_samples=8, digest="t")


def _bits(text):
    return np.array([letter == "1" for letter in text])


def _model(name):
    predictions = {
        "before": _bits("11110000"),
        "individual": _bits("11101110"),
        "collective": _bits("11111100"),
        "random": _bits("11110001"),
    }
    figures = family_figures(USE, **predictions)
    return FamilyModel(
        name=name,
        n_slices=1,
        n_individual=5,
        n_collective=6,
        figures=(figures,),
        notes=("A note.",),
    )


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
    return FamilyResult(
        repair=repair,
        repair_set=chosen,
        heads={"small": head},
        class_names={"small": ("apple", "pear")},
    )


def test_headline__share_with_interval_beside_the_twin(repair):
    assert headline(repair) == (
        "One repair set resolves 4 of the 6 failures that the models' own repairs resolve (67 %, 95 % interval 30–90 %); "
        "its random control resolves 1 of them (17 %)."
    )
    nothing = repair.model_copy(update={"shared": Share.of(0, 0)})
    assert headline(nothing).startswith("The models' own repairs resolve no failure")


def test_set_sentence__whose_failures(repair):
    assert (
        set_sentence(repair)
        == "Made from the failures of all models (type 1) by slice-balanced. Six samples."
    )
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
    assert list(csv.reader(files[2].read_text().splitlines())) == [
        ["sample_id", "weight"],
        ["a", "0.5"],
        ["b", "1.5"],
    ]
    assert files[3].stat().st_size > 0


def test_write_family__folder_cannot_be_written(result, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_family(result, tmp_path / "file")


TEST = DataUse(name="test samples", n_samples=40, digest="t")
SEED = DataUse(name="validation, discovery half", n_samples=40, digest="s")


def _right(n_before, n_gained):
    """40 samples, of which the first are right before, and the next are gained."""
    return np.arange(40) < n_before + n_gained


def _figures(use, individual, collective, random):
    return family_figures(
        use,
        before=_right(20, 0),
        individual=_right(20, individual),
        collective=_right(20, collective),
        random=_right(20, random),
    )


@pytest.fixture
def two_models():
    better = FamilyModel(
        name="small", n_slices=2, n_individual=30, n_collective=28,
        figures=(_figures(TEST, 10, 8, 1), _figures(SEED, 10, 12, 0)),
    )  # fmt: skip
    unsure = FamilyModel(
        name="large",
        n_slices=0,
        n_individual=30,
        n_collective=30,
        figures=(_figures(TEST, 0, 2, 2),),
        notes=("No slice.",),
    )
    return CollectiveRepair(
        kind=2, method="slice-balanced", source="small", n_in_set=30, note="Thirty samples.", n_samples=40,
        overlaps=((1.0, 0.25), (0.25, 1.0)), models=(better, unsure), shared=Share.of(8, 10), shared_random=Share.of(1, 10),
        notes=("The projects count different things as failures.",),
    )  # fmt: skip


def test_collective_lines__figures_and_words(two_models):
    lines = list(collective_lines(two_models))
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("One repair set resolves 8 of the 10 failures")
    assert (
        "  accuracy                          50 % of 40    75 % of 40    70 % of 40    52 % of 40"
        in lines
    )
    assert (
        "  resolved, seed                                  50 % of 20    60 % of 20     0 % of 20"
        in lines
    )
    assert "  still right                                    100 % of 20   100 % of 20" in lines
    said = " ".join(" ".join(lines).split())
    assert (
        "Accuracy with the collective set rose (p = 0.0078), better than its random control (p = 0.016);"
        in said
    )
    assert (
        "of 10 failures that the own repair resolves it resolves 8 (80 %, 95 % interval 49–94 %); relative accuracy 0.933."
        in said
    )
    assert "  large  0.25  1.00" in lines
    assert lines[-1] == "The projects count different things as failures."


def test_collective_lines__what_may_be_chance_is_said_so(two_models):
    said = " ".join(" ".join(collective_lines(two_models)).split())
    assert (
        "The change of accuracy with the collective set may be chance (p = 0.5), not to be told from its random control (p = 1); "
        "the own repair resolves nothing; relative accuracy 1.100." in said
    )
    assert "No slice." in said
