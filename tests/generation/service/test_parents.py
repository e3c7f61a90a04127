from itertools import count

import pytest

from weakspot.core.errors import ModelError, NotEnoughDataError, RefusedPromptError
from weakspot.generation.service.parents import parent_seeds


class Composer:
    """Shows object `seed % n` of a class; a prompt can only show those that it is told, and then the next one that it may."""

    def __init__(self, n_objects, only=None):
        self.n_objects, self.only = n_objects, only or {}

    def parents_of(self, prompt, seed):
        if prompt == "refused":
            raise RefusedPromptError("no")
        allowed = self.only.get(prompt, range(self.n_objects))
        if not allowed:
            raise ModelError("nothing")
        return (
            str(
                next(one for one in count(seed) if one % self.n_objects in allowed) % self.n_objects
            ),
        )


def _seeds(composer, prompts=("plain",), *, n=12, least=10):
    return parent_seeds(
        composer, prompts, (seed // 3 for seed in count()), n=n, least=least, class_name="apple"
    )


def test_parent_seeds__every_object_once():
    found = _seeds(Composer(20))
    assert found.seeds == tuple(range(12))
    assert found.is_complete


def test_parent_seeds__fewer_objects_than_asked_for():
    found = _seeds(Composer(11))
    assert len(found.seeds) == 11
    assert not found.is_complete


def test_parent_seeds__too_few_objects_are_refused_in_a_sentence():
    with pytest.raises(
        NotEnoughDataError,
        match="Only 9 different objects of the class 'apple'.*the 10 that.*masks",
    ):
        _seeds(Composer(9))


def test_parent_seeds__who_asks_for_few_needs_no_more():
    assert len(_seeds(Composer(4), n=4).seeds) == 4


def test_parent_seeds__prompts_show_the_same_object():
    composer = Composer(40, {"moved": range(0, 40, 2)})
    found = _seeds(composer, ("plain", "moved"))
    shown = {
        prompt: [composer.parents_of(prompt, seed) for seed in found.seeds]
        for prompt in found.prompts
    }
    assert shown["plain"] == shown["moved"]
    assert len(set(shown["plain"])) == 12


def test_parent_seeds__prompt_with_too_few_is_left_out_with_why():
    found = _seeds(Composer(40, {"moved": range(5)}), ("plain", "moved", "dark"))
    assert found.prompts == ("plain", "dark")
    assert found.short["moved"].startswith("Only 5 different objects")
    assert len(found.seeds) == 12


def test_parent_seeds__prompts_that_share_too_few_are_parted():
    composer = Composer(40, {"even": range(0, 40, 2), "odd": range(1, 40, 2)})
    found = _seeds(composer, ("plain", "even", "odd"))
    assert len(found.prompts) == 2
    assert len(found.seeds) == 12


def test_parent_seeds__refused_prompt_is_left_to_who_draws():
    found = _seeds(Composer(20), ("plain", "refused"))
    assert found.prompts == ("plain", "refused")


def test_parent_seeds__generator_that_has_no_parents_takes_any_seed():
    assert _seeds(object()).seeds == (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)
