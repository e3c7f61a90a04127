"""Words and examples for both ends of a shift."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Verdict
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import SliceName
from weakspot.run.naming import ShiftNamer, _trusted
from weakspot.testing.examples import ASSISTANTS
from weakspot.testing.planted import ENCODER_ID, plant, rare
from weakspot.verify.classes import shift_sentence
from weakspot.words.caption_grammar import CaptionGrammarDescriber


@pytest.fixture(scope="module")
def shifted():
    """Discs that are green in evaluation and never in training; colours are no column, so nothing but images tells."""
    world = plant(rare(0.4), 1500, seed=3)
    colours = np.array(world.dataset.metadata("colour").to_pylist())
    splits = np.where(
        colours == "green", SPLIT_ORDER.index(Split.VALIDATION), SPLIT_ORDER.index(Split.TRAIN)
    )
    table = world.dataset.table
    names = [name for name in table.column_names if not name.startswith("meta.")]
    table = table.select(names)
    table = table.set_column(names.index("split"), "split", pa.array(splits, pa.int8()))
    dataset = replace(world.dataset, table=table)
    space = EmbeddingSpace(encoder_id=ENCODER_ID, embeddings=world.embeddings(), has_text=True)
    samples = SampleSet(dataset=dataset, rows=np.arange(len(dataset)), spaces={"clip": space})
    return samples, colours


def _finding(**changes):
    given = {
        "kind": ClassFindingKind.SHIFT,
        "class_name": "disc",
        "verdict": Verdict.CONFIRMED,
        "sentence": shift_sentence("disc", 0.97),
        "rate": 0.97,
    }
    return ClassFinding(**{**given, **changes})


def _namer(samples, assistants=ASSISTANTS):
    evaluated = samples.dataset.rows_of(Split.VALIDATION)
    return ShiftNamer(
        samples=samples,
        space="clip",
        shown=evaluated[::2],
        kept=evaluated[1::2],
        describer=CaptionGrammarDescriber(),
        assistants=assistants,
    )


def test_named__words_of_the_evaluated_kind(shifted):
    samples, _ = shifted
    (named,) = _namer(samples).named([_finding()])
    assert named.words_here == ("green",)
    assert "“green” here" in named.sentence
    assert "green" not in named.words_there


def test_named__examples_are_shown_ones_and_of_the_class(shifted):
    samples, colours = shifted
    (named,) = _namer(samples).named([_finding()])
    ids = samples.dataset.sample_ids()
    here, there = (
        [ids.index(name) for name in names] for names in (named.examples_here, named.examples_there)
    )
    assert set(here) <= set(samples.dataset.rows_of(Split.VALIDATION)[::2].tolist())
    assert set(colours[here]) == {"green"}
    assert "green" not in set(colours[there])
    assert {samples.dataset.class_names[samples.dataset.labels[row]] for row in here + there} == {
        "disc"
    }


def test_named__no_text_side__examples_without_words(shifted):
    samples, _ = shifted
    (named,) = _namer(samples, NO_ASSISTANTS).named([_finding()])
    assert (named.words_here, named.words_there) == ((), ())
    assert named.sentence == _finding().sentence
    assert named.examples_here


def test_named__words_that_do_not_fit_the_other_half_are_left_out(shifted):
    samples, _ = shifted
    evaluated = samples.dataset.rows_of(Split.VALIDATION)
    mixed = EmbeddingSpace(
        encoder_id=ENCODER_ID,
        embeddings=np.array(samples.spaces["clip"].embeddings),
        has_text=True,
    )
    training = samples.dataset.rows_of(Split.TRAIN)
    discs = [
        rows[samples.dataset.labels[rows] == samples.dataset.class_code("disc")]
        for rows in (evaluated[1::2], training)
    ]
    mixed.embeddings[discs[0]] = mixed.embeddings[discs[1][: len(discs[0])]]
    (named,) = _namer(replace(samples, spaces={"clip": mixed})).named([_finding()])
    assert named.words_here == ()


def _name(contrast, **changes):
    given = {"phrase": f"a photo of a {contrast} disc", "score": 3.0, "describer": "test"}
    return SliceName(contrast=contrast, **{**given, **changes})


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        (_name("green"), True),
        (_name("green", is_doubtful=True), False),
        (_name("green", n_true=1, n_told=10), False),
        (_name("green", score=2.0), False),
        (_name("green", score=2.0, witness="captions", witness_score=0.5), True),
        (_name("green, on a beach"), False),
    ],
)
def test_trusted__words_nobody_doubts_that_stand_out_or_have_a_witness(name, is_told):
    assert _trusted([name], "disc") == (("green",) if is_told else ())


@pytest.mark.parametrize(
    "name", [_name("on a green background"), _name("plate", phrase="a photo of a plate")]
)
def test_trusted__backgrounds_and_kinds__need_a_witness(name):
    assert _trusted([name], "disc") == ()
    seen = name.model_copy(update={"witness": "captions", "witness_score": 0.5})
    assert _trusted([seen], "disc") == (name.contrast,)
