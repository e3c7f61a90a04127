from dataclasses import replace

import pytest

from weakspot.core.errors import NotEnoughDataError, RefusedPromptError
from weakspot.project.refine.prompts import (
    directions_prompts,
    instead,
    pooled_names,
    predefined_prompts,
    random_prompts,
    refine_prompts,
    seed_names,
)
from weakspot.project.refine.training import NamedFailures, Prompt, RefineRequest, Wanted
from weakspot.repair.strategies.synthetic import class_prompt


def _named(class_name, value, n_failures, kind="colour"):
    phrase = f"a photo of a {value} {class_name}"
    return NamedFailures(
        class_name=class_name,
        kind=kind,
        value=value,
        phrase=phrase,
        n_failures=n_failures,
        n_seed=10,
    )


NAMES = pooled_names(
    [
        [
            _named("disc", value, n)
            for value, n in (("red", 1), ("green", 6), ("blue", 2), ("pink", 3))
        ]
    ]
)


def test_seed_names__the_planted_value_comes_first(subject, colour_world):
    problem = colour_world.problem
    found, _ = seed_names(subject, RefineRequest(kinds=("colour",)))
    own = [one for one in found if one.class_name == problem.class_name]
    assert own[0].value == problem.value
    assert own[0].n_failures > 2 * own[1].n_failures
    assert (
        own[0].phrase
        == f"a photo of {'an' if problem.value[0] in 'aeiou' else 'a'} {problem.value} {problem.class_name}"
    )
    assert sum(one.n_failures for one in own) <= own[0].n_seed


def test_seed_names__failures_are_put_to_values_that_can_be_drawn(subject):
    class FewWords:
        def cannot_draw(self, prompts):
            return frozenset(one for one in prompts if "blue" not in one.text)

    prepared = subject.bench.prepared
    alone = replace(prepared, assistants=replace(prepared.assistants, propose=None))
    nobody = replace(subject, bench=replace(subject.bench, prepared=alone))
    request = RefineRequest(kinds=("colour",))
    assert {one.value for one in seed_names(nobody, request)[0]} - {"blue"}
    assert {one.value for one in seed_names(nobody, request, FewWords())[0]} <= {"blue"}


def test_seed_names__only_failures_of_the_discovery_half_are_counted(subject):
    found, _ = seed_names(subject, RefineRequest())
    predicted = (
        subject.dataset.predictions[subject.seed.rows] != subject.dataset.labels[subject.seed.rows]
    )
    counts = {one.class_name: one.n_seed for one in found if one.kind == "colour"}
    assert 0 < sum(counts.values()) <= int(predicted.sum())


def test_pooled_names__failures_of_several_models_are_added():
    found = pooled_names(
        [[_named("disc", "red", 2), _named("disc", "green", 3)], [_named("disc", "red", 4)]]
    )
    assert [(one.value, one.n_failures, one.n_seed) for one in found] == [
        ("red", 6, 20),
        ("green", 3, 20),
    ]


def test_refine_prompts__commonest_values_count_by_their_failures(images):
    wanted, notes = refine_prompts(
        NAMES, RefineRequest(n_names=2, n_each=5, least_each=1, most_each=20), images
    )
    assert [(one.prompt.text, one.n_images, one.weight) for one in wanted] == [
        ("A photo of a green disc", 20, 6.0),
        ("A photo of a pink disc", 15, 3.0),
    ]
    assert notes == []


def test_refine_prompts__the_next_value_takes_the_place_of_a_refused_one(images):
    images.refused = ("green", "blue")
    wanted, notes = refine_prompts(NAMES, RefineRequest(n_names=2), images)
    assert [one.prompt.text for one in wanted] == [
        "A photo of a pink disc",
        "A photo of a red disc",
    ]
    assert notes == [
        "The generator cannot generate 2 of the values, for example “A photo of a green disc”."
    ]


def test_refine_prompts__a_class_of_which_nothing_can_be_drawn_is_left_out(images):
    images.refused = ("disc",)
    wanted, notes = refine_prompts([*NAMES, _named("star", "red", 2)], RefineRequest(), images)
    assert [one.prompt for one in wanted] == [Prompt("star", "A photo of a red star")]
    assert (
        notes[1]
        == "disc is left out: the generator can generate none of the values that its failures show."
    )


def test_refine_prompts__everything_is_refused(images):
    images.refused = ("photo",)
    with pytest.raises(RefusedPromptError, match="none of the 4 values") as caught:
        refine_prompts(NAMES, RefineRequest(), images)
    assert caught.value.fix == "Say it without the refused words."


