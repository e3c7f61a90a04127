import json
from dataclasses import replace

import numpy as np
import pytest

import weakspot
from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.failures import FailureCriterion
from weakspot.core.questions import spending_share
from weakspot.discover.hypothesis import HypothesisDiscoverer
from weakspot.project.project import Project
from weakspot.run.ledger import LEDGER_FILE
from weakspot.run.phrase_questions import NOT_MEASURED, ClassHalves, Fit, ask
from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
from weakspot.testing.planted import nothing, phrase_embeddings, plant, rare, spurious


@pytest.fixture(scope="module")
def project(tmp_path_factory, world, manifest):
    made = Project.create(
        tmp_path_factory.mktemp("asked"),
        data=str(manifest),
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
        settings=weakspot.Settings(verify={"splits": ("validation", "test")}),
    )
    made.ingest()
    return made


def test_ask__scores_in_sample_and_held_out(project):
    report = project.ask("disc", ["green discs", "dark"])
    good, dark = report.answers
    assert (good.phrase, good.fit) == ("green discs", Fit.GOOD)
    assert good.discovery.error_score == good.discovery.best_score > 0.3
    assert 0.3 < good.confirmation.error_score <= good.confirmation.best_score
    assert good.discovery.samples.digest != good.confirmation.samples.digest
    assert good.confirmation.inside.value > good.confirmation.outside.value + 0.2
    assert (
        good.confirmation.inside.interval.low
        < good.confirmation.inside.value
        < good.confirmation.inside.interval.high
    )
    assert good.discovery.best_p < 0.01
    assert good.p_value < good.p_after_looks < 0.05
    assert 0 < good.matching.count < good.matching.total
    assert dark.fit is Fit.CANNOT_TELL
    assert "cannot be ruled out with so few" in dark.advice


@pytest.mark.parametrize(
    "phrase",
    [
        "green",
        "a green disc",
        "discs that are green",
        "an image of a green disc",
        "the disc is green",
        "Green discs",
    ],
)
def test_ask__every_way_to_say_the_truth__is_one_hypothesis(project, phrase):
    first = project.ask("disc", ["green discs"])
    again = project.ask("disc", [phrase])
    assert again.answers[0].fit is Fit.GOOD
    assert again.answers[0].confirmation == first.answers[0].confirmation
    assert again.n_looks == first.n_looks


def test_ask__a_part_of_the_phrase_does_it__is_named_to_try(project):
    phrase = "green dotted discs on a grassy background"
    (answer,) = project.ask("disc", [phrase]).answers
    assert answer.p_value > 0.05
    assert (answer.fit, answer.tries) == (Fit.CANNOT_TELL, ("green",))
    assert answer.advice.endswith("Try: green.")


def test_ask__words_the_text_side_does_not_know__cannot_be_told(project):
    prepared = project.prepared()
    trusting = replace(prepared.assistants, trust=lambda texts: np.full(len(texts), 0.2))
    doubtful = replace(prepared, assistants=trusting)
    settings, criterion = project.settings, FailureCriterion()
    report = ask(
        doubtful, settings, criterion, project.store, class_name="disc", phrases=["dotted"]
    )
    (answer,) = report.answers
    assert answer.fit is Fit.CANNOT_TELL
    assert "0.20 of 1" in answer.advice


def test_ask__words_that_nobody_measured__are_marked(project):
    prepared, criterion = project.prepared(), FailureCriterion()

    def answer(measured):
        helped = replace(prepared, assistants=replace(prepared.assistants, measured=measured))
        said = ask(
            helped,
            project.settings,
            criterion,
            project.store,
            class_name="disc",
            phrases=["green discs"],
        )
        return said.answers[0]

    def measured(words):
        return np.array([0.9 if word == "green" else np.nan for word in words])

    assert NOT_MEASURED not in answer(measured).advice
    nobody = answer(lambda words: np.full(len(words), np.nan))
    assert (nobody.fit, NOT_MEASURED in nobody.advice) == (Fit.GOOD, True)


