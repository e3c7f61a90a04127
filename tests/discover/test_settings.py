"""Settings of methods, verifiers and describers that mean nothing."""

from typing import Any

import pytest

from weakspot.core.errors import ConfigError
from weakspot.discover.attributes import AttributesDiscoverer
from weakspot.discover.clusters import ClustersDiscoverer
from weakspot.discover.directions import DirectionsDiscoverer
from weakspot.discover.hypothesis import HypothesisDiscoverer
from weakspot.discover.keywords import KeywordsDiscoverer
from weakspot.discover.mixture import MixtureDiscoverer
from weakspot.discover.prediction_order import ConfidenceDiscoverer, LossDiscoverer
from weakspot.discover.spotlight import SpotlightDiscoverer
from weakspot.discover.uncommon_attributes import UncommonAttributesDiscoverer
from weakspot.verify.cause import CauseFinder
from weakspot.verify.holdout import HoldoutVerifier
from weakspot.verify.labels import LabelChecker
from weakspot.words.caption_grammar import CaptionGrammarDescriber
from weakspot.words.planning import Cut
from weakspot.words.zero_shot import Caution

REFUSED: list[tuple[Any, str, list[Any]]] = [
    (AttributesDiscoverer, "max_order", [0, 4]),
    (AttributesDiscoverer, "max_values", [1]),
    (AttributesDiscoverer, "min_support", [0]),
    (AttributesDiscoverer, "min_gap", [1.0]),
    (AttributesDiscoverer, "cover", [0.0]),
    (AttributesDiscoverer, "max_p", [1.5]),
    (AttributesDiscoverer, "n_permutations", [-1]),
    (ClustersDiscoverer, "min_members", [1]),
    (DirectionsDiscoverer, "costs", [(), (0.0,)]),
    (DirectionsDiscoverer, "cost_slack", [-1.0]),
    (DirectionsDiscoverer, "n_folds", [1]),
    (DirectionsDiscoverer, "cut", ["middle"]),
    (HypothesisDiscoverer, "phrases", [{"apple": [3]}, {"apple": 3}]),
    (KeywordsDiscoverer, "max_overlap", [1.5]),
    (KeywordsDiscoverer, "max_words", [0]),
    (MixtureDiscoverer, "n_components", [1, "aic"]),
    (MixtureDiscoverer, "prediction_weight", [float("nan"), -1.0]),
    (MixtureDiscoverer, "regularisation", [0.0]),
    (MixtureDiscoverer, "ranking", ["best"]),
    (MixtureDiscoverer, "start", ["random"]),
    (MixtureDiscoverer, "per_class", ["yes"]),
    (SpotlightDiscoverer, "spot_share", [0.0, 1.0]),
    (SpotlightDiscoverer, "min_spot", [0.5]),
    (SpotlightDiscoverer, "loss", ["square"]),
    (UncommonAttributesDiscoverer, "axes", [(), ("smell",)]),
    (UncommonAttributesDiscoverer, "held_out_share", [1.0]),
    (LossDiscoverer, "min_failures", [0]),
    (ConfidenceDiscoverer, "min_failures", [0]),
    (HoldoutVerifier, "alpha", [0.0]),
    (HoldoutVerifier, "min_support", [0]),
    (HoldoutVerifier, "correction", ["bonferroni"]),
    (HoldoutVerifier, "weights", ["some"]),
    (HoldoutVerifier, "same_at", [0.0]),
    (CauseFinder, "cue_share", [2.0]),
    (LabelChecker, "n_neighbours", [0]),
    (LabelChecker, "flag_share", [2.0]),
    (CaptionGrammarDescriber, "ranking", ["loud"]),
    (CaptionGrammarDescriber, "combinations", ["some"]),
    (CaptionGrammarDescriber, "chunk_size", [0]),
    (Cut, "least_count", [0]),
    (Cut, "least_share", [1.0]),
    (Caution, "most_disagreement", [1.0]),
    (Caution, "most_chance", [0.0]),
]


@pytest.mark.parametrize(("part", "name", "wrong"), REFUSED)
def test_settings__what_means_nothing_is_refused_by_name(part, name, wrong):
    for value in wrong:
        with pytest.raises(ConfigError, match=name):
            part(**{name: value})


@pytest.mark.parametrize("templates", [(), ("an image",)])
def test_hypothesis__a_template_without_a_blank_is_refused(templates):
    with pytest.raises(ConfigError, match=r"must hold \{phrase\}"):
        HypothesisDiscoverer(phrases={}, templates=templates)
