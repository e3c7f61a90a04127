import threading
from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.errors import ModelError
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Verdict
from weakspot.run.stage_clock import new_record
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.web.services.classes import best_scores, class_list, phrase_score, suggestions
from weakspot.web.services.workspace import begin


def listed(workspace):
    """The list once its scores are there."""
    best_scores(workspace)
    workspace._made.things["beside: best scores"] = beside = begin(lambda: best_scores(workspace))
    beside.result(timeout=60)
    return class_list(workspace)


def test_class_list__planted_problem__comes_first_with_its_figures(world_workspace):
    found = listed(world_workspace)
    assert (found.is_ranked, found.can_compare) == (True, True)
    keys = [(not row.is_promising, -row.best_score) for row in found.classes]
    assert keys == sorted(keys)
    disc = next(row for row in found.classes if row.title == "disc")
    problem = world_workspace.problems["disc"]
    assert (disc.n_samples, disc.n_failed) == (len(problem.rows), problem.n_failed)
    assert disc.accuracy.interval.low < disc.accuracy.value == problem.n_right / len(problem.rows)
    assert disc.is_promising == (0.2 <= disc.accuracy.value <= 0.8)


def test_class_list__says_what_the_newest_run_confirmed_of_a_class(open_world):
    workspace = open_world()
    finding = ClassFinding(
        kind=ClassFindingKind.WHOLE,
        class_name="disc",
        verdict=Verdict.CONFIRMED,
        sentence="disc fails as a whole",
    )
    doubted = finding.model_copy(update={"verdict": Verdict.NOT_CONFIRMED, "sentence": "no"})
    record = new_record(workspace.project.settings, inputs={}, criterion="")
    workspace.project.store.runs.save(
        record.model_copy(update={"class_findings": (finding, doubted)})
    )
    said = {row.title: row.findings for row in class_list(workspace).classes}
    assert said.pop("disc") == ["disc fails as a whole"]
    assert not any(said.values())


def test_class_list__no_text_side__still_lists(open_world):
    found = class_list(open_world(assistants=NO_ASSISTANTS))
    assert (found.is_ranked, found.can_compare) == (True, False)
    assert all(row.best_score is None for row in found.classes)


def test_class_list__text_side_that_fails__still_lists(open_world):
    def broken(texts):
        raise ModelError("The text side is broken.")

    workspace = open_world(assistants=Assistants(embed_texts=broken))
    with pytest.raises(ModelError):
        best_scores(workspace)
    workspace._made.things["beside: best scores"] = beside = begin(lambda: best_scores(workspace))
    assert isinstance(beside.exception(timeout=60), ModelError)
    assert not class_list(workspace).can_compare


def test_best_scores__only_of_words_that_may_be_said(open_world):
    embed = PlantedEmbedder().embed_texts

    def only(words, known):
        return np.array([0.9 if word in known else np.nan for word in words])

    def scores_of(*known):
        assistants = Assistants(embed_texts=embed, measured=lambda words: only(words, known))
        return best_scores(open_world(assistants=assistants))

    assert scores_of("green")["disc"] > scores_of("dark")["disc"]
    assert scores_of() == {}


def test_suggestions__vocabulary__keep_their_scores_when_used(world_workspace):
    found = suggestions(world_workspace, "disc")
    assert (found.source, found.is_complete) == ("vocabulary", True)
    assert 1 <= len(found.words) <= 10
    best = found.words[0]
    assert best.words == "colour = green"
    assert phrase_score(world_workspace, "disc", best.words, limit=0).score == pytest.approx(
        best.score, abs=0.02
    )


def test_suggestions__no_witness__no_backgrounds(world_workspace):
    words = [one.words for one in suggestions(world_workspace, "disc").words]
    assert not [word for word in words if word.endswith("background")]


def test_suggestions__words_measured_below_the_floor__are_not_among_them(open_world):
    embed = PlantedEmbedder().embed_texts

    def measured(words):
        return np.array([0.7 if word == "green" else 0.9 for word in words])

    assistants = Assistants(embed_texts=embed, measured=measured)
    found = suggestions(open_world(assistants=assistants), "disc")
    assert found.words
    assert "green" not in {one.words for one in found.words}


def test_suggestions__captions__are_preferred(open_world, green_world):
    embed = PlantedEmbedder().embed_texts
    assistants = Assistants(embed_texts=embed, captions=green_world.captions)
    found = suggestions(open_world(assistants=assistants), "disc")
    assert (found.source, found.words[0].words) == ("captions", "small green")
    assert all("disc" not in one.words for one in found.words)


def test_suggestions__slow_captioner__vocabulary_meanwhile(open_world, monkeypatch):
    may_go_on = threading.Event()

    def slow(rows):
        may_go_on.wait()
        return ["a green thing"] * len(rows)

    monkeypatch.setattr("weakspot.web.services.classes.WAIT_SECONDS", 0.0)
    assistants = Assistants(embed_texts=PlantedEmbedder().embed_texts, captions=slow)
    found = suggestions(open_world(assistants=assistants), "disc")
    may_go_on.set()
    assert (found.source, found.is_complete) == ("vocabulary", False)


def test_suggestions__class_without_failures__has_none(open_world, green_world):
    labels = np.asarray(green_world.dataset.labels)
    dataset = green_world.dataset.with_predictions(predictions=labels)
    samples = replace(open_world().samples, dataset=dataset)
    assert suggestions(open_world(samples=samples), "disc").words == []
