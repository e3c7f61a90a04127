"""What is asked of a refinement, its stored records, and the training: the last layer with generated or mixed samples beside its own.

How far they may move it is bounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import sqrt
from typing import Annotated, NamedTuple, Protocol

import numpy as np
from PIL import Image
from pydantic import Field, JsonValue

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray, generator
from weakspot.core.bounds import Bounds, Count, Positive, check_bounds
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError, RefusedPromptError
from weakspot.core.evidence import Share
from weakspot.core.failures import best_f1_thresholds
from weakspot.core.group_tests import paired_group_p
from weakspot.core.heads import Head
from weakspot.core.record import Record
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.data.images import decode_image
from weakspot.data.locations import read_location
from weakspot.project.collective import Family, FamilyMember
from weakspot.repair.bench import RepairBench
from weakspot.repair.spread import Comparison, compare, is_measurable
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.report.wording import count
from weakspot.run.preparation import FEATURES
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Added:
    """Samples that are added to the training samples.

    Args:
        features: [n, d].
        targets: class codes [n] or labels [n, c].
        weights: [n], they sum to one.
        n_kept: images of every prompt, in the order of what was wanted.
    """

    features: FloatArray
    targets: AnyArray
    weights: DoubleArray
    n_kept: tuple[int, ...] = ()


def mixed_features(
    features: FloatArray,
    targets: AnyArray,
    *,
    n_mixed: int,
    random: np.random.Generator,
    concentration: float = 1.0,
) -> Added:
    """Return so many mixtures of two training samples each, drawn with replacement.

    A mixed sample has the labels of both its parents, each as much as that parent is in it. A cross-entropy is linear in its
    target, so such a sample is the same as two rows with the same features, each with the labels of one parent and its share as
    weight: what is returned has the features of a mixed sample twice, and two weights of it that sum to one.

    Args:
        features: of the training samples [n, d].
        targets: their class codes [n] or labels [n, c].
        n_mixed: how many mixtures.
        random: draws parents and shares.
        concentration: both parameters of the beta distribution that shares are drawn from; 1: every share is as likely.

    Raises:
        DataError: if there is no training sample, or not one target a sample.
        ConfigError: if a number is not positive.
    """
    if not len(features) or len(features) != len(targets):
        raise DataError(
            "Samples to mix need features and one target each.", given=(len(features), len(targets))
        )
    if n_mixed < 1 or not concentration > 0:
        raise ConfigError(
            "The number of mixtures and their concentration must be positive.",
            given=(n_mixed, concentration),
        )
    first, second = random.integers(len(features), size=(2, n_mixed))
    shares = random.beta(concentration, concentration, size=n_mixed)
    part = shares[:, None].astype(np.float32)
    mixed = part * features[first] + (1.0 - part) * features[second]
    return Added(
        features=np.asarray(np.concatenate([mixed, mixed]), dtype=np.float32),
        targets=np.concatenate([targets[first], targets[second]]),
        weights=np.concatenate([shares, 1.0 - shares]),
        n_kept=(n_mixed,),
    )


def mixed_image(
    first: Image.Image,
    second: Image.Image,
    random: np.random.Generator,
    *,
    concentration: float = 1.0,
) -> tuple[Image.Image, float]:
    """Return the first image with a rectangle of the second, at the same place of both, and how much of it is the first.

    After Yun and others, *CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features* (2019): the middle
    of the rectangle is anywhere in the image, so a part of it may lie outside; the share is that of what can be seen.

    Args:
        first: what is covered.
        second: what covers; it is resized to the first.
        random: draws the share and the place.
        concentration: both parameters of the beta distribution that the share is drawn from.
    """
    width, height = first.size
    side = sqrt(1.0 - float(random.beta(concentration, concentration)))
    spans = []
    for length in (width, height):
        middle, half = int(random.integers(length)), int(length * side) // 2
        spans.append((max(middle - half, 0), min(middle + half, length)))
    (left, right), (top, bottom) = spans
    box = (left, top, right, bottom)
    mixed = first.convert("RGB")
    if left < right and top < bottom:
        mixed.paste(second.convert("RGB").resize(first.size).crop(box), box)
    covered = max(right - left, 0) * max(bottom - top, 0)
    return mixed, 1.0 - covered / (width * height)


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """One classifier that is refined.

    Args:
        name: of its project.
        bench: its material and trainer.
        test: the test samples that decide: untouched by anything before.
        seed: its failures choose values, and its right samples how much images may count; the discovery half.
        held_out: has no say in anything; the confirmation half.
    """

    name: str
    bench: RepairBench
    test: SampleSet
    seed: SampleSet
    held_out: SampleSet

    @classmethod
    def of(cls, member: FamilyMember) -> "Subject":
        measured = member.bench.measured
        test = measured.only(measured.rows[is_measurable(measured)])
        return cls(
            name=member.name,
            bench=member.bench,
            test=test,
            seed=member.half(0),
            held_out=member.half(1),
        )

    @property
    def dataset(self) -> Dataset:
        return self.bench.samples.dataset

    @property
    def sets(self) -> tuple[SampleSet, ...]:
        """Return what is measured on: test, seed and held-out."""
        return self.test, self.seed, self.held_out

    def uses(self) -> tuple[DataUse, ...]:
        return tuple(DataUse.of(one) for one in self.sets)


def subjects_of(family: Family) -> tuple[Subject, ...]:
    """Return projects that are refined together: measured on the test samples that all share, with one division into halves.

    An image is in the half in which the first project that has it put it; otherwise what chose values for one model could be held
    out for another.
    """
    half_of: dict[str, int] = {}
    for member in family.members:
        for number in (0, 1):
            half = member.bench.pairs[0][number]
            for content in member.dataset.content_hashes(half.rows):
                half_of.setdefault(content, number)
    return tuple(_together(member, family, half_of) for member in family.members)


def _together(member: FamilyMember, family: Family, half_of: dict[str, int]) -> Subject:
    halves = member.half(0), member.half(1)
    rows = np.sort(np.concatenate([half.rows for half in halves]))
    numbers = np.array(
        [half_of[content] for content in member.dataset.content_hashes(rows)], dtype=np.int64
    )
    seed, held_out = (half.only(rows[numbers == number]) for number, half in enumerate(halves))
    return Subject(
        name=member.name,
        bench=member.bench,
        test=family.measured(member),
        seed=seed,
        held_out=held_out,
    )


def share(right: BoolArray) -> Share:
    return Share.of(int(np.sum(right)), len(right))


@dataclass(frozen=True, kw_only=True)
class Step:
    """How generated images change a layer.

    Args:
        debug_weight: how much they count together beside all training samples together.
        share: how far the layer goes from the old one to one that is retrained with a pull to the old one; None: all the way to one
            that is trained from nothing, as in the paper.
    """

    debug_weight: float
    share: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RefinedHead:
    """A retrained last layer.

    Args:
        head: the layer.
        thresholds: multi-label decision thresholds chosen on the discovery half, None for single-label tasks.
        step: how it came about; the weight is 0 without added samples.
    """

    head: Head
    step: Step
    thresholds: FloatArray | None = None


def kept_of_classes(wanted: Sequence[Wanted], added: Added) -> dict[str, int]:
    """Return how many images of every class an arm trains on."""
    found: dict[str, int] = {}
    for one, n_kept in zip(wanted, added.n_kept, strict=True):
        found[one.prompt.class_name] = found.get(one.prompt.class_name, 0) + n_kept
    return found


def more_images(wanted: Sequence[Wanted], factor: int) -> tuple[Wanted, ...]:
    return tuple(replace(one, n_images=factor * one.n_images) for one in wanted)


def _trimmed(wanted: Sequence[Wanted], n_kept: Sequence[int], most: Mapping[str, int]) -> list[int]:
    """Return how many images of every prompt are used, so that no class has more than given; the fullest prompts give first."""
    used = list(n_kept)
    for class_name, limit in most.items():
        own = [place for place, one in enumerate(wanted) if one.prompt.class_name == class_name]
        while sum(used[place] for place in own) > limit:
            used[max(own, key=lambda place: used[place])] -= 1
    return used


def added_images(
    subject: Subject,
    wanted: Sequence[Wanted],
    images: Images,
    most: Mapping[str, int] | None = None,
) -> Added:
    """Return what a model makes of an arm's images; a prompt counts as much however many of its images were kept.

    Args:
        subject: the model.
        wanted: what was generated.
        images: the generator.
        most: of classes, how many images are used at most.

    Raises:
        NotEnoughDataError: if not one image was kept.
    """
    found = [images.features(subject.name, one.prompt, one.n_images) for one in wanted]
    used = _trimmed(wanted, [len(features) for features in found], most or {})
    found = [features[:number] for features, number in zip(found, used, strict=True)]
    n_kept = [len(features) for features in found]
    if not any(n_kept):
        raise NotEnoughDataError("Not one generated image can be used.", given=images.rejected())
    codes = np.repeat([subject.dataset.class_code(one.prompt.class_name) for one in wanted], n_kept)
    shares = [np.full(n, one.weight / n) for one, n in zip(wanted, n_kept, strict=True) if n]
    weights = np.concatenate(shares)
    return Added(
        features=np.concatenate([features for features in found if len(features)]),
        targets=codes
        if subject.dataset.task is Task.SINGLE_LABEL
        else np.eye(subject.dataset.n_classes, dtype=np.bool_)[codes],
        weights=weights / weights.sum(),
        n_kept=tuple(n_kept),
    )


def added_mixtures(subject: Subject, n_mixed: int) -> Added:
    rows = subject.bench.material.labelled
    random = generator(subject.bench.settings.seed, "refine", "cutmix")
    mixed = mixed_features(
        subject.bench.samples.embeddings(FEATURES, rows),
        subject.bench.targets(rows),
        n_mixed=n_mixed,
        random=random,
    )
    return replace(mixed, weights=mixed.weights / mixed.weights.sum())


def added_mixed_images(subject: Subject, n_mixed: int, images: Images) -> Added:
    """Return mixtures of two training images each, as the classifier sees them.

    Raises:
        NotEnoughDataError: if training samples have no images, or the classifier cannot be shown any.
    """
    dataset, rows = subject.dataset, subject.bench.material.labelled
    places = dataset.locations(rows)
    rows = rows[np.array([place is not None for place in places], dtype=np.bool_)]
    features_of = getattr(images, "features_of", None)
    if not len(rows) or not n_mixed or features_of is None:
        raise NotEnoughDataError("There are no training images that could be mixed and classified.")
    random = generator(subject.bench.settings.seed, "refine", "cutmix", "pixels")
    pairs = rows[random.integers(len(rows), size=(n_mixed, 2))]
    mixed = [
        mixed_image(_image(dataset, first), _image(dataset, second), random)
        for first, second in pairs.tolist()
    ]
    features = features_of(subject.name, [image for image, _ in mixed])
    targets = subject.bench.targets(pairs.T.reshape(-1))
    shares = np.array([part for _, part in mixed])
    weights = np.concatenate([shares, 1.0 - shares])
    return Added(
        features=np.concatenate([features, features]),
        targets=targets,
        weights=weights / weights.sum(),
        n_kept=(n_mixed,),
    )


def _image(dataset: Dataset, row: int) -> Image.Image:
    (location,) = dataset.locations(np.array([row]))
    return decode_image(read_location(str(location))).image


def refined_head(subject: Subject, added: Added | None, step: Step) -> RefinedHead:
    """Return the last layer that minimises `L(training) + debug_weight * L(added)`, both means over their samples.

    With a share it is trained with a pull to the old layer, and only that share of the way to it is gone. The penalty is the one
    that fits the classifier's own layer on the training samples; validation samples have no say in it.
    """
    used = step if added is not None else replace(step, debug_weight=0.0)
    if step.share == 0.0:
        return RefinedHead(head=old_head(subject), step=used)
    trainer = subject.bench.trainer
    if step.share is not None:
        trained = _trained(subject, added, used, replace(trainer, towards="start"))
        head = old_head(subject).moved(trained, step.share)
    else:
        head = _trained(subject, added, used, trainer)
    return RefinedHead(head=head, step=used, thresholds=_thresholds(subject, head))


def old_head(subject: Subject) -> Head:
    """Return the classifier's own last layer; where only its features are known, the one that is trained on the training samples."""
    if subject.bench.start is not None:
        return subject.bench.start
    return _trained(subject, None, Step(debug_weight=0.0), subject.bench.trainer)


