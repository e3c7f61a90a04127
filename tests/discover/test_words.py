import numpy as np
import pytest
from tests import build

from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.slices import DataUse
from weakspot.discover.words import WordFrequenciesDiscoverer, WordsDiscoverer
from weakspot.testing.checks import checks_for

TOP_1 = FailureCriterion()


def _samples(captions, failed, **columns):
    return build.samples(
        [0] * len(captions),
        class_names=["dog", "cat"],
        predictions=failed,
        metadata={"caption": captions, **columns},
    )


def _rainy(n_samples=200, *, seed=0):
    """Every fifth dog is out in heavy rain and mostly wrong; as many are in light rain, or carry something heavy, and are right."""
    random = np.random.default_rng(seed)
    captions, failed = [], []
    for number in range(n_samples):
        where = ("in heavy rain", "in light rain", "with heavy bags", "at home", "at home")[
            number % 5
        ]
        thing = str(random.choice(["a bench", "two benches", "trees", "a car", "cars"]))
        captions.append(f"A photo of a brown dog {where} near {thing}")
        failed.append(random.random() < (0.7 if number % 5 == 0 else 0.08))
    return _samples(captions, failed)


def _problem(samples):
    return class_problems(samples.dataset, samples.rows, TOP_1)[0]


def test_blind_candidates__no_stop_words_class_words_or_near_constant_words__each_once():
    samples = _rainy()
    listed = WordsDiscoverer().blind_candidates(samples, _problem(samples), seed=0)
    words = [one[0].rule.words for one in listed]
    assert len(set(words)) == len(words)
    # `brown` is said by all, `dog` is the class, `heavy bag` says more than `bag` and means the same samples.
    assert {
        "rain",
        "heavy",
        "heavy rain",
        "light rain",
        "heavy bag",
        "home",
        "bench",
        "car",
    } <= set(words)
    assert not {"brown", "dog", "brown dog", "a", "photo", "bag", "light", "in"} & set(words)
    assert {one[1] for one in listed} == {1.0}


def test_blind_candidates__words_of_the_class_name__left_out_though_not_all_say_them():
    captions = [f"a {('small dog', 'puppy')[row % 2]} near a bench" for row in range(60)]
    samples = _samples(captions, np.arange(60) % 5 == 0)
    listed = WordsDiscoverer().blind_candidates(samples, _problem(samples), seed=0)
    assert {one[0].rule.words for one in listed} == {"small", "puppy"}


def test_blind_candidates__predictions_play_no_part():
    samples = _rainy()
    shuffled = _samples(
        samples.dataset.metadata("caption").to_pylist(),
        np.random.default_rng(1).permutation(samples.dataset.predictions),
    )
    first, second = (
        [
            one[0].slice_id
            for one in WordsDiscoverer().blind_candidates(each, _problem(each), seed=0)
        ]
        for each in (samples, shuffled)
    )
    assert first == second
    listed = WordsDiscoverer().blind_candidates(samples, _problem(samples), seed=0)
    assert {one[0].found_on.digest for one in listed} == {DataUse.nothing().digest}


def test_blind_candidates__no_captions__none():
    samples = _samples([1, 2, 3], [0, 1, 0])
    assert WordsDiscoverer().blind_candidates(samples, _problem(samples), seed=0) == ()


def test_blind_candidates__at_most_so_many__the_most_frequent():
    samples = _rainy()
    few = WordsDiscoverer(max_candidates=2)
    listed = few.blind_candidates(samples, _problem(samples), seed=0)
    assert {one[0].rule.words for one in listed} <= {"rain", "heavy", "home", "bench", "car"}
    assert len(listed) == 2


def test_discover__phrase_whose_words_alone_are_harmless__is_the_name_and_true_of_all_members():
    samples = _rainy()
    found = WordsDiscoverer().discover(samples, TOP_1, seed=0)
    first = found.slices[0]
    assert (first.title, first.names[0].phrase) == ("dog: heavy rain", "heavy rain")
    captions = samples.dataset.metadata("caption").to_pylist()
    assert all("heavy rain" in captions[row] for row in first.members(samples))
    assert first.n_found == len(first.members(samples)) == 40
    assert first.strength_p < 0.001
    assert found.n_considered == 10


def test_discover__failures_by_chance__note():
    captions = [f"a dog near a {('bench', 'tree', 'car')[row % 3]}" for row in range(90)]
    found = WordsDiscoverer().discover(_samples(captions, np.arange(90) % 7 == 4), TOP_1, seed=0)
    assert found.slices == ()
    assert "words of captions stands out" in found.notes[0].note


def test_discover__captions_missing_here_and_there__said_and_left_out():
    captions = ["a dog in the rain", None] * 2
    found = WordsDiscoverer(min_captions=1).discover(
        _samples(captions, [0, 1, 0, 0]), TOP_1, seed=0
    )
    assert found.slices == ()
    assert "0 of 2 samples failed" in found.notes[0].note
    assert "2 samples have no caption" in found.notes[0].note


def test_discover__no_such_column__note_names_it():
    found = WordsDiscoverer(caption_column="text").discover(_rainy(), TOP_1, seed=0)
    assert "'text'" in found.notes[0].note


@pytest.mark.parametrize("check", ["order_of_rows_does_not_matter", "slices_survive_json"])
@pytest.mark.parametrize("part", [WordsDiscoverer, WordFrequenciesDiscoverer])
def test_conformance__with_captions(check, part, monkeypatch):
    from weakspot.testing import discoverer_checks
    from weakspot.testing.examples import captioned_samples

    monkeypatch.setattr(discoverer_checks, "_samples", captioned_samples)
    checks_for("discoverers")[check](part)
    assert part().discover(captioned_samples(), TOP_1, seed=0).slices


def test_word_frequencies__largest_difference_of_shares_first__nothing_tested():
    samples = _rainy()
    first, *others = WordFrequenciesDiscoverer(max_slices=10).frequencies(
        samples, _problem(samples)
    )
    failed = samples.dataset.predictions > 0
    said = np.array(
        ["heavy rain" in text for text in samples.dataset.metadata("caption").to_pylist()]
    )
    assert (first.words, first.failed_with, first.right_with) == (
        "heavy rain",
        int((failed & said).sum()),
        int((~failed & said).sum()),
    )
    assert (first.n_failed, first.n_right) == (int(failed.sum()), int((~failed).sum()))
    assert all(0 < one.difference <= first.difference for one in others)


def test_word_frequencies_discoverer__is_a_baseline():
    found = WordFrequenciesDiscoverer(max_slices=1).discover(_rainy(), TOP_1, seed=0)
    assert [one.title for one in found.slices] == ["dog: heavy rain"]
    assert WordFrequenciesDiscoverer().is_baseline
    assert not WordsDiscoverer().is_baseline
    assert WordsDiscoverer().is_always_blind
