"""Checks of discoverers and of the membership rules that they return."""

from dataclasses import replace

import numpy as np
from pydantic import TypeAdapter

from weakspot.core.arrays import IntArray
from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import Split
from weakspot.core.errors import WeakspotError
from weakspot.core.roles import Discoverer, Discovery
from weakspot.core.rules import BUILT_IN_RULES, MembershipRule, Rule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.testing import material
from weakspot.testing.part_checks import (
    ANY_METHOD,
    Check,
    Factory,
    expect,
    expect_no_global_randomness,
    role_checks,
)

MIN_AGREEMENT = 0.98


def _find(factory: Factory, samples: SampleSet | None = None, *, seed: int = 0) -> Discovery:
    part: Discoverer = factory()
    return part.discover(
        _samples() if samples is None else samples,
        material.CRITERION,
        seed=seed,
        assistants=material.ASSISTANTS,
    )


def _samples() -> SampleSet:
    return material.sample_set(Split.VALIDATION)


def _told(discovery: Discovery) -> list[str]:
    return [found.model_dump_json() for found in discovery.slices] + [
        note.model_dump_json() for note in discovery.notes
    ]


def every_class_gets_a_word(factory: Factory) -> None:
    discovery = _find(factory)
    spoken_of = {found.class_name for found in discovery.slices} | {
        note.class_name for note in discovery.notes
    }
    missing = set(_samples().dataset.class_names) - spoken_of
    expect(
        not missing, f"Nothing is said of the classes {sorted(missing)}: return a slice or a note."
    )


def slices_say_where_they_come_from(factory: Factory) -> None:
    """Slices name their method, known classes, and the samples that were looked at."""
    samples = _samples()
    slices = _find(factory, samples).slices
    for found in slices:
        expect(found.method, "A slice does not name its method.")
        expect(
            found.class_name in samples.dataset.class_names,
            f"A slice is about the unknown class {found.class_name!r}.",
        )
        expect(
            found.found_on.digest == samples.digest(),
            "found_on.digest is not the digest of the samples that were given.",
        )
        expect(
            found.found_on.n_samples == len(samples),
            "found_on.n_samples is not the number of samples that were given.",
        )
    ids = [found.slice_id for found in slices]
    expect(len(set(ids)) == len(ids), "Two slices have the same id.")


def same_seed_same_result(factory: Factory) -> None:
    expect(
        _told(_find(factory, seed=5)) == _told(_find(factory, seed=5)),
        "The same seed gave two results.",
    )


def second_call_forgets_the_first(factory: Factory) -> None:
    """A part that was used before finds what a fresh one finds."""
    part: Discoverer = factory()
    part.discover(
        material.sample_set(Split.TEST), material.CRITERION, seed=1, assistants=material.ASSISTANTS
    )
    again = part.discover(_samples(), material.CRITERION, seed=0, assistants=material.ASSISTANTS)
    expect(_told(again) == _told(_find(factory)), "The result depends on an earlier call.")


def input_stays_as_it_is(factory: Factory) -> None:
    """No array of the samples is changed."""
    samples = _samples()
    before = material.contents(samples)
    _find(factory, samples)
    expect(material.contents(samples) == before, "An array of the given samples was changed.")


def read_only_arrays_are_enough(factory: Factory) -> None:
    """Embeddings and probabilities may be memory-mapped for reading."""
    samples = material.sample_set(Split.VALIDATION, is_read_only=True)
    expect(
        _told(_find(factory, samples)) == _told(_find(factory)),
        "Read-only arrays gave another result.",
    )


def no_global_randomness(factory: Factory) -> None:
    """Only the given seed decides."""
    expect_no_global_randomness(lambda: _told(_find(factory)))


