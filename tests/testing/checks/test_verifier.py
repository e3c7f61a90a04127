from typing import ClassVar

import numpy as np

from weakspot.core.evidence import Evidence
from weakspot.verify.holdout import HoldoutVerifier


class Careless(HoldoutVerifier):
    """Measures on the samples that discovery saw."""

    def verify(self, slices, *, discovery, confirmation, criterion):
        fresh = confirmation.only(np.setdiff1d(confirmation.rows, discovery.rows))
        return super().verify(
            slices,
            discovery=discovery.only(discovery.rows[:0]),
            confirmation=fresh,
            criterion=criterion,
        )


class Changing(HoldoutVerifier):
    update: ClassVar[dict[str, object]] = {}

    def verify(self, slices, **given) -> tuple[Evidence, ...]:
        return tuple(
            entry.model_copy(update=self.update) for entry in super().verify(slices, **given)
        )


class Miscounting(Changing):
    update: ClassVar = {"n_inside": 1}


class WrongGap(Changing):
    update: ClassVar = {"gap": 0.9}


class Doubting(Changing):
    update: ClassVar = {"verdict": "not confirmed"}


class Believing(Changing):
    update: ClassVar = {"verdict": "confirmed"}


def test_check_verifier__broken_in_one_way(rejected):
    assert "went through" in rejected("verifiers", "seen_samples_are_refused", Careless)
    assert "should be" in rejected("verifiers", "counts_are_right", Miscounting)
    assert "gap is not" in rejected("verifiers", "figures_agree", WrongGap)
    assert "was not confirmed" in rejected("verifiers", "the_planted_slice_is_confirmed", Doubting)
    assert "without members was confirmed" in rejected(
        "verifiers", "an_empty_slice_is_not_confirmed", Believing
    )
    assert "what the classifier said" in rejected(
        "verifiers", "a_slice_by_predictions_is_not_confirmed", Believing
    )
