from dataclasses import replace

import numpy as np
import pytest

from weakspot.project.refine.training import (
    CAREFUL,
    N_STEPS,
    Prompt,
    RefineRequest,
    Step,
    Wanted,
    added_images,
    chosen_head,
    old_head,
    refined_head,
    rights,
    step_note,
)


@pytest.fixture
def added(subject, images, colour_world):
    problem = colour_world.problem
    prompt = Prompt(problem.class_name, f"A photo of a {problem.value} {problem.class_name}")
    return added_images(subject, [Wanted(prompt=prompt, n_images=20, weight=1.0)], images)


def _lost(subject, samples, head):
    before, after = rights(subject, samples, head)
    return 1.0 - after[before].mean()


def _training(subject):
    return subject.bench.samples.only(subject.bench.material.labelled)


def _farthest(subject, added, most_lost):
    """Return after how many steps both sets of right samples lose too much for the first time, less one."""
    for step in range(1, N_STEPS + 1):
        head = refined_head(subject, added, Step(debug_weight=0.5, share=step / N_STEPS))
        sets = (subject.seed, _training(subject))
        if max(_lost(subject, samples, head) for samples in sets) > most_lost:
            return step - 1
    return N_STEPS


def test_chosen_head__goes_a_part_of_the_way_that_loses_little(subject, added):
    found = chosen_head(subject, added, RefineRequest())
    farthest = _farthest(subject, added, 0.02)
    assert found.step == Step(debug_weight=0.5, share=int(CAREFUL * farthest) / N_STEPS)
    assert 0.0 < found.step.share < farthest / N_STEPS < 1.0
    same = refined_head(subject, added, found.step)
    assert np.array_equal(found.head.weights, same.head.weights)


def test_chosen_head__goes_farther_where_more_may_be_lost(subject, added):
    strict = chosen_head(subject, added, RefineRequest(most_lost=0.01))
    loose = chosen_head(subject, added, RefineRequest(most_lost=0.5))
    assert strict.step.share < loose.step.share == CAREFUL


def test_chosen_head__right_training_samples_count_beside_the_discovery_half(subject, added):
    few = replace(subject, seed=subject.seed.only(subject.seed.rows[:1]))
    found = chosen_head(few, added, RefineRequest(most_lost=0.01))
    assert found.step.share == int(CAREFUL * _farthest(few, added, 0.01)) / N_STEPS < CAREFUL


def test_chosen_head__the_discovery_half_counts_beside_training_samples(subject, added):
    """The half is left with one right sample, one that the retrained layer loses: nothing may be lost of it."""
    whole = refined_head(subject, added, Step(debug_weight=0.5, share=1.0))
    seed = subject.seed
    alone = next(
        one for row in seed.rows if _is_lost(subject, one := seed.only(np.array([row])), whole)
    )
    found = chosen_head(replace(subject, seed=alone), added, RefineRequest(most_lost=0.5))
    assert found.step.share < CAREFUL
    assert _lost(subject, alone, found) == 0.0


def _is_lost(subject, sample, head):
    before, after = rights(subject, sample, head)
    return bool(before[0] and not after[0])


def test_chosen_head__nowhere_if_the_first_step_loses_too_much(subject, images):
    prompt = Prompt("disc", "A photo of a square")
    wrong = added_images(subject, [Wanted(prompt=prompt, n_images=20, weight=1.0)], images)
    found = chosen_head(subject, wrong, RefineRequest(most_lost=0.0))
    assert found.step.share == 0.0
    assert found.head is old_head(subject)
    assert refined_head(subject, None, found.step).step == Step(debug_weight=0.0, share=0.0)


def test_chosen_head__a_given_weight_is_trained_from_nothing(subject, added):
    found = chosen_head(subject, added, RefineRequest(debug_weight=0.3))
    assert found.step == Step(debug_weight=0.3, share=None)


def test_step_note__beside_the_way_of_the_paper(subject, added):
    chosen = chosen_head(subject, added, RefineRequest())
    whole = refined_head(subject, added, Step(debug_weight=0.5))
    before, after = rights(subject, subject.seed, whole)
    note = step_note(subject, added, chosen)
    assert note.endswith(
        f"(--weight 0.5) it would resolve {(~before & after).sum()} and lose {(before & ~after).sum()}."
    )
    _, chosen_after = rights(subject, subject.seed, chosen)
    assert f"this resolves {(~before & chosen_after).sum()} of {(~before).sum()} failures" in note
    assert step_note(subject, added, whole) == ""
