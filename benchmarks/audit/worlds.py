"""Tables with embeddings whose truth is known, made by nothing but numpy: what the audit puts to the product.

Every class has several kinds of samples (clusters of embeddings), columns that go together because one hidden number stands behind
them, and a chance of failure that is known for every sample. Nothing here is shared with the planted images of the package.
"""

import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

KINDS = 6
WORDS = tuple(f"word{number:02d}" for number in range(60))


@dataclass(frozen=True, kw_only=True)
class WorldPlan:
    """What a world is like.

    Args:
        n_classes: how many classes.
        n_evaluation: validation samples of each class.
        n_training: training samples of each class.
        rest_rate: chance of failure where nothing is wrong.
        slice_size: validation samples of the first class in the planted slice; 0 for none.
        gap: how much more often they fail.
        is_column: whether the slice is a value of a column; otherwise it is a kind of its own among the embeddings.
        n_columns: how many columns, apart from that one.
        n_values: values of a column.
        has_proxies: whether columns also tell the class.
        images_per_object: so many samples show one object and share its prediction.
        tells_objects: whether a column says which object.
        is_near_identical: whether the samples of an object have nearly the same embedding.
        is_imbalanced: whether later classes have far fewer samples.
        is_tiny: whether columns have many rare values.
        is_learnt: whether the classifier is right on every training sample.
    """

    n_classes: int = 3
    n_evaluation: int = 300
    n_training: int = 100
    rest_rate: float = 0.1
    slice_size: int = 0
    gap: float = 0.0
    is_column: bool = False
    n_columns: int = 5
    n_values: int = 3
    has_proxies: bool = False
    images_per_object: int = 1
    tells_objects: bool = False
    is_near_identical: bool = False
    is_imbalanced: bool = False
    is_tiny: bool = False
    is_learnt: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """A table and what is true of it.

    Args:
        keys: [n] names of the samples.
        labels: [n].
        predictions: [n].
        is_training: [n].
        embeddings: [n, d].
        columns: by name, [n] values.
        objects: [n] which object a sample shows.
        chance: [n] true chance of failure.
        planted: [n] members of the planted slice.
        words: embeddings of phrases, by phrase.
    """

    keys: list[str]
    labels: np.ndarray
    predictions: np.ndarray
    is_training: np.ndarray
    embeddings: np.ndarray
    columns: dict[str, np.ndarray]
    objects: np.ndarray
    chance: np.ndarray
    planted: np.ndarray
    words: dict[str, np.ndarray] = field(default_factory=dict)
    tells_objects: bool = False

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write `table.csv` and `embeddings.npz`."""
        table, embeddings = folder / "table.csv", folder / "embeddings.npz"
        names = [*self.columns, *(["group"] if self.tells_objects else [])]
        values = [*self.columns.values(), *([self.objects] if self.tells_objects else [])]
        with table.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["key", "label", "prediction", "split", *names])
            for row, key in enumerate(self.keys):
                split = "train" if self.is_training[row] else "validation"
                own = [column[row] for column in values]
                writer.writerow(
                    [key, f"class{self.labels[row]}", f"class{self.predictions[row]}", split, *own]
                )
        np.savez(embeddings, embeddings=self.embeddings, ids=np.array(self.keys))
        return table, embeddings


def make_world(plan: WorldPlan, seed: int, *, dimension: int = 24) -> World:
    """Return a world; the same plan and seed give the same one."""
    random = np.random.default_rng([seed, 2026])
    sizes = [_class_size(plan, number) for number in range(plan.n_classes)]
    labels = np.repeat(np.arange(plan.n_classes), [sum(size) for size in sizes])
    is_training = np.concatenate([np.arange(sum(size)) >= size[0] for size in sizes])
    objects = _objects(labels, is_training, plan.images_per_object)
    planted = _planted(plan, labels, is_training, objects)
    n_objects = int(objects.max()) + 1
    kinds = random.integers(0, KINDS, n_objects)[objects]
    own_kind = planted & (not plan.is_column)
    kinds = np.where(own_kind, KINDS, kinds)
    centres = 2.2 * random.normal(size=(plan.n_classes, 1, dimension))
    centres = centres + 1.3 * random.normal(size=(plan.n_classes, KINDS + 1, dimension))
    jitter = 0.01 if plan.is_near_identical else 0.6
    spread = random.normal(size=(n_objects, dimension))[objects]
    embeddings = centres[labels, kinds] + spread + jitter * random.normal(size=spread.shape)
    columns = _columns(plan, random, labels, objects, planted, own_kind)
    chance = np.where(planted, plan.rest_rate + plan.gap, plan.rest_rate)
    failed = random.random(n_objects)[objects] < chance
    failed &= ~(is_training & plan.is_learnt)
    wrong = (labels + 1 + random.integers(0, max(plan.n_classes - 1, 1), n_objects)[objects]) % (
        plan.n_classes
    )
    wrong = np.where(wrong == labels, (labels + 1) % plan.n_classes, wrong)
    return World(
        keys=[f"s{number:06d}" for number in random.permutation(len(labels))],
        labels=labels,
        predictions=np.where(failed, wrong, labels),
        is_training=is_training,
        embeddings=embeddings.astype(np.float32),
        columns=columns,
        objects=objects,
        chance=chance,
        planted=planted,
        words=dict(zip(WORDS, random.normal(size=(len(WORDS), dimension)), strict=True)),
        tells_objects=plan.tells_objects,
    )


def _class_size(plan: WorldPlan, number: int) -> tuple[int, int]:
    share = 4.0**-number if plan.is_imbalanced else 1.0
    return max(30, round(plan.n_evaluation * share)), max(30, round(plan.n_training * share))


def _objects(labels: np.ndarray, is_training: np.ndarray, images: int) -> np.ndarray:
    """Return which object every sample shows: so many samples in a row, within a class and split."""
    starts = np.flatnonzero(np.diff(labels * 2 + is_training, prepend=-1))
    place = np.arange(len(labels)) - np.repeat(starts, np.diff([*starts, len(labels)]))
    is_first = place % images == 0
    return np.cumsum(is_first) - 1


def _planted(
    plan: WorldPlan, labels: np.ndarray, is_training: np.ndarray, objects: np.ndarray
) -> np.ndarray:
    """Return the planted slice: so many validation samples of the first class, and the same share of its training samples."""
    members = np.zeros(len(labels), dtype=np.bool_)
    for training in (False, True):
        own = np.flatnonzero((labels == 0) & (is_training == training))
        size = round(plan.slice_size * len(own) / plan.n_evaluation)
        members[own[:size]] = True
    return members & np.isin(objects, objects[members])


def _columns(
    plan: WorldPlan,
    random: np.random.Generator,
    labels: np.ndarray,
    objects: np.ndarray,
    planted: np.ndarray,
    own_kind: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return columns behind which one hidden number stands; one is the planted slice where that is a column."""
    n_objects = int(objects.max()) + 1
    hidden = random.normal(size=n_objects)
    first = np.flatnonzero(np.diff(objects, prepend=-1))
    found: dict[str, np.ndarray] = {}
    n_values = 30 if plan.is_tiny else plan.n_values
    for number in range(plan.n_columns):
        level = 0.6 * hidden + 0.8 * random.normal(size=n_objects)
        if plan.has_proxies:
            level = level + 0.8 * labels[first]
        edges = np.quantile(level, np.linspace(0, 1, n_values + 1)[1:-1])
        found[f"column{number}"] = np.array(
            [f"value{code}" for code in np.searchsorted(edges, level)]
        )[objects]
    others = np.array(["dusk", "noon", "night"])[random.integers(0, 3, n_objects)[objects]]
    if plan.slice_size and plan.is_column:
        found["light"] = np.where(planted, "dawn", others)
    elif plan.slice_size:
        # A column that goes with the kind without being it.
        goes = random.random(len(labels)) < np.where(own_kind, 0.7, 0.2)
        found["light"] = np.where(goes, "dawn", others)
    return found