def test_ask__every_phrase_is_written_down_and_counted_once(project):
    before = project.ask(
        "star", ["grassy", "dotted"]
    ).n_looks  # two at once, whichever tests ran before
    again = project.ask("star", ["grassy", " grassy "])
    assert (again.n_looks, len(again.answers)) == (before, 1)
    path = project.folder / LEDGER_FILE
    with path.open("a") as stream:
        stream.write("half a line")
    after = project.ask("star", ["striped"])
    assert after.n_looks == before + 1
    batches = [json.loads(line) for line in path.read_text().splitlines()]
    assert batches[-1]["batch"]["questions"][0]["about"] == "star: striped"
    (answer,) = after.answers
    assert answer.p_after_looks > answer.p_value
    assert f"({after.n_looks} in all) were asked" in after.left


def test_ask__bad_questions(project, monkeypatch):
    with pytest.raises(DataError, match=r"no class 'disk'.*'disc'"):
        project.ask("disk", ["green"])
    with pytest.raises(ConfigError, match="No phrase"):
        project.ask("disc", [" "])
    monkeypatch.setitem(
        project.__dict__, "criterion", FailureCriterion(kind="target", target="heart")
    )
    with pytest.raises(DataError, match="heart"):
        project.ask("disc", ["green"])
    monkeypatch.setitem(
        project.__dict__, "criterion", FailureCriterion(kind="low-confidence", threshold=1e-12)
    )
    with pytest.raises(NotEnoughDataError, match="Too few failures"):
        project.ask("disc", ["green"])


def test_ask__without_a_text_side__captions_and_columns_answer(project):
    deaf = replace(project.prepared(), assistants=NO_ASSISTANTS)

    def put(phrase):
        settings, criterion = project.settings, FailureCriterion()
        return ask(deaf, settings, criterion, project.store, class_name="disc", phrases=[phrase])

    (answer,) = put("colour = green").answers
    assert answer.compared_with == "columns"
    assert answer.p_value < 0.05
    with pytest.raises(DataError, match="no embeddings with a text side.*weakspot lab align"):
        put("of the")


def test_ask__settings_of_the_method_are_used(project):
    options = {
        "hypothesis": {"templates": ["{phrase}", "a photo of {phrase}"], "n_permutations": 9}
    }
    other = Project(
        project.folder,
        project.settings.model_copy(
            update={
                "discover": project.settings.discover.model_copy(update={"parameters": options})
            }
        ),
        classifier=project._given_classifier,
        embedder=PlantedEmbedder(),
    )
    (answer,) = other.ask("disc", ["green discs"]).answers
    assert answer.discovery.best_p == pytest.approx(0.1)


COLOURED = (
    "{0}",
    "{0} discs",
    "a {0} disc",
    "discs that are {0}",
    "the disc is {0}",
    "a photo of {0} discs",
)
PLACED = (
    "grassy",
    "on grass",
    "discs on grass",
    "a disc on a grassy background",
    "discs that are on a grassy background",
    "a photo of a disc on grass",
)
CERTAIN = 0.05


def _p_values(problem, seed, phrases):
    world = plant(problem, 3000, seed=seed)
    samples = world.samples(Split.VALIDATION), world.samples(Split.TEST)
    method = HypothesisDiscoverer(phrases={})
    both = ClassHalves.of(samples, FailureCriterion(), "disc", method, is_compared=True)
    directions = method.phrase_directions(phrases, phrase_embeddings, both.discovery.problem)
    found = []
    for phrase in phrases:
        cut = both.discovery.threshold(directions[phrase])
        found.append(both.confirmation.question(directions[phrase], cut, phrase).p_value)
    return found


@pytest.mark.parametrize("value", ["green", "blue", "purple", "pink"])
def test_phrases__of_a_planted_colour__all_separate_alike(value):
    phrases = [one.format(value) for one in COLOURED]
    found = _p_values(rare(0.02, value=value), 1, phrases)
    assert len(set(found)) == 1
    assert max(found) < CERTAIN


def test_phrases__of_a_planted_place__all_separate():
    assert max(_p_values(spurious(0.95), 2, list(PLACED))) < CERTAIN


def test_phrases__where_nothing_was_planted__seldom_separate():
    words = [
        "green",
        "red",
        "blue",
        "small",
        "large",
        "striped",
        "grassy",
        "dark",
        "dotted",
        "pink",
    ]
    found = np.concatenate([_p_values(nothing(), seed, words) for seed in range(20)])
    assert len(found) == 200
    # What the ledger calls a finding when it is the first question.
    assert (found <= CERTAIN * spending_share(1)).mean() <= CERTAIN
