"""Stored records of a refinement."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field, JsonValue

from weakspot.core.evidence import Share
from weakspot.core.record import Record
from weakspot.core.slices import DataUse

RECORD_VERSION = 1


class NamedFailures(Record):
    """A value that failures of a class show.

    Args:
        class_name: the class.
        kind: kind of attribute.
        value: the value, for example `in the snow`.
        phrase: the caption that says so.
        n_failures: seed failures that show it, over all models that it was counted for.
        n_seed: seed failures of the class that were looked at.
        n_right: samples of the class on the same half that did not fail.
        n_right_shown: those among them that show it.
    """

    class_name: str
    kind: str
    value: str
    phrase: str
    n_failures: int
    n_seed: int
    n_right: int = 0
    n_right_shown: int = 0

    @property
    def excess(self) -> float:
        """Return how many more failures show it than if it were as common among them as among right samples."""
        usual = self.n_right_shown / self.n_right if self.n_right else 0.0
        return self.n_failures - self.n_seed * usual


class GeneratedPrompt(Record):
    """A prompt that images were generated from.

    Args:
        class_name: what the images show.
        prompt: the words.
        n_asked: images asked for.
        n_kept: images that the quality check let pass.
        weight: how much all of them count beside the other prompts of the arm.
    """

    class_name: str
    prompt: str
    n_asked: int
    n_kept: int
    weight: float


class RefinedArm(Record):
    """One way of retraining, in the figures of the Refine paper.

    Args:
        arm: what was done.
        note: the same in a sentence.
        prompts: what was generated for it.
        n_images: generated images (or mixed samples) trained on.
        debug_weight: how much they counted together beside all training samples together; 0 where nothing was added.
        share: how far the layer went from the old one to the retrained one; None: all the way, to one trained from nothing.
        clean: of the test samples that were right before, those still right.
        failure: of the test samples that were wrong before, those right now.
        seed: of the failures that names came from, those right now.
        held_out: of the failures that nothing was chosen by, those right now.
        test_before: test samples right before.
        test_after: test samples right now.
        p_against_random: McNemar's exact test on the held-out failures against the arm `random`; None without it.
    """

    earlier_names: ClassVar[Mapping[str, str]] = {"n_pictures": "n_images"}

    arm: str
    note: str
    prompts: tuple[GeneratedPrompt, ...] = ()
    n_images: int = 0
    debug_weight: float = 0.0
    share: float | None = None
    clean: Share
    failure: Share
    seed: Share
    held_out: Share
    test_before: Share
    test_after: Share
    p_against_random: float | None = None


class RefineInputs(Record):
    """What a refinement was made from, to be repeated or compared.

    Args:
        started: when.
        command: what was typed.
        seed: seed of the project.
        versions: libraries.
        inputs: ids of samples, classifier, encoder and language model, by project.
        generator_id: who drew.
        request: what was asked for.
        criterion: what counts as a failure.
    """

    started: str
    command: str
    seed: int
    versions: dict[str, str]
    inputs: dict[str, dict[str, str]]
    generator_id: str
    request: dict[str, JsonValue]
    criterion: str


class Refinement(Record):
    """One classifier, refined beside its baselines.

    Args:
        name: the project.
        names: values that seed failures show, commonest first within class and kind; those generated from and those not.
        arms: the refinement first.
        measured_on: test samples, discovery half (seed) and confirmation half (held-out).
        rejected: images that each quality check rejected.
        notes: what to know.
        made_from: inputs and versions; None for what was not made from a project.
    """

    record_version: int = RECORD_VERSION
    name: str
    names: tuple[NamedFailures, ...]
    arms: tuple[RefinedArm, ...]
    measured_on: tuple[DataUse, ...]
    rejected: dict[str, int] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    made_from: RefineInputs | None = None

    def arm(self, name: str) -> RefinedArm | None:
        return next((one for one in self.arms if one.arm == name), None)
