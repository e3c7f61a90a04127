"""How well a text side tells images by words: one area under the curve a word, on images of which it is known whether the word is true."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from weakspot.core.arrays import BoolArray, FloatArray
from weakspot.core.assistants import MIN_AREA, EmbedTexts
from weakspot.core.roles import Embedder
from weakspot.models.text_side import bare_phrase
from weakspot_lab.align.evaluation import area_under_curve

MIN_IMAGES = 10
WORST_NAMED = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class ToldImages:
    """Images of which it is known what is true of them.

    Args:
        on: what they are, as the card says it.
        embeddings: of the images [n, d].
        truths: word -> images of which it is true [n].
        compared: word -> images that are compared [n]; a word that is not here is compared on all.
        fewest: images of which a word must be true to be measured.
    """

    on: str
    embeddings: FloatArray
    truths: Mapping[str, BoolArray]
    compared: Mapping[str, BoolArray] = field(default_factory=dict)
    fewest: int = MIN_IMAGES


@dataclass(frozen=True, kw_only=True)
class WordFigure:
    """What was measured of a word.

    Args:
        word: as it is said.
        area: area under the curve.
        n_true: images of which it is true.
        on: what the images are.
    """

    word: str
    area: float
    n_true: int
    on: str


def measure_words(
    sources: Iterable[ToldImages], embed: EmbedTexts, words: Sequence[str] | None = None
) -> dict[str, list[WordFigure]]:
    """Return what every source says of words, in the order of the sources.

    Args:
        sources: images that took no part in teaching.
        embed: the text side.
        words: which words; None for all that a source can tell.
    """
    wanted = None if words is None else {bare_phrase(word): word for word in words}
    found: dict[str, list[WordFigure]] = {}
    for source in sources:
        for said, is_true in source.truths.items():
            word = said if wanted is None else wanted.get(bare_phrase(said), "")
            among = source.compared.get(said, np.ones(len(is_true), dtype=np.bool_))
            n_true = int((is_true & among).sum())
            if word and n_true >= source.fewest and n_true < among.sum():
                scores = source.embeddings[among] @ embed([word])[0]
                area = area_under_curve(scores, is_true[among])
                figure = WordFigure(word=word, area=area, n_true=n_true, on=source.on)
                found.setdefault(word, []).append(figure)
    return found


def embed_images(images: Iterable[Image.Image], embedder: Embedder) -> FloatArray:
    """Return embeddings [n, d] of images, one after the other."""
    rows = [embedder.embed_prepared([embedder.prepare(image)])[0] for image in images]
    return np.asarray(np.stack(rows), dtype=np.float32)


def card_rows(
    words: Sequence[str],
    figures: Mapping[str, Sequence[WordFigure]],
    *,
    taught: Callable[[str], str] = lambda _: "",
    trust: Mapping[str, float] | None = None,
) -> list[dict[str, object]]:
    """Return one row a word for the card: the last figure counts, because sources come from the least to the most exact.

    Args:
        words: every word that may be said.
        figures: what was measured.
        taught: how a word was taught.
        trust: how well the text side knows words.
    """
    rows: list[dict[str, object]] = []
    for word in words:
        own = list(figures.get(word, ()))
        counts = own[-1] if own else None
        rows.append(
            {
                "word": word,
                "auc": None if counts is None else round(counts.area, 4),
                "n": 0 if counts is None else counts.n_true,
                "on": "" if counts is None else counts.on,
                "also": [f"{one.area:.2f} on {one.n_true} of {one.on}" for one in own[:-1]],
                "taught": taught(word),
                "trust": None if trust is None else round(float(trust[word]), 3),
                "may_be_said": counts is not None and counts.area >= MIN_AREA,
            }
        )
    return rows


def card_page(title: str, rows: Sequence[Mapping[str, object]], weak: Sequence[str] = ()) -> str:
    """Return the card as Markdown; its first lines name what the text side is bad at.

    Args:
        title: whose words.
        rows: see `card_rows`.
        weak: further weaknesses, in sentences.
    """
    said = [row for row in rows if row["may_be_said"]]
    below = sorted(
        (row for row in rows if row["auc"] is not None and not row["may_be_said"]),
        key=lambda row: float(str(row["auc"])),
    )
    unmeasured = [str(row["word"]) for row in rows if row["auc"] is None]
    worst = ", ".join(
        f"{row['word']} ({float(str(row['auc'])):.2f})" for row in below[:WORST_NAMED]
    )
    areas = ", ".join(f"{row['word']} {float(str(row['auc'])):.2f}" for row in below)
    lines = [
        f"# {title}",
        "",
        f"What it is still bad at: {worst or 'nothing that was measured'}. "
        f"These and {max(len(below) - WORST_NAMED, 0)} more are below {MIN_AREA:.2f} and never said.",
        *weak,
        f"{len(said)} of {len(rows)} words may be said: each has a held-out area under the curve of at least {MIN_AREA:.2f}. "
        f"{len(below)} are below it, {len(unmeasured)} could not be measured; neither are said unless a person gives them.",
        "",
        "| measured on | words that may be said, best first |",
        "|---|---|",
    ]
    best = sorted(said, key=lambda row: -float(str(row["auc"])))
    for source in dict.fromkeys(str(row["on"]) for row in said):
        words = ", ".join(str(row["word"]) for row in best if row["on"] == source)
        lines.append(f"| {source} | {words} |")
    lines += ["", f"Measured, and not said: {areas or 'none'}."]
    lines += ["", f"Not measured, so never said of itself: {', '.join(unmeasured) or 'none'}.", ""]
    return "\n".join(lines)
