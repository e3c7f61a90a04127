"""People who go on asking: where nothing is wrong, the chance of any false finding stays what was promised."""

import os

import numpy as np
from tests.project.null_project import NullProject, null_samples

from weakspot.core.evidence import Verdict
from weakspot.run.phrase_questions import Fit

N_SETS = int(os.environ.get("WEAKSPOT_NULL_SETS", "10"))
N_PHRASES, ALPHA = 30, 0.05
PHRASES = [f"word {number}" for number in range(N_PHRASES)]
SEPARATES = (Fit.GOOD, Fit.SEPARATES_ONLY)


def _most_false(n_sets):
    return ALPHA * n_sets + 2 * np.sqrt(n_sets * ALPHA * (1 - ALPHA))


def _confirmed(record):
    return [entry for entry in record.evidence if entry.verdict is Verdict.CONFIRMED]


def _asked_one_by_one(project, phrases=PHRASES):
    answers = [project.ask("apple", [phrase]).answers[0] for phrase in phrases]
    assert project.ledger().standing().n_batches <= len(phrases)
    return answers


def test_hypothesis__thirty_one_after_another__any_false_at_most_alpha(tmp_path):
    n_false = 0
    for number in range(N_SETS):
        answers = _asked_one_by_one(NullProject(tmp_path / str(number), null_samples(number)))
        n_false += any(one.fit in SEPARATES for one in answers)
    assert n_false <= _most_false(N_SETS)


def test_prove__best_of_thirty_that_were_looked_at__any_false_at_most_alpha(tmp_path):
    n_false = 0
    for number in range(N_SETS):
        project = NullProject(tmp_path / str(number), null_samples(10_000 + number))
        answers = _asked_one_by_one(project)
        best = min(answers, key=lambda one: one.p_value)
        record = project.prove("apple", [best.phrase])
        n_false += bool(_confirmed(record))
        # The phrase was asked before, so proving it costs nothing and says nothing else.
        known = [entry for entry in record.evidence if entry.batch]
        assert all(entry.q_value == best.p_after_looks for entry in known)
    assert n_false <= _most_false(N_SETS)


def test_run__fifteen_seeds__any_false_at_most_alpha(tmp_path):
    n_false = 0
    for number in range(N_SETS):
        samples = null_samples(20_000 + number)
        folder = tmp_path / str(number)
        found = False
        for seed in range(15):
            settings = NullProject(folder, samples).settings.model_copy(
                update={
                    "seed": seed,
                    "discover": NullProject(folder, samples).settings.discover.model_copy(
                        update={
                            "methods": ("mixture",),
                            "parameters": {},
                            "screen_p": 1.0,
                        }
                    ),
                }
            )
            project = NullProject(folder, samples, settings)
            found |= bool(_confirmed(project.verify(project.discover().run_id)))
        n_false += found
    assert n_false <= _most_false(N_SETS)


def test_verify__same_run_again__same_answer_and_no_new_cost(tmp_path):
    project = NullProject(tmp_path, null_samples(7))
    record = project.prove("apple", PHRASES[:6])
    assert record.evidence
    before = project.ledger().standing()
    again = project.prove("apple", PHRASES[:6])
    assert project.ledger().standing() == before
    assert [one.q_value for one in again.evidence] == [one.q_value for one in record.evidence]
    project.prove("apple", PHRASES[6:8])
    assert project.ledger().standing().n_batches == before.n_batches + 1
