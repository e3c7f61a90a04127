"""Stand-in for CIFAR-100: superclasses of five subclasses, one of which training has too few of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, IntArray, generator, unit_rows
from weakspot_lab.reproduce.directions.case import POOL, TEST, TRAIN, VALIDATION, Case

N_SUBCLASSES = 5
FEATURES, JOINT = 32, 48
SUPERCLASS_SPREAD, SUBCLASS_SPREAD, NOISE = 0.55, 0.75, 1.0
JOINT_NOISE, TEXT_NOISE = 0.9, 0.35


@dataclass(frozen=True, kw_only=True)
class HierarchySizes:
    """How many there are: superclasses, and samples of every subclass in training and pool, validation, and test."""

    superclasses: int = 20
    train: int = 60
    validation: int = 30
    test: int = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Hierarchy:
    """A world of subclasses.

    Args:
        case: all samples, nothing removed and no minority marked.
        subclasses: number of every sample's subclass [n].
        names: what captions call the subclasses; numbers by default.
    """

    case: Case
    subclasses: IntArray
    names: tuple[str, ...] = ()

    def caption(self, subclass: int) -> str:
        return f"a photo of a {self.names[subclass]}" if self.names else subclass_caption(subclass)

    def class_caption(self, code: int) -> str:
        return (
            f"a photo of {self.case.class_names[code]}" if self.names else superclass_caption(code)
        )

    def rarefied(self, rare: Sequence[int], removed: float, *, seed: int) -> Case:
        """Return the case with a share of some subclasses removed from training; these are its minority."""
        case, is_rare = self.case, np.isin(self.subclasses, rare)
        kept = np.ones(len(case.labels), dtype=np.bool_)
        for one in rare:
            rows = np.flatnonzero((self.subclasses == one) & (case.splits == TRAIN.value))
            order = generator(seed, "rarefied", str(one)).permutation(rows)
            kept[order[: round(removed * len(rows))]] = False
        return Case(
            class_names=case.class_names,
            labels=case.labels[kept],
            is_minority=is_rare[kept],
            splits=case.splits[kept],
            inputs=case.inputs[kept],
            embeddings=case.embeddings[kept],
            embed_texts=case.embed_texts,
        )

    def members(self, code: int) -> range:
        """Return the subclasses of a superclass."""
        return range(code * N_SUBCLASSES, (code + 1) * N_SUBCLASSES)


def subclass_caption(subclass: int) -> str:
    return f"a photo of a kind{subclass}"


def superclass_caption(code: int) -> str:
    return f"a photo of a class{code}"


def hierarchy(sizes: HierarchySizes, *, seed: int) -> Hierarchy:
    """Return a world: subclasses of a superclass lie together, and the encoder sees them through another, noisy map."""
    draws = generator(seed, "hierarchy")
    n_subclasses = sizes.superclasses * N_SUBCLASSES
    centres = np.repeat(
        SUPERCLASS_SPREAD * draws.standard_normal((sizes.superclasses, FEATURES)),
        N_SUBCLASSES,
        axis=0,
    ) + SUBCLASS_SPREAD * draws.standard_normal((n_subclasses, FEATURES))
    counts = {
        TRAIN: sizes.train,
        VALIDATION: sizes.validation,
        TEST: sizes.test,
        POOL: sizes.train,
    }
    subclasses = np.concatenate(
        [np.repeat(np.arange(n_subclasses), count) for count in counts.values()]
    )
    splits = np.concatenate(
        [np.full(n_subclasses * count, split.value) for split, count in counts.items()]
    )
    vectors = centres[subclasses] + NOISE * draws.standard_normal((len(subclasses), FEATURES))
    turn = draws.standard_normal((FEATURES, JOINT)) / np.sqrt(FEATURES)
    joint = centres @ turn
    seen = (
        joint[subclasses]
        + JOINT_NOISE * draws.standard_normal((len(subclasses), JOINT)) * joint.std()
    )
    case = Case(
        class_names=tuple(f"class{code}" for code in range(sizes.superclasses)),
        labels=np.asarray(subclasses // N_SUBCLASSES, dtype=np.int64),
        is_minority=np.zeros(len(subclasses), dtype=np.bool_),
        splits=splits,
        inputs=np.asarray(vectors, dtype=np.float32),
        embeddings=unit_rows(np.asarray(seen, dtype=np.float32)),
        embed_texts=_text_side(joint, draws),
    )
    return Hierarchy(case=case, subclasses=subclasses)


def _text_side(
    joint: AnyArray, draws: np.random.Generator
) -> Callable[[Sequence[str]], FloatArray]:
    """Return the text side: the centre of a subclass or superclass, with an error of its own for every subclass."""
    spoken = joint + TEXT_NOISE * joint.std() * draws.standard_normal(joint.shape)
    whole = spoken.reshape(-1, N_SUBCLASSES, joint.shape[1]).mean(axis=1)

    def embed(phrases: Sequence[str]) -> FloatArray:
        found = []
        for phrase in phrases:
            word = phrase.rsplit(maxsplit=1)[-1]
            found.append(
                spoken[int(word[len("kind") :])]
                if word.startswith("kind")
                else whole[int(word[len("class") :])]
            )
        return unit_rows(np.asarray(found, dtype=np.float32))

    return embed
