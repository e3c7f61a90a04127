from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.errors import ModelError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import AllOfRule, ColumnRule, IdRule
from weakspot.core.samples import EmbeddingSpace, mark_told_by_words
from weakspot.words.caption_judging import (
    Claim,
    ClassView,
    SliceView,
    SpokenWords,
    Statement,
    Witnesses,
    correlation,
)
from weakspot.words.caption_rule import CaptionRule

GREEN = Claim(
    phrase="a photo of a green apple", parts=("green",), plain_phrase="a photo of an apple"
)
IS_GREEN = np.arange(40) % 4 == 0


def _witnesses(toy, *, metadata=None, rule=None, assistants=None, spaces=None, **changes):
    samples = toy.samples(metadata={"number": list(range(40))} if metadata is None else metadata)
    samples.spaces.update(spaces or {})
    ids = tuple(samples.dataset.sample_ids(np.flatnonzero(IS_GREEN)))
    rule = IdRule(sample_ids=ids) if rule is None else rule
    (problem,) = class_problems(samples.dataset, samples.rows, FailureCriterion())
    view = ClassView.of(samples, problem, "clip", max_samples=100)
    seen = SliceView.of(rule, samples, view, "clip")
    settings = {
        "n_captioned": 40,
        "n_asked": 40,
        "assistants": assistants or Assistants(),
        **changes,
    }
    return Witnesses(rule=rule, samples=samples, seen=seen, **settings)


def _colours(green="green", other="red"):
    return [green if is_green else other for is_green in IS_GREEN]


def test_ask__nobody_is_there(toy):
    assert _witnesses(toy).ask(GREEN) == Statement(witness="", score=None)


@pytest.mark.parametrize(
    "metadata",
    [
        {"colour": _colours()},
        {"colour": _colours("Greenish")},
        {"skin_colour": _colours("green skin", "red skin")},
        {"is_green": IS_GREEN.tolist()},
        {"green": _colours("yes", "no")},
        {"size": ["small"] * 40, "colour": _colours()},
    ],
)
def test_ask__columns_that_mean_the_words(toy, metadata):
    assert _witnesses(toy, metadata=metadata).ask(GREEN) == Statement(witness="columns", score=1.0)


@pytest.mark.parametrize(
    "metadata",
    [
        {"background": ["plain"] * 40},
        {"colour": [f"shade {number}" for number in range(40)]},
        {"colour": [None] * 40},
        {"is_red": (~IS_GREEN).tolist()},
        {"caption": ["a very green and rather large fruit lies here"] * 40},
        {"number": list(range(40))},
    ],
)
def test_ask__columns_about_something_else(toy, metadata):
    assert _witnesses(toy, metadata=metadata).ask(GREEN) == Statement()


def test_ask__a_colour_is_no_background(toy):
    claim = Claim(
        phrase="a photo of an apple on a green background",
        parts=("on a green background",),
        plain_phrase="a photo of an apple",
    )
    assert _witnesses(toy, metadata={"colour": _colours()}).ask(claim) == Statement()
    assert _witnesses(toy, metadata={"background": _colours()}).ask(claim) == Statement(
        witness="columns", score=1.0
    )


def test_ask__every_part_must_be_met(toy):
    sizes = ["large" if number < 20 else "small" for number in range(40)]
    both = Claim(
        phrase="a photo of a large green apple",
        parts=("green", "large"),
        plain_phrase="a photo of an apple",
    )
    found = _witnesses(toy, metadata={"colour": _colours(), "size": sizes}).ask(both)
    # Five of ten green apples are large: phi of (5 of 10) against (0 of 30) is sqrt(3 / 7).
    assert found.witness == "columns"
    assert found.score == pytest.approx(np.sqrt(3 / 7), abs=1e-6)
    assert _witnesses(toy, metadata={"colour": _colours()}).ask(both) == Statement()


def test_ask__a_column_that_the_rule_reads_is_no_witness(toy):
    metadata = {"colour": _colours()}
    rule = ColumnRule(column="colour", values=("green",))
    assert _witnesses(toy, metadata=metadata, rule=rule).ask(GREEN) == Statement()
    assert (
        _witnesses(toy, metadata=metadata, rule=AllOfRule(rules=(rule,))).ask(GREEN) == Statement()
    )


def test_ask__a_witness_that_disagrees(toy):
    found = _witnesses(toy, metadata={"colour": _colours("red", "green")}).ask(GREEN)
    assert found == Statement(witness="columns", score=-1.0)
    assert found.disagrees
    easy = Claim(
        phrase=GREEN.phrase, parts=GREEN.parts, plain_phrase=GREEN.plain_phrase, is_easy=True
    )
    assert not _witnesses(toy, metadata={"colour": _colours("red", "green")}).ask(easy).disagrees


def test_ask__captions_that_say_the_words(toy):
    def captions(rows):
        return [
            f"A {'greenish' if row % 4 == 0 else 'crimson'} fruit." if row != 1 else ""
            for row in rows
        ]

    assert _witnesses(toy, assistants=Assistants(captions=captions)).ask(GREEN) == Statement(
        witness="captions", score=1.0
    )
    crimson = Claim(
        phrase="a photo of a red apple", parts=("red",), plain_phrase="a photo of an apple"
    )
    assert _witnesses(toy, assistants=Assistants(captions=captions)).ask(crimson).score == -1.0


def test_ask__captions_are_read_of_few_samples_on_both_sides(toy):
    asked = []

    def captions(rows):
        asked.append(rows.tolist())
        return ["green apple" if row % 4 == 0 else "apple" for row in rows]

    witnesses = _witnesses(toy, assistants=Assistants(captions=captions), n_captioned=10)
    assert witnesses.ask(GREEN) == Statement(witness="captions", score=1.0)
    witnesses.ask(GREEN)
    assert len(asked) == 1
    assert len(asked[0]) == 10
    assert sum(row % 4 == 0 for row in asked[0]) == 5


