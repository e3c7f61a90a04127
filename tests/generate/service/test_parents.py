from itertools import count

import pytest

from weakspot.core.errors import ModelError, NotEnoughDataError, RefusedPromptError
from weakspot.generate.parents import different_seeds, parent_seeds, with_views


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


class Viewer(Composer):
    """Shows an object again, with a seed that is a thousand larger."""

    def parents_of(self, prompt, seed):
        return super().parents_of(prompt, seed % 1000)

    def seed_of_view(self, seed, number):
        return seed % 1000 + 1000 * number


def _views(composer, n):
    chosen = parent_seeds(composer, ["plain"], count(), n=n, least=10, class_name="apple")
    return with_views(composer, chosen, n)


def test_with_views__objects_come_again_once_all_were_shown():
    composer = Viewer(11)
    found = _views(composer, 30)
    assert found.is_complete
    assert len(set(found.seeds)) == 30
    shown = [composer.parents_of("plain", seed)[0] for seed in found.seeds]
    assert len(set(shown[:11])) == 11
    assert max(map(shown.count, shown)) == 3


def test_with_views__no_object_is_shown_more_often_than_five_times():
    found = _views(Viewer(11), 100)
    assert len(found.seeds) == 55
    assert not found.is_complete
    assert _views(Composer(11), 100).seeds == tuple(range(11))


def test_different_seeds__all_objects_once_or_refused_in_a_sentence():
    found = different_seeds(Composer(20), "plain", count(), least=10, class_name="apple")
    assert found == tuple(range(20))
    with pytest.raises(RefusedPromptError, match="Only 9 different objects"):
        different_seeds(Composer(9), "plain", count(), least=10, class_name="apple")
    with pytest.raises(RefusedPromptError, match="no"):
        different_seeds(Composer(9), "refused", count(), least=1, class_name="apple")