def part_of(subject: Subject, old: Head, whole: RefinedHead, share: float) -> RefinedHead:
    """Return the layer that goes a share of the way from the old one to a retrained one."""
    head = old.moved(whole.head, share)
    step = replace(whole.step, share=share)
    return RefinedHead(head=head, step=step, thresholds=_thresholds(subject, head))


def _trained(subject: Subject, added: Added | None, step: Step, trainer: HeadTrainer) -> Head:
    bench, rows = subject.bench, subject.bench.material.labelled
    features, targets = bench.samples.embeddings(FEATURES, rows), bench.targets(rows)
    weights = np.full(len(rows), 1.0 / max(len(rows), 1))
    if added is not None:
        features = np.concatenate([features, added.features])
        targets = np.concatenate([targets, added.targets])
        weights = np.concatenate([weights, step.debug_weight * added.weights])
    return trainer.train(
        features,
        targets,
        weights,
        task=subject.dataset.task,
        start=bench.start if trainer.towards == "zero" else old_head(subject),
        n_classes=subject.dataset.n_classes,
    ).head


def rights(
    subject: Subject, samples: SampleSet, refined: RefinedHead
) -> tuple[BoolArray, BoolArray]:
    """Return which decisions on samples were right before [n] and are right now [n], class by class."""
    found = _compare(subject, samples, refined).predictions
    if not found:
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    return np.concatenate([one.right_before for one in found]), np.concatenate(
        [one.right_after for one in found]
    )


