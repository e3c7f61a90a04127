from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.errors import DataError
from weakspot.core.samples import SampleSet
from weakspot.discover.error_score import error_scores, score_at
from weakspot.run.ledger import LEDGER_FILE
from weakspot.run.phrase_questions import Fit
from weakspot.web.services.classes import (
    class_members,
    class_samples,
    held_out_score,
    known_first,
    parts_of,
    phrase_score,
    score_with,
    titles_of_row,
)
from weakspot.web.services.view import FLOAT32, INT32, UINT8, unpack


def test_phrase_score__planted_kind__separates_and_says_so(world_workspace):
    found = phrase_score(world_workspace, "disc", " green ")
    assert (found.phrase, found.fit) == ("green", Fit.GOOD)
    assert found.score > 0.4
    assert 0.3 < found.held_out_score <= found.score + 1e-9
    assert found.p_value < 0.01
    assert 0 < found.matching.count < found.matching.total == found.n_samples


def test_phrase_score__similarities__give_the_same_score_on_the_page(world_workspace):
    found = phrase_score(world_workspace, "disc", "green")
    shown = class_samples(world_workspace, "disc")
    failed = unpack(shown.failed, UINT8).astype(bool)
    similarities = unpack(found.similarities, FLOAT32)
    assert len(similarities) == found.n_samples == shown.n_comparable
    assert error_scores(similarities[None], failed).score[0] == found.score
    exact = similarities.astype(np.float64)
    assert score_at(exact, failed, found.threshold) == pytest.approx(found.score)
    assert score_with(world_workspace, "disc", "green", 0.3) == score_at(exact, failed, 0.3)


def test_phrase_score__stretches__join_to_the_whole(world_workspace):
    whole = unpack(phrase_score(world_workspace, "disc", "green").similarities, FLOAT32)
    parts = [
        phrase_score(world_workspace, "disc", "green", offset=start, limit=50).similarities
        for start in range(0, len(whole), 50)
    ]
    assert np.array_equal(np.concatenate([unpack(part, FLOAT32) for part in parts]), whole)
    assert phrase_score(world_workspace, "disc", "green", offset=10**9).similarities == ""


def test_phrase_score__words_that_fit_but_do_not_separate__advises_something_else(world_workspace):
    found = phrase_score(world_workspace, "disc", "dark")
    assert found.fit is Fit.MATCHES_ONLY
    assert "something else" in found.advice


def test_phrase_score__words_of_no_image__advises_rewording(world_workspace):
    found = phrase_score(world_workspace, "disc", "a zebra crossing under palm trees")
    assert found.fit in (Fit.CANNOT_TELL, Fit.SEPARATES_ONLY)


def test_phrase_score__never_asks_the_confirmation_half(world_workspace):
    phrase_score(world_workspace, "disc", "green")
    assert not (world_workspace.project.folder / LEDGER_FILE).exists()
    assert "class halves disc" not in world_workspace._made.things


def test_phrase_score__cannot_be_compared__says_why(open_world, green_world):
    with pytest.raises(DataError, match="no class"):
        phrase_score(open_world(), "disk", "green")
    mute = open_world(assistants=NO_ASSISTANTS)
    with pytest.raises(DataError, match="no embeddings with a text side.*weakspot lab align"):
        phrase_score(mute, "disc", "shiny")
    assert phrase_score(mute, "disc", "colour = green").fit is Fit.GOOD
    bare = SampleSet(dataset=green_world.dataset, rows=np.arange(len(green_world)))
    with pytest.raises(DataError, match="no embeddings"):
        phrase_score(open_world(samples=bare), "disc", "green")


def test_class_samples__columns__are_those_of_the_discovery_half(world_workspace):
    shown = class_samples(world_workspace, "disc")
    rows = unpack(shown.rows, INT32)
    own = set(world_workspace.problems["disc"].rows.tolist())
    assert set(rows.tolist()) == own <= set(world_workspace.discovery.rows.tolist())
    answers = [shown.answers[code] for code in unpack(shown.answer, INT32)]
    failed = unpack(shown.failed, UINT8).astype(bool)
    assert [answer != "disc" for answer in answers] == failed.tolist()
    confidence = unpack(shown.confidence, FLOAT32)
    assert confidence[failed].mean() < confidence[~failed].mean()


