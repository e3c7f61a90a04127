"""Learn the text side of a frozen image encoder (locked-image tuning).

The image embeddings never change; only a small map from sentence embeddings into
their space is learnt. The idea of tuning the text side against a locked image
side is that of Zhai et al., "LiT: Zero-Shot Transfer with Locked-image text
Tuning", CVPR 2022.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray, generator, unit_rows
from weakspot.core.bounds import Count, Positive, check_bounds
from weakspot.core.errors import DataError
from weakspot.models.text_side import TextProjection
from weakspot_lab.align.evaluation import recall_at
from weakspot_lab.align.network import (
    Adam,
    Pass,
    Weights,
    backward,
    contrastive,
    forward,
    initial_weights,
    presence,
)
from weakspot_lab.align.pairs import PairGroup

Progress = Callable[[int, int, float], None]


@dataclass(frozen=True, kw_only=True)
class AlignParameters:
    """How to learn; the defaults suit a few thousand captioned images.

    Attributes:
        loss: "ridge" (closed form, linear) or "contrastive" (starts from ridge).
        hidden: Units of the hidden layer; 0 keeps the map linear.
        steps: Upper limit of update steps.
        batch_size: Images of each group per step.
        learning_rate: At the start; it falls to zero along a cosine.
        temperature: Of the contrastive loss.
        presence_weight: Of the "is this word seen" loss beside it.
        words_per_step: Words of each group that this loss looks at in one step.
        weight_decay: ConfusedWith of the weights towards zero.
        ridge_penalty: Of the closed form, per pair.
        text_noise: Length of the random embedding added to a sentence embedding.
        nuisance_share: Share of images to which a nuisance difference is added.
        evaluate_every: Steps between two looks at the held-out pairs.
        patience: Looks without gain after which learning stops.
        tolerance: Held-out recall that later weights may lose and still be preferred; above
            zero it lets groups that the held-out pairs say nothing about be learnt longer.
        averaging: Memory of the running average of the weights, 0 for none.
        seed: Of everything random.
    """

    loss: Literal["contrastive", "ridge"] = "contrastive"
    hidden: int = 1024
    steps: Count = 1500
    batch_size: Count = 256
    learning_rate: Positive = 1e-3
    temperature: Positive = 0.07
    presence_weight: float = 1.0
    words_per_step: int = 128
    weight_decay: float = 0.05
    ridge_penalty: Positive = 3e-3
    text_noise: float = 0.2
    nuisance_share: float = 0.3
    evaluate_every: Count = 100
    patience: Count = 6
    tolerance: float = 0.0
    averaging: float = 0.99
    seed: int = 0

    def __post_init__(self) -> None:
        check_bounds(self, where="align")


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignResult:
    """A learnt text side and how the learning went.

    Attributes:
        projection: The weights with the best held-out recall.
        best_step: The step they are from; 0 for the closed form.
        history: (step, held-out recall at 10) of every look.
        parameters: What was asked for.
    """

    projection: TextProjection
    best_step: int
    history: tuple[tuple[int, float], ...]
    parameters: AlignParameters


def fit_text_side(
    groups: Sequence[PairGroup],
    held_out: PairGroup,
    parameters: AlignParameters,
    *,
    image_mean: FloatArray | None = None,
    nuisance: FloatArray | None = None,
    progress: Progress | None = None,
) -> AlignResult:
    """Learn a text projection.

    Args:
        groups: What to learn from; contrasts are drawn inside a group only.
        held_out: Pairs that decide when to stop and which weights to keep.
        parameters: How to learn.
        image_mean: Mean unit image embedding [d]; by default that of the first group.
        nuisance: Differences [q, d] between unit vectors of a changed and an unchanged
            image (blur, low resolution), which the texts should not react to.
        progress: Called with step, steps and held-out recall at every look.

    Returns:
        The projection with its history; the inputs are not changed.
    """
    if not groups:
        raise DataError(
            "There is nothing to learn from.",
            where="align",
            fix="Give at least one group of pairs.",
        )
    learner = _Learner(groups, parameters, image_mean, nuisance)
    best = _Best(learner.projection(learner.weights), held_out, parameters)
    for step in range(1, parameters.steps + 1 if parameters.loss == "contrastive" else 1):
        learner.step(step)
        if step % parameters.evaluate_every and step != parameters.steps:
            continue
        recall = best.look(step, learner.projection(learner.averaged))
        if progress is not None:
            progress(step, parameters.steps, recall)
        if best.is_stale(step):
            break
    return AlignResult(
        projection=best.projection,
        best_step=best.step,
        history=tuple(best.looks),
        parameters=parameters,
    )


class _Best:
    """The weights to keep, judged by the held-out pairs."""

    def __init__(
        self, start: TextProjection, held_out: PairGroup, parameters: AlignParameters
    ) -> None:
        self.projection, self.step = start, 0
        self.looks = [(0, held_out_recall(start, held_out))]
        self._held_out = held_out
        self._parameters = parameters

    def look(self, step: int, candidate: TextProjection) -> float:
        """Measure a candidate, keep it if it is good enough, return its recall."""
        recall = held_out_recall(candidate, self._held_out)
        highest = max(earlier for _, earlier in self.looks)
        if self.step == 0 or recall > highest - self._parameters.tolerance:
            self.projection, self.step = candidate, step
        self.looks.append((step, recall))
        return recall

    def is_stale(self, step: int) -> bool:
        """Say whether nothing was kept for too long."""
        return step - self.step >= self._parameters.patience * self._parameters.evaluate_every


def held_out_recall(projection: TextProjection, held_out: PairGroup, k: int = 10) -> float:
    texts = projection.apply(held_out.text_embeddings[held_out.pair_texts])
    return recall_at(k, texts, projection.centre(held_out.image_embeddings), held_out.pair_images)


def ridge_map(
    inputs: FloatArray, targets: FloatArray, penalty: float
) -> tuple[FloatArray, FloatArray]:
    """Solve the ridge regression of targets [p, d] on inputs [p, s]; return weights and bias."""
    wide = inputs.astype(np.float64)
    offset = targets.mean(axis=0).astype(np.float64)
    centre = wide.mean(axis=0)
    wide = wide - centre
    gram = wide.T @ wide + penalty * len(wide) * np.eye(wide.shape[1])
    weights = np.linalg.solve(gram, wide.T @ (targets - offset))
    return weights.astype(np.float32), (offset - centre @ weights).astype(np.float32)


class _Learner:
    """The changing state of one training: weights, their average, the update rule."""

    def __init__(
        self,
        groups: Sequence[PairGroup],
        parameters: AlignParameters,
        image_mean: FloatArray | None,
        nuisance: FloatArray | None,
    ) -> None:
        self.parameters = parameters
        self.groups = groups
        self.rng = generator(parameters.seed, "align", "steps")
        self.image_mean = (
            unit_rows(groups[0].image_embeddings).mean(axis=0) if image_mean is None else image_mean
        )
        self.text_mean = groups[0].text_embeddings.mean(axis=0)
        self.units = [unit_rows(group.image_embeddings) for group in groups]
        self.nuisance = nuisance
        self.weights = self._start()
        self.averaged = {name: value.copy() for name, value in self.weights.items()}
        self.optimiser = Adam(self.weights, weight_decay=parameters.weight_decay)
        self.offsets = [np.zeros(_n_concepts(group), dtype=np.float32) for group in groups]

    def _start(self) -> Weights:
        inputs = (
            np.concatenate([group.text_embeddings[group.pair_texts] for group in self.groups])
            - self.text_mean
        )
        images = [
            unit_rows(unit - self.image_mean)[group.pair_images]
            for unit, group in zip(self.units, self.groups, strict=True)
        ]
        linear, bias = ridge_map(inputs, np.concatenate(images), self.parameters.ridge_penalty)
        hidden = self.parameters.hidden if self.parameters.loss == "contrastive" else 0
        # The ridge answer is short; at unit scale the later steps change it at a sane rate.
        size = float(np.mean(np.linalg.norm(inputs @ linear + bias, axis=1)))
        rng = generator(self.parameters.seed, "align", "weights")
        return initial_weights(linear / size, bias / size, hidden, rng)

    def projection(self, weights: Weights) -> TextProjection:
        copies = {name: value.copy() for name, value in weights.items()}
        return TextProjection(
            image_mean=self.image_mean.astype(np.float32),
            text_mean=self.text_mean.astype(np.float32),
            **copies,
        )

    def step(self, number: int) -> None:
        """Draw a batch of every group and move the weights once."""
        slopes: Weights = {name: np.zeros_like(value) for name, value in self.weights.items()}
        total = sum(group.share for group in self.groups)
        for index, group in enumerate(self.groups):
            for name, slope in self._group_slopes(index, group).items():
                slopes[name] += (group.share / total) * slope
        falling = 0.5 * (1 + np.cos(np.pi * min(1.0, number / self.parameters.steps)))
        rate = self.parameters.learning_rate * float(falling) * min(1.0, number / 50)
        self.optimiser.update(self.weights, slopes, rate)
        memory = min(self.parameters.averaging, number / (number + 10))
        for name, value in self.weights.items():
            self.averaged[name] += np.float32(1 - memory) * (value - self.averaged[name])

    def _group_slopes(self, index: int, group: PairGroup) -> Weights:
        size = min(self.parameters.batch_size, len(group.pair_images))
        pairs = self.rng.choice(len(group.pair_images), size=size, replace=False)
        rows, texts = group.pair_images[pairs], group.pair_texts[pairs]
        images = self._images(index, rows)
        made = forward(self.weights, self._noisy(group.text_embeddings[texts]))
        _, slope = contrastive(
            made.outputs, images, group.belong(texts, rows), temperature=self.parameters.temperature
        )
        slopes = backward(self.weights, made, slope)
        if group.concepts is not None and self.parameters.presence_weight > 0:
            words, slope = self._presence(index, group, rows, images)
            extra = backward(self.weights, words, self.parameters.presence_weight * slope)
            slopes = {name: value + extra[name] for name, value in slopes.items()}
        return slopes

    def _presence(
        self, index: int, group: PairGroup, rows: IntArray, images: FloatArray
    ) -> tuple[Pass, FloatArray]:
        concepts = group.concepts
        if concepts is None:
            raise DataError("The group has no words with known presence.", where=group.name)
        total, ways, _ = concepts.text_embeddings.shape
        count = min(total, self.parameters.words_per_step)
        words = self.rng.permutation(total)[:count]
        made = forward(
            self.weights,
            self._noisy(concepts.text_embeddings[words, self.rng.integers(0, ways, count)]),
        )
        seen, offsets = concepts.presence[np.ix_(rows, words)], self.offsets[index][words]
        _, slope, offset_slope = presence(made.outputs, images, seen, offsets, scale=10.0)
        self.offsets[index][words] -= 5.0 * count * self.parameters.learning_rate * offset_slope
        return made, slope

    def _images(self, index: int, rows: IntArray) -> FloatArray:
        units = self.units[index][rows]
        if self.nuisance is not None and self.groups[index].takes_nuisance:
            chosen = self.nuisance[self.rng.integers(0, len(self.nuisance), len(rows))]
            size = self.rng.uniform(0, 1.2, (len(rows), 1)) * (
                self.rng.random((len(rows), 1)) < self.parameters.nuisance_share
            )
            units = unit_rows(units + size.astype(np.float32) * chosen)
        return unit_rows(units - self.image_mean)

    def _noisy(self, embeddings: FloatArray) -> FloatArray:
        noise = self.rng.standard_normal(embeddings.shape, dtype=np.float32)
        size = np.float32(self.parameters.text_noise / np.sqrt(embeddings.shape[1]))
        return np.asarray(embeddings - self.text_mean + noise * size, dtype=np.float32)


def _n_concepts(group: PairGroup) -> int:
    return 0 if group.concepts is None else len(group.concepts.text_embeddings)