WANTED = (
    Wanted(prompt=Prompt("disc", "A photo of a green disc"), n_images=20, weight=6.0),
    Wanted(prompt=Prompt("disc", "A photo of a pink disc"), n_images=15, weight=3.0),
    Wanted(prompt=Prompt("star", "A photo of a red star"), n_images=5, weight=1.0),
)


def _totals(wanted):
    return {
        name: (
            sum(one.n_images for one in wanted if one.prompt.class_name == name),
            pytest.approx(sum(one.weight for one in wanted if one.prompt.class_name == name)),
        )
        for name in ("disc", "star")
    }


def test_instead__as_many_images_of_every_class_that_count_as_much():
    found = instead(WANTED, {"disc": ["a", "b", "a"]})
    assert [(one.prompt, one.n_images) for one in found] == [
        (Prompt("disc", "a"), 18),
        (Prompt("disc", "b"), 17),
        (Prompt("star", "A photo of a star"), 5),
    ]
    assert _totals(found) == _totals(WANTED)


def test_random_prompts__mere_names(images):
    found = random_prompts(WANTED, images)
    assert [(one.prompt.text, one.n_images, one.weight) for one in found] == [
        ("A photo of a disc", 35, 9.0),
        ("A photo of a star", 5, 1.0),
    ]


def test_predefined_prompts__drawn_by_lot_from_a_list(images):
    request = RefineRequest(
        kinds=("colour",),
        n_names=2,
        predefined=(("colour", ("red", "blue", "green", "pink", "white")),),
    )
    found, notes = predefined_prompts(WANTED, request, images, seed=1)
    assert _totals(found) == _totals(WANTED)
    assert len({one.prompt.text for one in found if one.prompt.class_name == "disc"}) == 2
    assert found == predefined_prompts(WANTED, request, images, seed=1)[0]
    generated = {
        frozenset(
            one.prompt.text for one in predefined_prompts(WANTED, request, images, seed=seed)[0]
        )
        for seed in range(6)
    }
    assert len(generated) > 1
    assert notes == []


def test_directions_prompts__captions_of_slices_of_the_discovery_half(
    subject, images, colour_world
):
    name = colour_world.problem.class_name
    wanted = [Wanted(prompt=Prompt(name, class_prompt(name)), n_images=30, weight=2.0)]
    found, _ = directions_prompts(wanted, RefineRequest(), images, subject)
    assert sum(one.n_images for one in found) == 30
    assert any(colour_world.problem.value in one.prompt.text for one in found)


def test_directions_prompts__easy_ends_show_something_else(subject, images, colour_world):
    name = colour_world.problem.class_name
    wanted = [Wanted(prompt=Prompt(name, class_prompt(name)), n_images=30, weight=2.0)]
    hard, easy = (
        {
            one.prompt.text
            for one in directions_prompts(
                wanted, RefineRequest(), images, subject, is_easy=is_easy
            )[0]
        }
        for is_easy in (False, True)
    )
    assert not hard & easy
    assert not any(colour_world.problem.value in text for text in easy)
    assert class_prompt(name) not in easy


def test_directions_prompts__no_slice_of_a_class(subject, images):
    wanted = [Wanted(prompt=Prompt("disc", "A photo of a disc"), n_images=30, weight=2.0)]
    with pytest.raises(NotEnoughDataError, match="names no slice"):
        directions_prompts(wanted, RefineRequest(), images, subject)


def test_refine_prompts__a_value_that_right_samples_show_as_often_is_not_generated(images):
    everywhere = NamedFailures(
        class_name="disc",
        kind="background",
        value="in a supermarket",
        phrase="a photo of a disc in a supermarket",
        n_failures=15,
        n_seed=16,
        n_right=36,
        n_right_shown=35,
    )
    telling = everywhere.model_copy(
        update={
            "value": "in the snow",
            "phrase": "a photo of a disc in the snow",
            "n_failures": 4,
            "n_right_shown": 1,
        }
    )
    names = pooled_names([[everywhere, telling]])
    assert [one.value for one in names] == ["in the snow", "in a supermarket"]
    (wanted,), _ = refine_prompts(names, RefineRequest(), images)
    assert wanted.prompt.text == "A photo of a disc in the snow"
    assert wanted.weight == pytest.approx(4 - 16 / 36)
    with pytest.raises(NotEnoughDataError, match="as common among right samples"):
        refine_prompts(pooled_names([[everywhere]]), RefineRequest(), images)