def test_ask__answers_come_after_captions_that_cannot_tell(toy):
    questions = []

    def answers(rows, question):
        questions.append(question)
        return ["Yes." if row % 4 == 0 else "no, red" for row in rows]

    both = Assistants(captions=lambda rows: ["a fruit"] * len(rows), answers=answers)
    assert _witnesses(toy, assistants=both).ask(GREEN) == Statement(witness="answers", score=1.0)
    assert questions == ["Is this a photo of a green apple?"]
    assert _witnesses(toy, assistants=both).ask(GREEN, may_question=False) == Statement(
        witness="captions", score=None
    )


def test_ask__answers_that_are_neither_yes_nor_no(toy):
    vague = Assistants(answers=lambda rows, _question: ["perhaps"] * len(rows))
    assert _witnesses(toy, assistants=vague).ask(GREEN) == Statement(witness="answers", score=None)
    short = Assistants(answers=lambda _rows, _question: ["yes"])
    assert _witnesses(toy, assistants=short).ask(GREEN) == Statement(witness="answers", score=None)


def test_ask__second_encoder_by_its_own_contrast(toy):
    embeddings = np.stack([np.ones(40), IS_GREEN.astype(np.float64)], axis=1).astype(np.float32)
    spaces = {"other": EmbeddingSpace(encoder_id="other", embeddings=embeddings, has_text=True)}

    def embed(texts):
        return np.array([[1.0, float("green" in text)] for text in texts])

    second = Assistants(second=("other", embed))
    found = _witnesses(toy, assistants=second, spaces=spaces).ask(GREEN)
    assert found == Statement(witness="second encoder", score=1.0)
    assert _witnesses(toy, assistants=second).ask(GREEN) == Statement(
        witness="second encoder", score=None
    )


def test_ask__models_that_fail_are_passed_over(toy):
    def fail(*_given):
        raise ModelError("out of order")

    spaces = {
        "other": EmbeddingSpace(encoder_id="other", embeddings=np.ones((40, 2), dtype=np.float32))
    }
    broken = Assistants(captions=fail, answers=fail, second=("other", fail))
    assert _witnesses(toy, assistants=broken, spaces=spaces).ask(GREEN) == Statement(
        witness="answers", score=None
    )


def test_correlation__too_little_to_tell():
    assert correlation(np.array([1.0, 0.0] * 2), np.array([1.0, 0.0] * 2)) is None
    assert correlation(np.zeros(20), np.arange(20.0)) is None
    assert correlation(np.arange(20.0), np.ones(20)) is None
    assert correlation(np.array([1.0] * 4 + [0.0] * 16), np.arange(20.0)) is None
    assert correlation(np.array([1.0] * 5 + [0.0] * 15), np.array([1.0] * 5 + [0.0] * 15)) == 1.0


def test_ask__a_column_told_by_words_is_no_witness(toy):
    witnesses = _witnesses(toy, metadata={"colour": _colours()})
    assert witnesses.ask(GREEN).witness == "columns"
    dataset = witnesses.samples.dataset
    marked = replace(dataset, table=mark_told_by_words(dataset.table, ["colour"]))
    assert (
        replace(witnesses, samples=replace(witnesses.samples, dataset=marked)).ask(GREEN)
        == Statement()
    )


def test_relevant_to__thing_and_background_are_kept_apart():
    spoken = SpokenWords.of("A green disc on the left of a striped background, in the dark.")
    assert spoken.behind == {"striped"}
    assert "striped" not in spoken.relevant_to("red")
    assert "green" in spoken.relevant_to("green")
    assert spoken.relevant_to("on a green background") == {"striped"}
    assert {"striped", "left"} <= spoken.relevant_to("on the left")
    # Without the word, grass will do for a grassy background.
    assert "grass" in SpokenWords.of("a dog on the grass").relevant_to("on a grassy background")


def test_ask__captions_decide_who_is_a_member__they_are_no_further_witness(toy):
    texts = [f"a {colour} fruit number {place}" for place, colour in enumerate(_colours())]
    assistants = Assistants(captions=lambda rows: [texts[row] for row in rows])
    given = {"metadata": {"caption": texts}, "assistants": assistants}
    assert _witnesses(toy, **given).ask(GREEN).witness == "captions"
    rule = CaptionRule(words="green")
    assert _witnesses(toy, rule=rule, **given).ask(GREEN) == Statement(witness="", score=None)
    both = AllOfRule(rules=(rule, ColumnRule(column="caption", values=tuple(texts))))
    assert _witnesses(toy, rule=both, **given).ask(GREEN) == Statement(witness="", score=None)


def test_said_of__members_whose_captions_say_every_part(toy):
    green = _colours()

    def captions(rows):
        return [f"a {green[row]} fruit" if row else "" for row in rows.tolist()]

    witnesses = _witnesses(toy, assistants=Assistants(captions=captions))
    n_true, n_told = witnesses.said_of(("green",))
    assert n_true == n_told > 0
    assert witnesses.said_of(("red",)) == (0, n_told)
    assert _witnesses(toy).said_of(("green",)) == (None, 0)


def test_said_of__a_rule_by_columns_is_its_words(toy):
    rule = ColumnRule(column="colour", values=("green",))
    witnesses = _witnesses(
        toy,
        metadata={"colour": _colours()},
        rule=rule,
        assistants=Assistants(captions=lambda rows: ["a red fruit"] * len(rows)),
    )
    assert witnesses.said_of(("green",)) == (None, 0)
