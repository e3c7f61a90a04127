import numpy as np
import pytest

from weakspot.core.errors import NotEnoughDataError
from weakspot.project.refine.refinement import refine_model
from weakspot.project.refine.training import (
    BESIDE,
    Prompt,
    RefineRequest,
    Subject,
    Wanted,
    added_images,
)


@pytest.fixture(scope="module")
def refined(subject, colour_world):
    from planted_refine.planted_worlds import ModelFeatures, PlantedImages

    models = {"planted": ModelFeatures(problem=colour_world.problem)}
    return refine_model(
        subject,
        PlantedImages(world=colour_world, models=models, habits="usual"),
        RefineRequest(debug_weight=0.2),
    )[0]


def test_refine_model__resolves_more_held_out_failures_than_the_mere_classes(refined):
    first, random = refined.arms[0], refined.arm("random")
    assert first.held_out.count >= 2 * random.held_out.count
    assert first.p_against_random < 0.05
    assert first.clean.value > 0.94
    assert random.p_against_random is None


def test_refine_model__every_arm_is_measured_on_the_same_samples(refined):
    arms = refined.arms
    assert [arm.arm for arm in arms] == ["refine", *BESIDE]
    for field in ("clean", "failure", "seed", "held_out", "test_before", "test_after"):
        assert len({getattr(arm, field).total for arm in arms}) == 1
    for arm in arms:
        assert arm.clean.total + arm.failure.total == arm.test_after.total
        assert arm.clean.count + arm.failure.count == arm.test_after.count
        assert arm.test_before.count == arm.clean.total


def test_refine_model__arms_beside_it_have_as_many_images_and_the_same_weight(refined):
    arms = {arm.arm: arm for arm in refined.arms}
    assert arms["plain"].n_images == 0
    assert {arm.n_images for name, arm in arms.items() if name != "plain"} == {
        arms["refine"].n_images
    }
    assert {arm.debug_weight for name, arm in arms.items() if name != "plain"} == {0.2}
    assert {arm.share for arm in arms.values()} == {None}
    assert sum(one.n_kept for one in arms["refine"].prompts) == arms["refine"].n_images
    assert sum(one.weight for one in arms["refine"].prompts) == pytest.approx(1.0)


def test_refine_model__the_planted_value_is_among_the_prompts(refined, colour_world):
    problem = colour_world.problem
    prompts = {one.prompt: one.weight for one in refined.arms[0].prompts}
    heaviest = max(prompts, key=prompts.get)
    assert problem.value in heaviest
    assert problem.class_name in heaviest


def test_refine_model__arms_on_request(subject, images):
    """Hard, easy and neutral captions side by side; planted images have no pixels to mix, which becomes a note."""
    request = RefineRequest(
        debug_weight=0.2, arms=("random", "directions", "easy", "cutmix-pixels")
    )
    found = refine_model(subject, images, request)[0]
    arms = {arm.arm: arm for arm in found.arms}
    assert [*arms] == ["refine", "random", "directions", "easy"]
    assert arms["easy"].n_images == arms["random"].n_images
    assert arms["directions"].held_out.count > arms["easy"].held_out.count
    assert (
        "cutmix-pixels: There are no training images that could be mixed and classified."
        in found.notes
    )


def test_refine_model__held_out_and_test_labels_change_nothing_but_the_figures(
    subject, images, refined
):
    """Other held-out and test samples: the same names, prompts, weight and layer."""
    request = RefineRequest(arms=())
    whole, head = refine_model(subject, images, request)
    few = Subject(
        name=subject.name,
        bench=subject.bench,
        test=subject.test.only(subject.test.rows[::3]),
        seed=subject.seed,
        held_out=subject.held_out.only(subject.held_out.rows[::3]),
    )
    again, other = refine_model(few, images, request)
    assert again.names == whole.names
    assert again.arms[0].prompts == whole.arms[0].prompts
    assert again.arms[0].share == whole.arms[0].share > 0.0
    assert np.array_equal(other.weights, head.weights)
    assert again.arms[0].held_out.total < whole.arms[0].held_out.total


def test_refine_model__without_a_weight_all_arms_go_as_far(subject, images):
    request = RefineRequest(kinds=("colour",), arms=("random", "cutmix", "plain"))
    arms = refine_model(subject, images, request)[0].arms
    assert {arm.share for arm in arms} == {arms[0].share}
    assert [arm.debug_weight for arm in arms] == [0.5, 0.5, 0.5, 0.0]
    assert 0.0 < arms[0].share < 1.0
    assert arms[0].held_out.count >= 2 * max(arms[1].held_out.count, 1)
    assert arms[0].clean.value >= 0.98


def test_refine_model__an_arm_that_cannot_be_drawn_becomes_a_note(subject, images):
    class Bare:
        def __getattr__(self, name):
            return getattr(images, name)

        def features(self, model, prompt, n_images):
            found = images.features(model, prompt, n_images)
            return found[:0] if prompt.text in ("A photo of a disc", "A photo of a star") else found

        def refusals(self, prompts):
            images.refused = ("disc", "square", "star", "triangle")
            return {
                prompt: error
                for prompt, error in images.refusals(prompts).items()
                if prompt.text.count(" ") == 4
            }

    found = refine_model(
        subject,
        Bare(),
        RefineRequest(kinds=("colour",), debug_weight=0.1, arms=("random", "plain")),
    )[0]
    assert [arm.arm for arm in found.arms] == ["refine", "plain"]
    assert any(note.startswith("random: ") for note in found.notes)


def test_added_images__none_was_kept(subject, images):
    class Empty:
        def __getattr__(self, name):
            return getattr(images, name)

        def features(self, model, prompt, n_images):
            return images.features(model, prompt, 1)[:0]

    with pytest.raises(NotEnoughDataError, match="Not one generated image"):
        added_images(
            subject,
            [Wanted(prompt=Prompt("disc", "A photo of a disc"), n_images=3, weight=1.0)],
            Empty(),
        )


def test_refine_model__arms_are_matched_on_images_that_are_used(subject, images):
    """Three of four images of the mere classes are rejected: more of them are generated, and as many are trained on."""

    class Choosy:
        def __getattr__(self, name):
            return getattr(images, name)

        def features(self, model, prompt, n_images):
            found = images.features(model, prompt, n_images)
            return found[::4] if prompt.text.count(" ") == 4 else found

    request = RefineRequest(kinds=("colour",), debug_weight=0.1, arms=("random",))
    refined, random = refine_model(subject, Choosy(), request)[0].arms
    assert random.n_images == refined.n_images
    assert sum(one.n_asked for one in random.prompts) == 4 * sum(
        one.n_asked for one in refined.prompts
    )


def test_refine_model__an_arm_that_stays_short_says_so(subject, images):
    class Choosier:
        def __getattr__(self, name):
            return getattr(images, name)

        def features(self, model, prompt, n_images):
            found = images.features(model, prompt, n_images)
            return found[::10] if prompt.text.count(" ") == 4 else found

    request = RefineRequest(kinds=("colour",), debug_weight=0.1, arms=("random",))
    found = refine_model(subject, Choosier(), request)[0]
    refined, random = found.arms
    short = refined.n_images - random.n_images
    assert short > 0
    assert any(note.startswith(f"random: {short} images fewer") for note in found.notes)
