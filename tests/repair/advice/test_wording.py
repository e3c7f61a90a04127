import dataclasses
import tomllib

import numpy as np

from weakspot.core.evidence import Interval
from weakspot.gate.policy import Policy
from weakspot.repair.advice import files
from weakspot.repair.advice.files import CollectionNeed, PoolChoice
from weakspot.repair.advice.learning_curve import Forecast

FORECAST = Forecast(
    n_wanted=10,
    gain=0.55,
    interval=Interval(low=0.4, high=0.75),
    reachable=0.6,
    n_most=14,
    elsewhere=0.0,
    is_rising=False,
)


def _wish(world, *, n_listed=40, n_ready=0, **changes):
    choice = PoolChoice(
        rows=np.arange(n_listed),
        is_labelled=np.arange(n_listed) < n_ready,
        n_candidates=n_listed,
        n_pool=n_listed,
    )
    given = {"kind": world.kind(), "choice": choice, "n_wanted": 10, "forecast": FORECAST}
    return CollectionNeed(**{**given, **changes})


def test_label_sentence__the_sentence_of_the_issue(world):
    assert files.label_sentence(_wish(world), "to_label.csv", None) == (
        "heron: retraining cannot help: 0 such training images. Label about 10: to_label.csv (first 40 chosen), "
        "expected +40 to +75 points on these images"
    )


def test_collect_sentence__no_pool_and_a_pool_without_such_images(world):
    empty = PoolChoice(
        rows=np.zeros(0, np.int64), is_labelled=np.zeros(0, np.bool_), n_candidates=0, n_pool=0
    )
    told = files.collect_sentence(_wish(world, choice=empty), "to_collect.md", None)
    assert "0 such training images; no pool: collect about 10, see to_collect.md; expected" in told
    other = dataclasses.replace(empty, n_pool=1200)
    assert "none of 1,200 pool images fits" in files.collect_sentence(
        _wish(world, choice=other), "to_collect.md", None
    )


def test_accept_sentence__nothing_helps(world):
    nothing = dataclasses.replace(FORECAST, gain=0.01, interval=Interval(low=-0.05, high=0.06))
    told = files.accept_sentence(_wish(world, forecast=nothing), None)
    assert "10 more are not expected to help (−5 to +6 points): accept the limit" in told


def test_policy_line__a_policy_takes_it(world, sliced):
    kind = world.kind()
    line = files.policy_line(kind)
    section, rule = line.split("] ", 1)
    content = tomllib.loads(f"{section}]\nmin = 0.5\n{rule}\n")
    bar = Policy.model_validate(content).class_accuracy.per_class["heron"]
    assert bar == round(1 - kind.n_failed / kind.n_evaluated, 2)
    assert sliced.kind().subject in files.policy_line(sliced.kind())
