from dataclasses import replace

import numpy as np

from weakspot.lab.reproduce.clarify.arms import WORST, Workshop, annotator_results, arm_results
from weakspot.lab.reproduce.clarify.world import planted_faces


def test_annotator_results__who_says_what_the_expert_says_is_measured_as_the_arm_is():
    world = planted_faces(seed=3, part=0.1)
    (words,) = world.expert.values()
    workshop = Workshop(world=replace(world, vocabulary=(words,)), seed=0)
    assert workshop.worst_class() in world.expert
    (found,) = annotator_results(workshop, np.random.default_rng(0), n_annotators=1, n_phrases=1)
    arm = arm_results(workshop)["Clarify (worst-slice)"]
    assert found["words"] == words
    assert found[WORST] == arm[WORST] == min(arm["groups"].values())
