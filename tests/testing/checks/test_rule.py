from typing import ClassVar, Literal

import numpy as np
import pytest

from weakspot.core.record import PackedArray
from weakspot.core.rules import (
    BUILT_IN_RULES,
    AllOfRule,
    AnyOfRule,
    BallRule,
    ColumnRule,
    IdRule,
    LinearRule,
    MixtureRule,
    NearestRule,
    PredictionRule,
    Rule,
)
from weakspot.testing.checks import check_rule, checks_for
from weakspot.testing.part_checks import ConformanceError
from weakspot.testing.planted import CLIP_DIMENSION, ENCODER_ID
from weakspot.words.caption_rule import CaptionRule

AXES = np.eye(CLIP_DIMENSION, dtype=np.float32)
GREEN = ColumnRule(column="colour", values=("green",))
EXAMPLES = {
    "linear": LinearRule(encoder_id=ENCODER_ID, direction=tuple(AXES[0].tolist())),
    "column": GREEN,
    "ids": IdRule(sample_ids=("7", "9")),
    "nearest": NearestRule(encoder_id=ENCODER_ID, prototypes=PackedArray.of(AXES[:2]), chosen=0),
    "ball": BallRule(encoder_id=ENCODER_ID, centre=PackedArray.of(AXES[0]), threshold=-1.9),
    "mixture": MixtureRule(
        encoder_id=ENCODER_ID,
        centre=PackedArray.of(np.zeros(CLIP_DIMENSION)),
        projection=PackedArray.of(AXES[:2]),
        means=PackedArray.of(np.array([[0.1, 0.0], [-0.1, 0.0]])),
        variances=PackedArray.of(np.ones((2, 2))),
        log_weights=(-0.7, -0.7),
        chosen=0,
        threshold=0.0,
    ),
    "prediction": PredictionRule(measure="doubt", threshold=0.3),
    "all-of": AllOfRule(rules=(GREEN, PredictionRule(measure="doubt", threshold=0.3))),
    "any-of": AnyOfRule(rules=(GREEN, IdRule(sample_ids=("7",)))),
    "caption": CaptionRule(column="colour", words="green"),
}


@pytest.mark.parametrize("kind", BUILT_IN_RULES)
def test_check_rule__every_built_in_kind_keeps_the_contract(kind):
    check_rule(lambda: EXAMPLES[kind])


class _Mute(Rule):
    complexity: ClassVar[int] = 9
    kind: Literal["mute"] = "mute"

    def scores(self, samples, rows):
        return np.arange(len(rows), dtype=np.float64)

    def members(self, samples, rows):
        return self.scores(samples, rows) < 3


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("is_a_rule_of_its_kind", "not `package/name`"),
        ("scores_and_members_fit_the_rows", "outside scores higher"),
        ("says_who_belongs", "no sentence of its own"),
    ],
)
def test_checks__say_what_is_wrong(check, words):
    with pytest.raises(ConformanceError, match=words):
        checks_for("rules")[check](_Mute)
