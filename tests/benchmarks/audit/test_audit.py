"""The audit in small: its own judgement is right, it goes on where it stopped, and the promises hold on a few sets."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from audit.__main__ import known_answers, run_cells
from audit.cells import CELLS, Cell
from audit.gate import GatePlan, judge_release, judge_same, make_models
from audit.growing import GrowingPlan, ask_for_more, make_generator
from audit.questions import Answer, ask_one_by_one, find, look_then_prove
from audit.table import table_of
from audit.worlds import WorldPlan, make_world

PLAN = WorldPlan(n_classes=2, n_evaluation=200, n_training=30, n_columns=2)


def test_find__slice_that_nearly_always_fails__confirmed_and_true():
    world = make_world(replace(PLAN, slice_size=60, gap=0.7, is_column=True), 5)
    answer = find(world)
    assert answer.is_found
    assert answer.n_false == 0
    assert answer.n_confirmed == len(answer.gaps) >= 1


def test_find__confirmed_although_nothing_is_wrong__counted_as_false():
    world = make_world(replace(PLAN, slice_size=60, gap=0.7, is_column=True), 5)
    lied = replace(world, chance=world.chance * 0 + 0.1)
    answer = find(lied)
    assert answer.n_false == answer.n_confirmed >= 1


def test_find__nothing_wrong__nothing_confirmed_on_ten_sets():
    false = [find(make_world(PLAN, 2000 + seed)).n_false for seed in range(10)]
    assert sum(count > 0 for count in false) <= 2


def test_ask__thirty_phrases_and_the_best_one_proven__nothing_found_on_six_sets():
    worlds = [make_world(PLAN, 3000 + seed) for seed in range(3)]
    asked = [ask_one_by_one(world, n_phrases=30).n_false for world in worlds]
    proven = [look_then_prove(world, n_phrases=30).n_false for world in worlds]
    assert sum(count > 0 for count in [*asked, *proven]) <= 1


def test_ask_for_more__images_that_change_nothing__nothing_found_on_six_sets():
    plans = [GrowingPlan(n_objects=number, counts=(10, 40, 80)) for number in (0, 20)]
    asked = [ask_for_more(make_generator(plan, seed)) for plan in plans for seed in range(3)]
    assert sum(answer.n_false for answer in asked) <= 1


def test_ask_for_more__change_that_always_fails__found():
    class Failing(type(make_generator(GrowingPlan(), 0))):
        def _one(self, prompt, seed):
            made = super()._one(prompt, seed)
            made.image.paste((250, 250, 250) if "grass" in prompt else (5, 5, 5), (0, 0, 2, 2))
            return made

    assert ask_for_more(Failing(plan=GrowingPlan(counts=(40,)), seed=1)).n_confirmed == 1


def test_judge_release__large_fall__flagged_and_nothing_else():
    plan = GatePlan(fall=0.3, churn=0.01, n_slices=3, n_members=60)
    answer = judge_release(make_models(plan, 1))
    assert (answer.is_found, answer.n_false) == (True, 0)


def test_judge_same__nothing_fell__no_alarm_on_five_sets():
    plan = GatePlan(fall=0.0, churn=0.05, n_slices=3, n_members=60)
    assert sum(judge_same(make_models(plan, seed)).n_false > 0 for seed in range(5)) <= 1


def test_make_models__falls_as_much_as_said():
    plan = GatePlan(fall=0.2, churn=0.05)
    falls = np.zeros(plan.n_slices)
    for seed in range(100):
        models = make_models(plan, seed)
        lost = models.before.astype(float) - models.now
        falls += np.bincount(models.places, weights=lost) / plan.n_members / 100
    assert falls[0] == pytest.approx(0.2, abs=0.02)
    assert falls[1:] == pytest.approx(np.zeros(plan.n_slices - 1), abs=0.02)


def test_run_cells__stopped_in_between__goes_on(tmp_path):
    path, cells = tmp_path / "answers.jsonl", {"null: independent": CELLS["null: independent"]}
    done = {"cell": "null: independent", "seed": 7, "n_confirmed": 5, "n_false": 5}
    path.write_text(json.dumps(done) + '\n{"cell": "null: ind')
    path.write_text(path.read_text() + "\n")
    run_cells(cells, n_sets=2, first_seed=7, path=path, jobs=1)
    known = known_answers(path)
    assert sorted(known) == [("null: independent", 7), ("null: independent", 8)]
    assert known["null: independent", 7].n_false == 5


def test_table_of__missed_promises__marked():
    cells = {"a": Cell(plan=replace(PLAN, slice_size=9), least_found=0.8), "b": Cell(plan=PLAN)}
    missed = {("a", seed): Answer(n_confirmed=1, n_false=1) for seed in range(50)}
    kept = {("b", seed): Answer(n_confirmed=0, n_false=0) for seed in range(50)}
    lines = table_of(cells, {**missed, **kept}).splitlines()
    assert lines[2].count("**missed**") == 2
    assert "missed" not in lines[3]


def test_cells__every_attack_has_a_cell():
    assert {
        "null: 15 seeds",
        "null: best of 30 phrases proven",
        "null: 5 nearly identical images",
    } <= set(CELLS)
    assert all(cell.most_false == 0.05 for cell in CELLS.values())
    assert isinstance(CELLS["null: 15 seeds"].ask, partial)
