"""The Clarify protocol on photographs: Waterbirds, and blond hair on CelebA."""

from pathlib import Path

from weakspot.core.errors import DataError
from weakspot.lab.reproduce.clarify.world import BIRD_WORDS, FACE_WORDS, ClarifyWorld
from weakspot.lab.reproduce.photographs import (
    CELEBA,
    WATERBIRDS,
    ImageList,
    embed_files,
    open_embedder,
    read_celeba,
    read_waterbirds,
)
from weakspot.lab.reproduce.request import ReproduceRequest

SETS = (WATERBIRDS, CELEBA)
LOADERS = {"Waterbirds": "birds", "CelebA": "faces"}
PLACES = {"land": "a forest", "water": "the water"}
PEOPLE = {"not male": "a woman", "male": "a man"}


def photograph_world(request: ReproduceRequest, kind: str, folder: Path) -> ClarifyWorld:
    """Return a data set, embedded by the first of the models that are named, or the one that this machine can have.

    Raises:
        DataError: if the embedder has no text side.
    """
    embedder = open_embedder(request.models)
    if not embedder.has_text:
        raise DataError(
            "The embedder has no text side, so that phrases cannot be compared with images.",
            where="--models",
            given=embedder.encoder_id,
            fix="Name an embedder with text.",
        )
    images = (
        read_waterbirds(folder)
        if kind == "birds"
        else read_celeba(folder, label="Blond_Hair", attribute="Male")
    )
    names = images.class_names if kind == "birds" else ("person with dark hair", "blond person")
    values = PLACES if kind == "birds" else PEOPLE
    said = [values[one] for one in images.values]
    between = "in front of" if kind == "birds" else "who is"
    return ClarifyWorld(
        name=LOADERS.get(kind, kind),
        class_names=images.class_names,
        values=images.values,
        labels=images.labels,
        attributes=images.attributes,
        splits=images.splits,
        embeddings=embed_files(embedder, images.paths),
        embed_texts=embedder.embed_texts,
        class_prompts=tuple(f"a photo of a {one}" for one in names),
        group_prompts=tuple(
            tuple(f"a photo of a {one} {between} {value}" for value in said) for one in names
        ),
        contrast=(f"a photo of {said[0]}", f"a photo of {said[1]}"),
        expert=_expert(kind, images),
        vocabulary=tuple(BIRD_WORDS if kind == "birds" else FACE_WORDS),
    )


def _expert(kind: str, images: ImageList) -> dict[str, str]:
    """Return the paper's own annotations: forest and water for birds, man for blond hair."""
    if kind == "birds":
        return {"landbird": "water", "waterbird": "forest"}
    return {images.class_names[1]: "man"}
