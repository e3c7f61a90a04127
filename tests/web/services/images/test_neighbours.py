import numpy as np

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.samples import SampleSet
from weakspot.web.services.images import nearest_images, visible_samples


def test_nearest__sample__right_and_wrong_ones_that_people_may_look_at(world_workspace):
    row = int(world_workspace.discovery.rows[3])
    found = nearest_images(world_workspace, row)
    assert found.note == ""
    seen = set(visible_samples(world_workspace).rows.tolist())
    for listed, is_failure in ((found.right, False), (found.wrong, True)):
        assert listed
        assert {one.is_failure for one in listed} == {is_failure}
        assert {one.row for one in listed} <= seen - {row}
        scores = [one.score for one in listed]
        assert scores == sorted(scores, reverse=True)


def test_nearest__no_embeddings__says_why(open_world, green_world):
    samples = SampleSet(dataset=green_world.dataset, rows=np.arange(len(green_world)))
    found = nearest_images(open_world(samples=samples, assistants=NO_ASSISTANTS), 0)
    assert (found.right, found.wrong) == ([], [])
    assert "no embeddings" in found.note
