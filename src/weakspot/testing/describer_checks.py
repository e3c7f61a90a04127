"""Checks of describers."""

from collections.abc import Sequence

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import Split
from weakspot.core.roles import Describer
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.testing import material
from weakspot.testing.part_checks import (
    ANY_METHOD,
    Factory,
    expect,
    expect_no_global_randomness,
    role_checks,
)


def _samples() -> SampleSet:
    return material.sample_set(Split.VALIDATION)


def _named(
    factory: Factory, samples: SampleSet | None = None, slices: Sequence[FailureSlice] | None = None
) -> tuple[FailureSlice, ...]:
    given = _samples() if samples is None else samples
    part: Describer = factory()
    wanted = material.slices_of(given) if slices is None else slices
    return part.describe(wanted, given, material.CRITERION, material.ASSISTANTS)


def slices_stay_the_same_but_for_names(factory: Factory) -> None:
    """The same slices come back in the same order, and only their names are new."""
    given = material.slices_of(_samples())
    named = _named(factory)
    expect(
        [found.slice_id for found in named] == [found.slice_id for found in given],
        "Slices were lost, added or reordered.",
    )
    bare = [found.model_copy(update={"names": (), "easy_names": ()}) for found in named]
    expect(bare == list(given), "More than the names of a slice was changed.")


def names_are_words(factory: Factory) -> None:
    """Every slice that is about something gets a name, best first."""
    for found in _named(factory):
        expect(found.names, f"The slice {found.title!r} got no name.")
        expect(
            all(name.phrase.strip() and name.contrast.strip() for name in found.names),
            "A name is empty.",
        )
        expect(all(name.describer for name in found.names), "A name does not say who found it.")
        scores = [name.score for name in found.names]
        expect(scores == sorted(scores, reverse=True), "Names are not sorted, best first.")


def same_result_twice(factory: Factory) -> None:
    """Two fresh parts find the same names."""
    expect(_named(factory) == _named(factory), "The same slices got other names.")


def second_call_forgets_the_first(factory: Factory) -> None:
    """A part that was used before finds what a fresh one finds."""
    part: Describer = factory()
    test = material.sample_set(Split.TEST)
    part.describe(
        material.slices_of(test, phrases=("a white square",)),
        test,
        material.CRITERION,
        material.ASSISTANTS,
    )
    samples = _samples()
    again = part.describe(
        material.slices_of(samples), samples, material.CRITERION, material.ASSISTANTS
    )
    expect(again == _named(factory), "The result depends on an earlier call.")


def input_stays_as_it_is(factory: Factory) -> None:
    """No array of the samples is changed."""
    samples = _samples()
    before = material.contents(samples)
    _named(factory, samples)
    expect(material.contents(samples) == before, "An array of the given samples was changed.")


def no_global_randomness(factory: Factory) -> None:
    """Nothing is left to chance."""
    expect_no_global_randomness(lambda: _named(factory))


def nobody_to_ask_is_survived(factory: Factory) -> None:
    """Without anybody to ask, or with assistants that are of no use, the slices come back all the same."""
    part: Describer = factory()
    samples = _samples()
    given = material.slices_of(samples)
    for assistants in (NO_ASSISTANTS, material.useless_assistants()):
        named = part.describe(given, samples, material.CRITERION, assistants)
        expect(
            [found.slice_id for found in named] == [found.slice_id for found in given],
            "Slices were lost, added or reordered.",
        )


def no_slices_give_none(factory: Factory) -> None:
    expect(_named(factory, slices=()) == (), "Slices came out of nothing.")


def multi_label_is_understood(factory: Factory) -> None:
    """Slices of a multi-label task are named too."""
    samples = material.sample_set(Split.VALIDATION, is_multi_label=True)
    given = material.slices_of(samples)
    named = _named(factory, samples, given)
    expect(
        [found.slice_id for found in named] == [found.slice_id for found in given],
        "Slices were lost, added or reordered.",
    )


CHECKS = role_checks(
    Describer,
    ANY_METHOD,
    slices_stay_the_same_but_for_names,
    names_are_words,
    same_result_twice,
    second_call_forgets_the_first,
    input_stays_as_it_is,
    no_global_randomness,
    nobody_to_ask_is_survived,
    no_slices_give_none,
    multi_label_is_understood,
)
