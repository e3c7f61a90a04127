from weakspot.core.evidence import Cause, Verdict, effect_size
from weakspot.core.failures import Side
from weakspot.core.rules import ColumnRule
from weakspot.core.slices import DataUse, FailureSlice, HeldName, SliceName
from weakspot.core.statistics import CORRECTIONS
from weakspot.report import wording


def _unnamed(**changes):
    use = DataUse(name="given", n_samples=0, digest="given")
    return FailureSlice(
        class_name="apple", rule=ColumnRule(column="green"), method="hand", found_on=use, **changes
    )


def test_class_words__side_of_a_multi_label_class():
    assert wording.class_words(_unnamed(side=Side.ABSENT)) == "images without apple"
    assert wording.class_words(_unnamed(side=Side.PRESENT)) == "“apple” images"


def test_points__small_changes_are_zero():
    assert [wording.points(value) for value in (0.004, -0.004, 0.006, -0.5)] == [
        "±0",
        "±0",
        "+1",
        "−50",
    ]


def test_effect_sentence__sizes_and_ratios(record):
    entry = record.evidence[1]
    assert wording.effect_sentence(entry) == ""
    medium = entry.model_copy(update={"effect": effect_size((15, 50, 45, 450))})
    assert wording.effect_sentence(medium) == (
        "Members fail 3.0 times as often (95 % interval of the ratio 1.8 to 5.0); a medium effect (Cohen's h 0.52)."
    )
    endless = entry.model_copy(update={"effect": effect_size((5, 10, 0, 20))})
    assert wording.effect_sentence(endless).startswith(
        "None of the others failed (95 % interval of the ratio 1.3 to "
    )


def test_witness_sentence__agrees_disagrees_or_cannot_tell():
    name = SliceName(
        phrase="a green apple",
        contrast="green",
        score=1.0,
        describer="hand",
        witness="captions",
        witness_score=0.25,
    )
    assert wording.witness_sentence(name) == "“green” fits according to captions (+0.25)."
    doubted = name.model_copy(update={"witness_score": -0.25, "is_doubtful": True})
    assert (
        wording.witness_sentence(doubted) == "“green” does not fit according to captions (-0.25)."
    )
    assert (
        wording.witness_sentence(name.model_copy(update={"witness_score": None}))
        == "“green”: captions could not tell."
    )


def test_words__for_every_verdict_cause_and_control():
    assert set(wording.VERDICT_WORDS) == set(Verdict)
    assert set(wording.CAUSE_WORDS) == set(Cause)
    assert set(wording.CORRECTION_WORDS) == set(CORRECTIONS)


def _word(contrast, **changes):
    return SliceName(
        **{"phrase": contrast, "contrast": contrast, "score": 1.0, "describer": "d", **changes}
    )


def test_nearest_sentence__says_that_words_are_not_sure_and_why():
    words = tuple(
        _word(word, is_unsure=True, doubt="it does not hold")
        for word in ("metal", "wet", "old", "new")
    )
    found = _unnamed(names=words, number=3)
    assert wording.nearest_sentence(found) == "Not sure: “metal”, “wet”, “old” (it does not hold)."
    assert wording.nearest_sentence(_unnamed(names=(_word("green"),))) == ""
    assert wording.slice_words(found) == (
        "one kind of “apple” images (group 3), for which no words are sure,"
    )
    assert wording.title_with_method(found).startswith("apple, group 3 (")


def test_held_sentence__counts_of_the_other_half():
    held = HeldName(
        auc=0.97,
        p_value=0.001,
        q_value=0.004,
        n_members=20,
        n_fitting=18,
        n_others=60,
        n_others_fitting=3,
    )
    assert wording.held_sentence(_word("green", held=held)) == (
        "“green” fits 18 of 20 members and 3 of 60 others among the samples that took no part in choosing words "
        "(AUC 0.97, q = 0.004)."
    )
    assert wording.held_sentence(_word("green", held=held, is_unsure=True)) == ""
    assert wording.held_sentence(_word("green")) == ""