def test_class_samples__without_embeddings__come_last_and_are_not_compared(open_world, green_world):
    spaces = green_world.spaces()
    joint = spaces["clip"]
    embeddings = np.array(joint.embeddings)
    workspace = open_world()
    lost = workspace.problems["disc"].rows[:3]
    embeddings[lost] = np.nan
    holed = type(joint)(encoder_id=joint.encoder_id, embeddings=embeddings, has_text=True)
    rows = np.arange(len(green_world))
    samples = SampleSet(dataset=green_world.dataset, rows=rows, spaces={**spaces, "clip": holed})
    members = class_members(open_world(samples=samples), "disc")
    assert set(members.problem.rows[members.n_comparable :].tolist()) == set(lost.tolist())
    assert members.n_comparable == len(members.problem.rows) - 3 == len(members.failed)


def test_titles_of_row__confirmation_half__has_none(world_workspace):
    row = int(world_workspace.problems["disc"].rows[0])
    assert titles_of_row(world_workspace, row) == ("disc",)
    assert titles_of_row(world_workspace, int(world_workspace.confirmation.rows[0])) == ()
    assert titles_of_row(world_workspace, 10**12) == ()


def test_held_out_score__null_phrases__stay_about_zero_where_best_scores_do_not():
    draws = np.random.default_rng(1)
    failed = draws.random(200) < 0.3
    parts = parts_of(failed, seed=0, title="any")
    null = draws.standard_normal((150, 200)).astype(np.float32)
    held_out = [held_out_score(one, failed, parts) for one in null]
    assert abs(np.mean([score for score, _ in held_out])) < 0.03
    assert error_scores(null, failed).score.mean() > 0.07
    assert np.mean([p_value <= 0.05 for _, p_value in held_out]) <= 0.1


def test_held_out_score__large_classes__normal_limit_agrees_with_exact_test(monkeypatch):
    draws = np.random.default_rng(2)
    failed = draws.random(6000) < 0.5
    similarities = (draws.standard_normal(6000) + 0.06 * failed).astype(np.float32)
    parts = parts_of(failed, seed=0, title="any")
    score, limit = held_out_score(similarities, failed, parts)
    monkeypatch.setattr("weakspot.web.services.classes.MAX_EXACT", 10**9)
    exact = held_out_score(similarities, failed, parts)
    assert exact == (score, pytest.approx(limit, rel=0.02))


def test_held_out_score__only_one_kind__says_nothing():
    failed = np.ones(20, dtype=bool)
    parts = parts_of(failed, seed=0, title="any")
    assert held_out_score(np.zeros(20, dtype=np.float32), failed, parts) == (0.0, 1.0)


def test_parts_of__any_class__spreads_failures_evenly_and_repeats():
    failed = np.arange(103) % 4 == 0
    parts = parts_of(failed, seed=5, title="disc")
    assert sorted(np.concatenate([own for own, _ in parts]).tolist()) == list(range(103))
    n_failed = [failed[own].sum() for own, _ in parts]
    assert max(n_failed) - min(n_failed) <= 1
    again = parts_of(failed, seed=5, title="disc")
    assert all(np.array_equal(one, two) for (one, _), (two, _) in zip(parts, again, strict=True))


def test_held_out_score__objects_seen_several_times_are_no_coincidence():
    draws = np.random.default_rng(3)
    small = {True: 0, False: 0}
    for _ in range(80):
        objects = np.repeat(np.arange(40), 5)
        failed = (draws.random(40) < 0.3)[objects]
        similarities = draws.standard_normal(40)[objects].astype(np.float32)
        for is_told in (True, False):
            groups = objects if is_told else None
            parts = parts_of(failed, groups, seed=0, title="any")
            small[is_told] += held_out_score(similarities, failed, parts, groups)[1] <= 0.05
    assert small[False] >= 30
    assert small[True] <= 10


def test_parts_of__groups_stay_whole():
    objects = np.repeat(np.arange(30), 4)
    parts = parts_of(objects < 8, objects, seed=5, title="disc")
    assert sorted(np.concatenate([own for own, _ in parts]).tolist()) == list(range(120))
    for own, others in parts:
        assert not set(objects[own]) & set(objects[others])


def test_known_first__groups_stay_with_their_samples(world_workspace):
    plain = world_workspace.problems["disc"]
    objects = np.random.default_rng(0).permutation(np.arange(len(plain.rows)) // 2)
    members = known_first(world_workspace, replace(plain, groups=objects))
    by_row = dict(zip(plain.rows.tolist(), objects.tolist(), strict=True))
    expected = np.array([by_row[row] for row in members.comparable.rows.tolist()])
    found = members.comparable.groups
    assert len(found) == members.n_comparable
    assert np.array_equal(found[:, None] == found, expected[:, None] == expected)
    assert known_first(world_workspace, plain).comparable.groups is None