def order_of_rows_does_not_matter(factory: Factory) -> None:
    """The same samples in another order give the same members."""
    samples = _samples()
    order = np.random.default_rng(3).permutation(len(samples.dataset))
    moved = material.reordered(samples, order)
    found, again = _find(factory, samples).slices, _find(factory, moved).slices
    expect(
        len(found) == len(again),
        f"{len(found)} slices became {len(again)} when the rows were reordered.",
    )
    for first, second in zip(_by_class(found), _by_class(again), strict=True):
        inside, inside_again = _member_ids(first, samples), _member_ids(second, moved)
        agreement = len(inside & inside_again) / max(len(inside | inside_again), 1)
        expect(
            agreement >= MIN_AGREEMENT or inside == inside_again,
            f"Members changed with the order of rows ({agreement:.2f}).",
        )


def _by_class(slices: tuple[FailureSlice, ...]) -> list[FailureSlice]:
    return sorted(slices, key=lambda found: (found.class_name, -(found.strength or 0.0)))


def _member_ids(found: FailureSlice, samples: SampleSet) -> set[str]:
    return set(samples.dataset.sample_ids(found.members(samples)))


def predictions_elsewhere_do_not_matter(factory: Factory) -> None:
    """Labels and predictions of samples that were not given are never looked at."""
    samples = _samples()
    changed = material.with_predictions_elsewhere_changed(samples)
    first, second = _told(_find(factory, samples)), _told(_find(factory, changed))
    expect(first == second, "Labels or predictions of rows that were not given were used.")


def calm_classes_get_a_note(factory: Factory) -> None:
    """A class without failures, or with one, is passed over with a note."""
    samples = material.with_few_failures(_samples())
    discovery = _find(factory, samples)
    calm, single = samples.dataset.class_names[:2]
    noted = {note.class_name for note in discovery.notes}
    expect(calm in noted, f"The class {calm!r} never fails and gets no note.")
    expect(
        all(found.class_name != calm for found in discovery.slices),
        f"A slice was found in {calm!r}, which never fails.",
    )
    expect(
        single in noted | {found.class_name for found in discovery.slices},
        f"Nothing is said of {single!r}, which fails once.",
    )


def empty_input_is_survived(factory: Factory) -> None:
    """No samples: no slices, or an error of weakspot."""
    samples = _samples()
    empty = samples.only(samples.rows[:0])
    try:
        discovery = _find(factory, empty)
    except WeakspotError:
        return
    expect(not discovery.slices, "Slices were found in no samples.")


def missing_embeddings_are_survived(factory: Factory) -> None:
    """Rows of NaN mean: no embedding. Nothing may break, and all-NaN gives no slice of embeddings."""
    samples = _samples()
    holed = samples.space("clip").embeddings.copy()
    holed[samples.rows[::3]] = np.nan
    spaces = {**samples.spaces, "clip": replace(samples.space("clip"), embeddings=holed)}
    _find(factory, replace(samples, spaces=spaces))
    _find(
        factory,
        replace(samples, spaces=dict.fromkeys(samples.spaces, material.empty_space(samples))),
    )


def nobody_to_ask_is_survived(factory: Factory) -> None:
    """Without anybody to ask, or with assistants that are of no use, every class still gets a slice or a note."""
    for assistants in (NO_ASSISTANTS, material.useless_assistants()):
        part: Discoverer = factory()
        samples = _samples()
        discovery = part.discover(samples, material.CRITERION, seed=0, assistants=assistants)
        spoken_of = {found.class_name for found in discovery.slices} | {
            note.class_name for note in discovery.notes
        }
        missing = set(samples.dataset.class_names) - spoken_of
        expect(
            not missing, f"With nobody to ask, nothing is said of the classes {sorted(missing)}."
        )


def rules_decide_on_unseen_rows(factory: Factory) -> None:
    """Every rule can be applied to samples that discovery never saw."""
    samples = _samples()
    unseen: IntArray = samples.dataset.rows_of(Split.TEST)
    for found in _find(factory, samples).slices:
        inside = found.rule.members(samples, unseen)
        expect(
            inside.shape == unseen.shape and inside.dtype == np.bool_,
            "A rule does not give one answer an unseen row.",
        )
        expect(
            np.isfinite(found.rule.scores(samples, unseen)).all(),
            "A rule gives no finite score to an unseen row.",
        )