def _compare(subject: Subject, samples: SampleSet, refined: RefinedHead) -> Comparison:
    probabilities = refined.head.probabilities(samples.embeddings(FEATURES))
    return compare(samples, probabilities, (), subject.bench.criterion, refined.thresholds)


def _thresholds(subject: Subject, head: Head) -> FloatArray | None:
    """Return multi-label thresholds; the held-out half must not choose them."""
    if subject.dataset.thresholds is None:
        return None
    seeds = subject.seed
    return best_f1_thresholds(
        head.probabilities(seeds.embeddings(FEATURES)), subject.dataset.label_matrix[seeds.rows]
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrectMask:
    """Which decisions are right on the three sets [n each], before and now; and the groups of the held-out ones, if any."""

    test: tuple[BoolArray, BoolArray]
    seed: tuple[BoolArray, BoolArray]
    held_out: tuple[BoolArray, BoolArray]
    groups: IntArray | None = None

    @classmethod
    def of(cls, subject: Subject, refined: RefinedHead) -> "CorrectMask":
        test, seed, held_out = (rights(subject, samples, refined) for samples in subject.sets)
        groups = _compare(subject, subject.sets[-1], refined).decision_groups
        return cls(test=test, seed=seed, held_out=held_out, groups=groups)

    def shares(self) -> Mapping[str, Share]:
        before, after = self.test
        return {
            "clean": share(after[before]),
            "failure": share(after[~before]),
            "seed": share(self.seed[1][~self.seed[0]]),
            "held_out": share(self.held_out[1][~self.held_out[0]]),
            "test_before": share(before),
            "test_after": share(after),
        }

    def p_against(self, other: "CorrectMask") -> float:
        """Return the exact test of the held-out failures against another arm: McNemar's, or that of groups."""
        was_wrong = ~self.held_out[0]
        mine, others = self.held_out[1][was_wrong], other.held_out[1][was_wrong]
        groups = None if self.groups is None else self.groups[was_wrong]
        return paired_group_p(mine & ~others, others & ~mine, groups)


DEBUG_WEIGHT = 0.5
"""What generated images count where no weight is given: the paper's lambda."""

N_STEPS = 20
CAREFUL = 0.6
"""How much is gone of the way that loses little: it ends just before one more right sample is lost."""


def chosen_head(subject: Subject, added: Added, request: RefineRequest) -> RefinedHead:
    """Return the last layer with the weight that is asked for, or else one that goes as far as clean samples allow.

    That is, from the old layer straight towards the retrained one, 60 % as far as neither the right samples of the discovery half
    nor those among the training samples lose more than `most_lost`; where the first step loses more, nowhere. After Wortsman et
    al., *Robust fine-tuning of zero-shot models* (2022).
    """
    if request.debug_weight is not None:
        return refined_head(subject, added, Step(debug_weight=request.debug_weight))
    whole = refined_head(subject, added, Step(debug_weight=DEBUG_WEIGHT, share=1.0))
    old, clean = old_head(subject), (subject.seed, _training(subject))

    def loses_little(step: int) -> bool:
        part = part_of(subject, old, whole, step / N_STEPS)
        return all(_lost(subject, samples, part) <= request.most_lost for samples in clean)

    allowed = sum(1 for _ in takewhile(loses_little, range(1, N_STEPS + 1)))
    share = int(CAREFUL * allowed) / N_STEPS
    if share == 0.0:
        return refined_head(subject, added, Step(debug_weight=DEBUG_WEIGHT, share=0.0))
    return part_of(subject, old, whole, share)


def step_note(subject: Subject, added: Added, chosen: RefinedHead) -> str:
    """Return what a part of the way costs and saves beside the paper's way, on the discovery half; nothing if that was gone."""
    if chosen.step.share is None:
        return ""
    figures = []
    for head in (chosen, refined_head(subject, added, Step(debug_weight=DEBUG_WEIGHT))):
        before, after = rights(subject, subject.seed, head)
        figures.append((int((~before & after).sum()), int((before & ~after).sum())))
    (resolved, lost), (all_resolved, all_lost) = figures
    n_failures, n_right = int((~before).sum()), int(before.sum())
    return (
        f"On the discovery half this resolves {resolved} of {count(n_failures, 'failure')} and loses {lost} of {n_right:,} right; "
        f"trained from nothing (--weight {DEBUG_WEIGHT}) it would resolve {all_resolved} and lose {all_lost}."
    )


def _training(subject: Subject) -> SampleSet:
    found = subject.bench.samples.only(subject.bench.material.labelled, name="training samples")
    return found.only(found.rows[is_measurable(found)])


def _lost(subject: Subject, samples: SampleSet, refined: RefinedHead) -> float:
    before, after = rights(subject, samples, refined)
    return float((before & ~after).sum() / max(before.sum(), 1))
