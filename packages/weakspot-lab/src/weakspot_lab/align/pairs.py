"""What a text side is learnt from: image embeddings, sentence embeddings and which belong together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, generator
from weakspot.core.errors import DataError


@dataclass(frozen=True, kw_only=True, eq=False)
class Concepts:
    """Words whose presence in each image is known.

    Letters: *k* words, *v* ways to phrase each, *s* length of a sentence embedding.

    Attributes:
        text_embeddings: Sentence embeddings [k, v, s].
        presence: For each image and word [n, k]: 1 seen, 0 not seen, -1 not known.
    """

    text_embeddings: FloatArray
    presence: AnyArray


@dataclass(frozen=True, kw_only=True, eq=False)
class PairGroup:
    """Images and texts of one kind; images of different groups are never contrasted.

    Letters: *n* images, *m* texts, *p* pairs.

    Attributes:
        name: For figures and messages.
        image_embeddings: [n, d].
        text_embeddings: Sentence embeddings [m, s].
        pair_images: Image row of each pair [p].
        pair_texts: Text row of each pair [p]; one text may belong to many images.
        share: Relative weight of this group in the loss.
        concepts: Words with known presence, if there are any.
        takes_nuisance: Whether nuisance differences may be added to its images; not
            where the texts are about the nuisance itself, such as blur.
    """

    name: str
    image_embeddings: FloatArray
    text_embeddings: FloatArray
    pair_images: IntArray
    pair_texts: IntArray
    share: float = 1.0
    concepts: Concepts | None = None
    takes_nuisance: bool = True
    membership: sparse.csr_matrix = field(init=False, repr=False)

    def __post_init__(self) -> None:
        images, texts = len(self.image_embeddings), len(self.text_embeddings)
        if len(self.pair_images) == 0 or len(self.pair_images) != len(self.pair_texts):
            raise DataError(
                "A group of pairs needs as many images as texts, and at least one.", where=self.name
            )
        if self.pair_images.max() >= images or self.pair_texts.max() >= texts:
            raise DataError(
                "A pair points to an image or text that is not there.",
                where=self.name,
                given=(images, texts),
            )
        ones = np.ones(len(self.pair_images), dtype=np.bool_)
        table = sparse.csr_matrix(
            (ones, (self.pair_texts, self.pair_images)), shape=(texts, images)
        )
        object.__setattr__(self, "membership", table)

    def belong(self, texts: IntArray, images: IntArray) -> BoolArray:
        """Say for each text and image [len(texts), len(images)] whether they are a pair."""
        return np.asarray(self.membership[texts][:, images].toarray(), dtype=np.bool_)

    def keep_images(self, kept: IntArray) -> "PairGroup":
        """Return the group with only some images and their pairs; texts stay where they are."""
        new_row = np.full(len(self.image_embeddings), -1, dtype=np.int64)
        new_row[kept] = np.arange(len(kept))
        stays = new_row[self.pair_images] >= 0
        concepts = self.concepts
        if concepts is not None:
            concepts = Concepts(
                text_embeddings=concepts.text_embeddings, presence=concepts.presence[kept]
            )
        return PairGroup(
            name=self.name,
            image_embeddings=self.image_embeddings[kept],
            text_embeddings=self.text_embeddings,
            pair_images=new_row[self.pair_images[stays]],
            pair_texts=self.pair_texts[stays],
            share=self.share,
            concepts=concepts,
            takes_nuisance=self.takes_nuisance,
        )


def group_from_texts(
    name: str,
    image_embeddings: AnyArray,
    texts: Sequence[Sequence[str]],
    sentence_embeddings: dict[str, FloatArray],
    *,
    share: float = 1.0,
    concepts: Concepts | None = None,
) -> PairGroup:
    """Build a group from the texts of each image.

    Args:
        name: Name of the group.
        image_embeddings: [n, d].
        texts: For each image, its texts (at least one).
        sentence_embeddings: The sentence embedding of every text.
        share: Relative weight of the group in the loss.
        concepts: Words with known presence, if there are any.
    """
    if len(texts) != len(image_embeddings):
        raise DataError(
            "Every image needs its list of texts.",
            where=name,
            given=(len(image_embeddings), len(texts)),
        )
    distinct = sorted({text for own in texts for text in own})
    row_of = {text: row for row, text in enumerate(distinct)}
    return PairGroup(
        name=name,
        image_embeddings=np.asarray(image_embeddings, dtype=np.float32),
        text_embeddings=np.stack([sentence_embeddings[text] for text in distinct]).astype(
            np.float32
        ),
        pair_images=np.array([row for row, own in enumerate(texts) for _ in own], dtype=np.int64),
        pair_texts=np.array([row_of[text] for own in texts for text in own], dtype=np.int64),
        share=share,
        concepts=concepts,
    )


def split_group(
    group: PairGroup, held_out_share: float, *, seed: int
) -> tuple[PairGroup, PairGroup]:
    order = generator(seed, "align", "split", group.name).permutation(len(group.image_embeddings))
    n_held_out = min(len(order) - 1, max(1, round(held_out_share * len(order))))
    return group.keep_images(np.sort(order[n_held_out:])), group.keep_images(
        np.sort(order[:n_held_out])
    )
