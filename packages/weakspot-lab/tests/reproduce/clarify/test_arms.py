from dataclasses import replace

import numpy as np

from weakspot_lab.reproduce.clarify.arms import WORST, Workshop, annotator_results
from weakspot_lab.reproduce.clarify.world import planted_faces


def test_annotator_results__measured_over_the_same_given_groups_as_an_arm():
    world = planted_faces(seed=3, part=0.1)
    ((class_name, words),) = world.expert.items()
    workshop = Workshop(world=replace(world, vocabulary=(words,)), seed=0)
    assert workshop.worst_class() == class_name
    (found,) = annotator_results(workshop, np.random.default_rng(0), n_annotators=1, n_phrases=1)
    repaired = workshop.as_published("worst-slice", [workshop.phrase(class_name, words)])
    arm = workshop.answered("Clarify (worst-slice)", repaired)
    assert found["words"] == words
    assert len(arm["groups"]) == 4
    assert found[WORST] == arm[WORST] == min(arm["groups"].values())