def slices_survive_json(factory: Factory) -> None:
    """A slice read back from a run record is the same slice."""
    samples = _samples()
    for found in _find(factory, samples).slices:
        again = FailureSlice.model_validate_json(found.model_dump_json())
        expect(
            again == found and again.slice_id == found.slice_id,
            "A slice changes when it is stored and read.",
        )
        expect(
            np.array_equal(again.members(samples), found.members(samples)),
            "A stored slice has other members.",
        )


def multi_label_is_understood(factory: Factory) -> None:
    """In a multi-label task a slice says which side of the label it is about."""
    samples = material.sample_set(Split.VALIDATION, is_multi_label=True)
    for found in _find(factory, samples).slices:
        expect(
            found.side is not None,
            "A slice of a multi-label task does not say whether members have or lack the label.",
        )


DISCOVERER_CHECKS = role_checks(
    Discoverer,
    ANY_METHOD,
    every_class_gets_a_word,
    slices_say_where_they_come_from,
    same_seed_same_result,
    second_call_forgets_the_first,
    input_stays_as_it_is,
    read_only_arrays_are_enough,
    no_global_randomness,
    order_of_rows_does_not_matter,
    predictions_elsewhere_do_not_matter,
    calm_classes_get_a_note,
    empty_input_is_survived,
    missing_embeddings_are_survived,
    nobody_to_ask_is_survived,
    rules_decide_on_unseen_rows,
    slices_survive_json,
    multi_label_is_understood,
)


def is_a_rule_of_its_kind(factory: Factory) -> None:
    """It is a frozen record whose kind is the name it is registered under."""
    rule = factory()
    expect(
        isinstance(rule, Rule),
        f"{type(rule).__name__} does not inherit from weakspot.core.rules.Rule.",
    )
    is_named = rule.kind in BUILT_IN_RULES or rule.kind.count("/") == 1
    expect(is_named, f"The kind {rule.kind!r} is not `package/name`.")


def scores_and_members_fit_the_rows(factory: Factory) -> None:
    """One number and one yes or no for every row, whatever rows are asked about; members score higher than others."""
    samples = material.sample_set(Split.VALIDATION, is_read_only=True)
    rule: Rule = factory()
    for rows in (samples.rows, samples.rows[::-1], samples.rows[:0]):
        scores, members = rule.scores(samples, rows), rule.members(samples, rows)
        expect(
            scores.shape == members.shape == rows.shape, "Not one score and answer for every row."
        )
        expect(members.dtype == np.bool_, "Members are not told by booleans.")
        inside, outside = scores[members], scores[~members]
        expect(
            not len(inside)
            or not len(outside)
            or inside.min() >= np.nanmax(outside, initial=-np.inf),
            "A sample outside scores higher than one inside.",
        )
    backwards = rule.members(samples, samples.rows[::-1])[::-1]
    expect(
        np.array_equal(backwards, rule.members(samples, samples.rows)), "The order of rows matters."
    )


def says_who_belongs(factory: Factory) -> None:
    """It has a sentence of its own for people."""
    rule: Rule = factory()
    expect(
        rule.sentence.strip().endswith("."),
        "The sentence of the rule does not end with a full stop.",
    )
    expect(rule.sentence != Rule(kind=rule.kind).sentence, "The rule has no sentence of its own.")


def survives_a_record(factory: Factory) -> None:
    """Stored and read again, it is the same rule, and its slice has the same id."""
    rule: Rule = factory()
    adapter: TypeAdapter[Rule] = TypeAdapter(MembershipRule)
    again = adapter.validate_json(adapter.dump_json(rule))
    expect(type(again) is type(rule) and again == rule, "The rule is another one after JSON.")
    use = DataUse(name="validation", n_samples=1, digest="0")
    slice_ = FailureSlice(class_name="disc", rule=rule, method="check", found_on=use)
    read = FailureSlice.model_validate_json(slice_.model_dump_json())
    expect(read == slice_ and read.slice_id == slice_.slice_id, "A slice changes in JSON.")


RULE_CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        is_a_rule_of_its_kind,
        scores_and_members_fit_the_rows,
        says_who_belongs,
        survives_a_record,
    )
}
