import numpy as np
import pytest
from tests import build

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import ColumnRule, PredictionRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.verify import screening
from weakspot.verify.holdout import HoldoutVerifier
from weakspot.verify.screening import screened

TOP_1 = FailureCriterion()


@pytest.fixture
def samples():
    """Forty apples of which the first ten fail; columns mark nine, eight, five or none of the failures."""
    places = np.arange(40)
    columns = {
        "nine": (places < 9).tolist(),
        "nine_and_one": ((places < 9) | (places == 20)).tolist(),
        "five": (places < 5).tolist(),
        "others": (places >= 30).tolist(),
    }
    return build.samples([0] * 40, predictions=places < 10, metadata=columns, rows=places)


def _slice(column, method="attributes", class_name="apple"):
    rule = ColumnRule(column=column, values=(True,))
    use = DataUse(name="discovery", n_samples=40, digest="d")
    return FailureSlice(class_name=class_name, rule=rule, method=method, found_on=use)


def _screened(slices, samples, **limits):
    return screened(slices, samples, TOP_1, **{"largest_p": 0.05, "most": 10, **limits})


def test_screened__what_does_not_stand_out_is_dropped(samples):
    slices = [_slice("others"), _slice("five"), _slice("nine")]
    screen = _screened(slices, samples)
    assert screen.kept == (slices[1], slices[2])
    assert (screen.n_dropped, screen.n_repeated) == (1, 0)


def test_screened__the_best_are_kept_in_the_order_given(samples):
    slices = [_slice("five"), _slice("nine")]
    assert _screened(slices, samples, most=1).kept == (slices[1],)
    assert _screened(slices, samples, most=2).kept == tuple(slices)


def test_screened__near_repetitions_of_one_method_are_dropped(samples):
    # Nine of ten members in common: only the better one stays.
    slices = [_slice("nine_and_one"), _slice("nine"), _slice("nine")]
    screen = _screened(slices, samples)
    assert screen.kept == (slices[1],)
    assert screen.n_repeated == 2
    assert _screened(slices[:2], samples, same_at=0.95).n_repeated == 0


def test_screened__repetitions_by_other_methods_are_kept(samples):
    slices = [_slice("nine"), _slice("nine", method="keywords")]
    assert _screened(slices, samples).kept == tuple(slices)


def test_screened__methods_take_turns(samples):
    # By p-value alone both places would go to the first method.
    slices = [
        _slice("nine", method="fitted"),
        _slice("nine_and_one", method="fitted"),
        _slice("five", method="honest"),
    ]
    assert _screened(slices, samples, most=2, same_at=1.0).kept == (slices[0], slices[2])


def test_screened__what_can_never_be_tested_is_dropped(samples):
    by_loss = _slice("nine").model_copy(
        update={"rule": PredictionRule(measure="loss", threshold=0.1)}
    )
    assert _screened([by_loss, _slice("nine", class_name="pear")], samples).kept == ()
    assert _screened([_slice("nine")], samples.only(samples.rows[:0])).kept == ()
    assert _screened([], samples).n_dropped == 0


def test_screened__what_stands_out_by_far_is_not_cut(monkeypatch):
    places = np.arange(400)
    many = build.samples(
        [0] * 400,
        predictions=places < 60,
        metadata={f"from{start}": (places >= start) & (places < start + 20) for start in (0, 20)}
        | {"weak": (places % 60 == 0).tolist()},
        rows=places,
    )
    slices = [_slice("weak"), _slice("from0"), _slice("from20")]
    # Half of the places, rounded down, is left to the weak one.
    assert len(_screened(slices, many, most=1, largest_p=1.0).kept) == 1
    assert slices[0] in _screened(slices, many, most=2, largest_p=1.0).kept
    monkeypatch.setattr(screening, "MAX_OTHERS", 0)
    assert _screened(slices, many, most=3, largest_p=1.0).kept == (slices[1], slices[2])


@pytest.fixture(scope="module")
def apples():
    """Two halves of 240 apples in which 30 green ones fail at 30 %, the others at 10 %, and ten words that each take a third of the
    green ones and as many others; on the discovery half these words fit the failures among the others, too.
    """
    places = np.arange(480)
    half, place = places >= 240, places % 240
    green = place < 30
    failed = np.where(green, place % 10 < 3, place % 10 == 0)
    columns = {"green": green, "wide": place < 60, "late": (place >= 200) & (place % 20 < 5)}
    for word in range(10):
        of_green = green & ((place + word) % 3 == 0)
        fitted = failed & ~green & ((place // 10 + word) % 4 == 0) & ~half
        columns[f"word{word}"] = of_green | fitted | (~green & ((place + 7 * word) % 24 == 1))
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 480,
        predictions=failed.astype(np.int64),
        metadata={name: column.tolist() for name, column in columns.items()},
    )
    return tuple(SampleSet(dataset=dataset, rows=places[half == side]) for side in (False, True))


def _confirmed(slices, apples, **limits):
    discovery, confirmation = apples
    kept = _screened(slices, discovery, **{"most": 100, "largest_p": 0.5, **limits}).kept
    evidence = HoldoutVerifier().verify(
        kept, discovery=discovery, confirmation=confirmation, criterion=TOP_1
    )
    return {
        found.rule.column: (entry.verdict.value, round(entry.q_value, 4), entry.n_tested)
        for found, entry in zip(kept, evidence, strict=True)
    }


OWN = [_slice("green", "directions"), _slice("wide", "mixture"), _slice("late", "spotlight")]
WORDS = [_slice(f"word{word}", "keywords") for word in range(10)]


def test_screened__words_for_what_others_hold__are_no_tests(apples):
    alone = _confirmed(OWN[:1], apples)
    assert alone["green"][::2] == ("confirmed", 1)
    # Ten words make the others pay although all of them speak of the same apples.
    assert _confirmed([*OWN, *WORDS], apples)["green"][::2] == ("not confirmed", 13)
    explained = _confirmed([*OWN, *WORDS], apples, words={"keywords"})
    assert explained["green"][0] == "confirmed"
    assert set(explained) == {"green", "wide", "late", "word1"}
    assert _screened([*OWN, *WORDS], apples[0], most=100, largest_p=0.5, words={"keywords"}) == (
        screening.Screened(kept=(*OWN, WORDS[1]), n_dropped=9, n_repeated=0, n_explaining=9)
    )


def test_screened__words_that_nothing_else_covers__are_tests(samples):
    five, others = _slice("five"), _slice("others")
    word, same = _slice("nine", "keywords"), _slice("five", "keywords")
    assert _screened([five, same], samples, words={"keywords"}).kept == (five,)
    # Four of its nine failures are in nothing else, and nothing else fails there.
    assert _screened([five, word], samples, words={"keywords"}).kept == (five, word)
    assert _screened([others, word, same], samples, words={"keywords"}, largest_p=1.0).kept == (
        others,
        word,
    )


def test_screened__a_severe_word_inside_a_broad_slice__is_a_test():
    places = np.arange(400)
    severe = places < 30
    many = build.samples(
        [0] * 400,
        predictions=np.where(severe, places % 10 < 8, (places < 150) & (places % 5 < 2)).astype(
            np.int64
        ),
        metadata={
            "broad": (places < 150).tolist(),
            "severe": severe.tolist(),
            "part": ((places >= 60) & (places < 90)).tolist(),
        },
        rows=places,
    )
    slices = [_slice("broad"), _slice("severe", "keywords"), _slice("part", "keywords")]
    assert _screened(slices, many, words={"keywords"}).kept == tuple(slices[:2])
    assert _screened(slices, many).kept == tuple(slices)
