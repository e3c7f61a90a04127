"""What is asked of a refinement, and the stored records of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Protocol

from PIL import Image
from pydantic import Field, JsonValue

from weakspot.core.arrays import FloatArray
from weakspot.core.bounds import Bounds, Count, Positive, check_bounds
from weakspot.core.errors import ConfigError, RefusedPromptError
from weakspot.core.evidence import Share
from weakspot.core.record import Record
from weakspot.core.slices import DataUse
from weakspot.words.captions import uncommon_axes

REFINE, RANDOM, PREDEFINED, DIRECTIONS, CUTMIX, PLAIN = (
    "refine",
    "random",
    "predefined",
    "directions",
    "cutmix",
    "plain",
)
EASY, CUTMIX_PIXELS = "easy", "cutmix-pixels"
BESIDE = (RANDOM, PREDEFINED, DIRECTIONS, CUTMIX, PLAIN)
ARMS = (*BESIDE, EASY, CUTMIX_PIXELS)
"""What stands beside the refinement: images of the bare class, of values that no failure chose, of captions of directions slices,
mixed training features, and retraining alone. On request, too: images of captions of the other, easy ends of directions, and mixed
training images, which the classifier has to see."""
KINDS = ("background", "colour")


@dataclass(frozen=True, kw_only=True)
class RefineRequest:
    """What is asked of a refinement.

    Args:
        kinds: kinds of attribute that failures may show; `uncommon_axes` names them.
        n_names: how many values of a kind are generated for a class, those that most seed failures show.
        n_each: images for every seed failure that shows a value.
        least_each: at least so many images of one prompt, if `most_each` allows: few images move the layer anywhere.
        most_each: at most so many images of one prompt; a value counts by its failures, however many images there are of it.
        debug_weight: how much all generated images together count beside all training samples together, in a layer that is trained
            from nothing; None: 0.5, and the layer goes only so far from the old one as clean samples allow, see `chosen_head`.
        most_lost: share of formerly right samples that marks how far it may go at most.
        n_values: how many values a language model is asked for, per class and kind.
        arms: what stands beside the refinement.
        predefined: values by kind for the arm of that name; the built-in ones by default.
    """

    kinds: tuple[str, ...] = KINDS
    n_names: Count = 3
    n_each: Count = 5
    least_each: Count = 60
    most_each: Count = 100
    debug_weight: Positive | None = None
    most_lost: Annotated[float, Bounds(ge=0, lt=1)] = 0.02
    n_values: Count = 10
    arms: tuple[str, ...] = BESIDE
    predefined: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        check_bounds(self, where="refine", problems=self._problems())

    def _problems(self) -> list[str]:
        problems: list[str] = []
        named = [("kinds", self.kinds, uncommon_axes()), ("arms", self.arms, ARMS)]
        named.append(("predefined", tuple(kind for kind, _ in self.predefined), uncommon_axes()))
        for name, given, known in named:
            unknown = sorted(set(given) - set(known))
            problems += (
                [f"{name} knows nothing of {', '.join(unknown)}; choose from {', '.join(known)}"]
                if unknown
                else []
            )
        problems += [
            f"predefined has values of {kind}, which is not among the kinds that are asked for"
            for kind, _ in self.predefined
            if kind in uncommon_axes() and kind not in self.kinds
        ]
        return (
            problems
            if self.kinds
            else [*problems, "kinds must name at least one kind of attribute"]
        )

    def n_images(self, n_failures: int) -> int:
        return min(self.most_each, max(self.least_each, self.n_each * n_failures))


def predefined_values(given: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return values by kind from what is typed.

    Raises:
        ConfigError: if one is not like `background=in a cave,on a leaf`.

    >>> predefined_values(["colour=red, blue", "colour=green"])
    (('colour', ('red', 'blue', 'green')),)
    """
    found: dict[str, list[str]] = {}
    for text in given:
        kind, _, listed = text.partition("=")
        values = [value for one in listed.split(",") if (value := one.strip())]
        if not kind.strip() or not values:
            raise ConfigError(
                "A list of values needs its kind.",
                where="--predefined",
                given=text,
                fix='Write it like --predefined "background=in a cave,on a leaf".',
            )
        found.setdefault(kind.strip(), []).extend(values)
    return tuple((kind, tuple(dict.fromkeys(values))) for kind, values in found.items())


class Prompt(NamedTuple):
    """Words, and the class that images made from them show."""

    class_name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Images of one prompt that an arm trains on.

    Args:
        prompt: what is generated.
        n_images: how many.
        weight: how much they count together, beside those of other prompts of the arm.
    """

    prompt: Prompt
    n_images: int
    weight: float


class Images(Protocol):
    """A generator's images, each generated once for all arms and models. The first n of a prompt are always the same.

    Some can show classifiers other images too, `features_of(model, images)`, or say without drawing what cannot be drawn,
    `cannot_draw(prompts)`.
    """

    @property
    def generator_id(self) -> str:
        """Who generates."""

    def refusals(self, prompts: Sequence[Prompt]) -> Mapping[Prompt, RefusedPromptError]:
        """Return the prompts that the generator cannot generate, and what it says of them."""

    def generate(self, wanted: Mapping[Prompt, int]) -> None:
        """Generate so many images of every prompt."""

    def features(self, model: str, prompt: Prompt, n_images: int) -> FloatArray:
        """Return a model's features [n, d] of the first images of a prompt, without those that were rejected."""

    def shown(self, prompt: Prompt, n_images: int) -> list[Image.Image]:
        """Return some kept images of a prompt, to be looked at."""

    def rejected(self) -> dict[str, int]:
        """Return how many images each quality check rejected."""


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


class Refinement(Record):
    """One classifier, refined beside its baselines.

    Args:
        name: the project.
        names: values that seed failures show, commonest first within class and kind; those generated from and those not.
        arms: the refinement first.
        measured_on: test samples, discovery half (seed) and confirmation half (held-out).
        rejected: images that each quality check rejected.
        notes: what to know.
        made_from: what it was made from, to be repeated or compared; None for what was not made from a project.
    """

    record_version: int = RECORD_VERSION
    name: str
    names: tuple[NamedFailures, ...]
    arms: tuple[RefinedArm, ...]
    measured_on: tuple[DataUse, ...]
    rejected: dict[str, int] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    made_from: dict[str, JsonValue] | None = None

    def arm(self, name: str) -> RefinedArm | None:
        return next((one for one in self.arms if one.arm == name), None)
