import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.failures import FailureCriterion, Side, class_problems
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.testing import checks
from weakspot.testing.checks import checks_for


@dataclass(frozen=True, kw_only=True)
class MeanDiscoverer:
    """Right in every way: the line between the means of failures and the rest."""

    @property
    def is_baseline(self) -> bool:
        return False

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        slices, notes = [], []
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            embeddings = samples.embeddings("clip", problem.rows).astype(np.float64)
            known = np.isfinite(embeddings).all(axis=1)
            failed, right = problem.failed & known, ~problem.failed & known
            if min(failed.sum(), right.sum()) < 2:
                notes.append(ClassNote(class_name=problem.title, note="Too few."))
                continue
            direction = (embeddings[failed].mean(axis=0) - embeddings[right].mean(axis=0)).round(6)
            rule = LinearRule(
                encoder_id=samples.space("clip").encoder_id,
                direction=tuple(direction.tolist()),
                threshold=0.05,
            )
            slices.append(made_slice(problem.class_name, rule, samples, side=problem.side))
        return Discovery(slices=tuple(slices), notes=tuple(notes))


def made_slice(
    class_name: str, rule, samples: SampleSet, *, side: Side | None = None
) -> FailureSlice:
    use = DataUse(name=samples.name, n_samples=len(samples), digest=samples.digest())
    return FailureSlice(class_name=class_name, side=side, rule=rule, method="mean", found_on=use)


def test_check_discoverer__a_right_one_passes():
    checks.check_discoverer(MeanDiscoverer)


class Remembering(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        found = super().discover(samples, criterion, seed=seed)
        kept = vars(self).setdefault("kept", [])
        kept.extend(found.slices)
        return replace(found, slices=tuple(kept))


class Shuffling(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        found = super().discover(samples, criterion, seed=seed)
        np.random.permutation(3)  # noqa: NPY002 - broken on purpose
        return found


class ReadingGlobalRandomness(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        found = super().discover(samples, criterion, seed=seed)
        drawn = random.getstate()[1][1]
        return replace(found, notes=(*found.notes, ClassNote(class_name="disc", note=str(drawn))))


class Scaling(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        samples.space("clip").embeddings[:] *= 2.0
        return super().discover(samples, criterion, seed=seed)


class Unseeded(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        noise = float(np.random.default_rng().random())
        found = super().discover(samples, criterion, seed=seed)
        return replace(
            found, slices=tuple(one.model_copy(update={"strength": noise}) for one in found.slices)
        )


class TrustingTheOrder(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        return super().discover(
            samples.only(samples.rows[: len(samples) // 2]), criterion, seed=seed
        )


class PeekingElsewhere(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        found = super().discover(samples, criterion, seed=seed)
        accuracy = float((samples.dataset.predictions == samples.dataset.labels).mean())
        return replace(
            found,
            slices=tuple(one.model_copy(update={"strength": accuracy}) for one in found.slices),
        )


class SilentOnCalmClasses(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        return replace(super().discover(samples, criterion, seed=seed), notes=())


class StumblingOverNothing(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        samples.embeddings("clip")[0]
        return super().discover(samples, criterion, seed=seed)


class OneSided(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        found = super().discover(samples, criterion, seed=seed)
        return replace(
            found, slices=tuple(one.model_copy(update={"side": None}) for one in found.slices)
        )


class Mislabelling(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        found = super().discover(samples, criterion, seed=seed)
        wrong = DataUse(name="?", n_samples=len(samples), digest="0" * 32)
        return replace(
            found, slices=tuple(one.model_copy(update={"found_on": wrong}) for one in found.slices)
        )


class Doubling(MeanDiscoverer):
    def discover(self, samples, criterion, *, seed, assistants=NO_ASSISTANTS):
        found = super().discover(samples, criterion, seed=seed)
        return replace(found, slices=found.slices * 2)


@pytest.mark.parametrize(
    ("broken", "check", "said"),
    [
        (Remembering, "second_call_forgets_the_first", "earlier call"),
        (Shuffling, "no_global_randomness", "was moved"),
        (ReadingGlobalRandomness, "no_global_randomness", "depends on the global random state"),
        (Scaling, "input_stays_as_it_is", "was changed"),
        (Unseeded, "same_seed_same_result", "same seed"),
        (TrustingTheOrder, "order_of_rows_does_not_matter", "order of rows|reordered"),
        (PeekingElsewhere, "predictions_elsewhere_do_not_matter", "were used"),
        (SilentOnCalmClasses, "calm_classes_get_a_note", "never fails and gets no note"),
        (OneSided, "multi_label_is_understood", "have or lack"),
        (Mislabelling, "slices_say_where_they_come_from", "digest"),
        (Doubling, "slices_say_where_they_come_from", "same id"),
    ],
)
def test_check_discoverer__broken_in_one_way(rejected, broken, check, said):
    message = rejected("discoverers", check, broken)
    assert any(words in message for words in said.split("|"))


def test_check_discoverer__crashes_are_not_hidden():
    with pytest.raises(IndexError):
        checks_for("discoverers")["empty_input_is_survived"](StumblingOverNothing)
