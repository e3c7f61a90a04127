"""The Clarify protocol on photographs: Waterbirds, blond hair on CelebA, and cats and dogs of MetaShift, which the paper has not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from weakspot_lab.reproduce.clarify.world import BIRD_WORDS, FACE_WORDS, ClarifyWorld
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.metashift_files import (
    METASHIFT,
    METASHIFT_MIXED,
    read_metashift,
    read_mixed_metashift,
)
from weakspot_lab.reproduce.photographs import (
    CELEBA,
    WATERBIRDS,
    ImageList,
    embed_files,
    open_text_embedder,
    read_celeba,
    read_waterbirds,
)
from weakspot_lab.reproduce.protocol import Context

SETS = (WATERBIRDS, CELEBA, METASHIFT, METASHIFT_MIXED)
PET_WORDS = (
    "indoors", "outdoors", "sofa", "bed", "blanket", "pillow", "desk", "laptop", "keyboard", "television", "shelf", "curtain", "rug",
    "floor", "table", "sink", "grass", "trees", "fence", "car", "bench", "house", "snow", "sand", "water", "boat", "frisbee",
    "surfboard", "bicycle", "fire hydrant", "person", "black", "white", "sleeping",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Wording:
    """What the protocol says of a data set.

    Args:
        kind: its name in steps.
        read: reads it, with a seed for what the data set leaves to lot.
        classes: names of the classes in prompts; those of the data set by default.
        values: how prompts say the attribute.
        expert: phrase of an expert for every class, by its name in the data set.
        vocabulary: words of simulated annotators.
    """

    kind: str
    read: Callable[[Path, int], ImageList]
    values: tuple[str, str]
    expert: Mapping[str, str]
    vocabulary: tuple[str, ...]
    classes: tuple[str, str] | None = None
    between: str = "in front of"


BIRDS = Wording(
    kind="birds",
    read=lambda folder, _seed: read_waterbirds(folder),
    values=("a forest", "the water"),
    expert={"landbird": "water", "waterbird": "forest"},
    vocabulary=tuple(BIRD_WORDS),
)
FACES = Wording(
    kind="faces",
    read=lambda folder, _seed: read_celeba(folder, label="Blond_Hair", attribute="Male"),
    classes=("person with dark hair", "blond person"),
    values=("a woman", "a man"),
    expert={"blond_hair": "man"},
    vocabulary=tuple(FACE_WORDS),
    between="who is",
)
PETS = Wording(
    kind="pets",
    read=lambda folder, seed: read_metashift(folder, seed=seed),
    values=("a room", "a garden"),
    expert={"cat": "outdoors", "dog": "indoors"},
    vocabulary=PET_WORDS,
    between="in",
)
MIXED_PETS = Wording(
    kind="pets",
    read=lambda folder, _seed: read_mixed_metashift(folder),
    values=PETS.values,
    expert=PETS.expert,
    vocabulary=PET_WORDS,
    between=PETS.between,
)
WORDINGS = {
    CELEBA.name: FACES,
    METASHIFT.name: PETS,
    METASHIFT_MIXED.name: MIXED_PETS,
    WATERBIRDS.name: BIRDS,
}


def photograph_world(context: Context, found: DataSet) -> ClarifyWorld:
    """Return a data set, embedded by the first of the models that are named, or the one that this machine can have.

    Raises:
        DataError: if the embedder has no text side.
    """
    embedder = open_text_embedder(context.request.models)
    wording = WORDINGS[found.name]
    assert context.request.data is not None
    images = wording.read(context.request.data, context.seed_of(wording.kind, "data"))
    names = wording.classes or images.class_names
    return ClarifyWorld(
        name=found.name,
        class_names=images.class_names,
        values=images.values,
        labels=images.labels,
        attributes=images.attributes,
        splits=images.splits,
        embeddings=embed_files(embedder, images.paths),
        embed_texts=embedder.embed_texts,
        class_prompts=tuple(f"a photo of a {one}" for one in names),
        group_prompts=tuple(
            tuple(f"a photo of a {one} {wording.between} {value}" for value in wording.values)
            for one in names
        ),
        contrast=(f"a photo of {wording.values[0]}", f"a photo of {wording.values[1]}"),
        expert=wording.expert,
        vocabulary=wording.vocabulary,
    )
