"""Teach phrases their embeddings in closed form, beside a learnt projection, and say where the embeddings come from."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.registry import part_class
from weakspot.core.roles import Embedder
from weakspot.models.text_side import EncodeSentences, TextMemory, TextProjection, bare_phrase
from weakspot_lab.align.evaluation import class_embeddings, phrasings

PHRASES_PER_CALL = 1024
TEXT_TOWER_FILE = "text.onnx"


@dataclass(frozen=True, kw_only=True)
class MemorySettings:
    """How known phrases are remembered.

    Args:
        sharpness: how fast a phrase fades with its distance.
        share: weight of the projection beside the memory.
        ridge: on the diagonal; larger is smoother.
    """

    sharpness: float = 6.0
    share: float = 0.4
    ridge: float = 0.05


def fit_memory(
    taught: Mapping[str, FloatArray],
    *,
    encode: EncodeSentences,
    projection: TextProjection,
    lent: Mapping[str, FloatArray] | None = None,
    lent_weight: float = 0.15,
    settings: MemorySettings | None = None,
) -> TextMemory:
    """Solve for a memory in which every taught phrase has its embedding.

    Args:
        taught: phrase -> unit embedding [d] in the centred image space.
        encode: phrases to sentence embeddings.
        projection: the learnt projection beside it.
        lent: phrases with less certain embeddings: they lend to their neighbours, and are not used as they are.
        lent_weight: their weight.
        settings: how phrases are remembered.
    """
    chosen = settings or MemorySettings()
    known = {bare_phrase(phrase): row for phrase, row in taught.items()}
    weak = {bare_phrase(phrase): row for phrase, row in (lent or {}).items()}
    weak = {phrase: row for phrase, row in weak.items() if phrase not in known}
    phrases = [*known, *weak]
    if not phrases:
        raise DataError("No phrase was taught.", fix="Give words with their embeddings.")
    targets = unit_rows(np.stack([*known.values(), *weak.values()]))
    sentences = np.concatenate([encode(chunk) for chunk in _chunks(phrases)])
    mean = sentences.mean(axis=0)
    centres = unit_rows(sentences - mean)
    weights = np.repeat([1.0, lent_weight], [len(known), len(weak)])
    gram = np.exp(chosen.sharpness * (centres @ centres.T - 1))
    gram[np.diag_indices(len(gram))] += (chosen.ridge / weights).astype(np.float32)
    rest = targets - chosen.share * projection.apply(sentences)
    return TextMemory(
        phrases=(*known, *[""] * len(weak)),
        mean=mean.astype(np.float32),
        centres=centres,
        taught=np.linalg.solve(gram, rest).astype(np.float32),
        sharpness=chosen.sharpness,
        share=chosen.share,
        ridge=chosen.ridge,
    )


def centred_words(embeddings: FloatArray) -> FloatArray:
    """Take the mean over all words away from true text embeddings [k, d], as `TextProjection.centre` does for images."""
    rows = unit_rows(embeddings)
    return unit_rows(rows - rows.mean(axis=0))


def projected(
    names: Sequence[str], encode: EncodeSentences, projection: TextProjection
) -> FloatArray:
    """Return what a projection makes of names [k, d], over several phrasings of each."""
    phrases = [phrase for name in names for phrase in phrasings(name)]
    made = [projection.apply(encode(chunk)) for chunk in _chunks(phrases)]
    return class_embeddings(np.concatenate(made), len(names))


def combined(
    nouns: Mapping[str, FloatArray], additions: Mapping[str, FloatArray], template: str
) -> dict[str, FloatArray]:
    """Teach phrases of a noun and something said of it.

    Args:
        nouns: noun -> embedding [d].
        additions: word -> what it adds to any noun [d].
        template: how both are said, with `{noun}` and `{word}`.
    """
    return {
        template.format(noun=noun, word=word): unit_rows((own + added)[None])[0]
        for noun, own in nouns.items()
        for word, added in additions.items()
    }


def read_words(path: Path) -> list[dict[str, str]]:
    """Read words from JSON lines with `text` (and `source`, `split`), or one a line."""
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise DataError(f"Words cannot be read: {error}.", where=str(path)) from error
    words = [json.loads(line) if line.startswith("{") else {"text": line} for line in lines]
    wrong = [number for number, word in enumerate(words, start=1) if not word.get("text")]
    if wrong:
        raise DataError("A line has no `text`.", where=f"{path}, line {wrong[0]}")
    return words


def read_word_embeddings(path: Path, n_words: int) -> FloatArray:
    """Read true text embeddings [k, d] of words in the same order."""
    try:
        rows = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"Embeddings cannot be read: {error}.", where=str(path)) from error
    if rows.ndim != 2 or len(rows) != n_words:
        raise DataError(
            "There must be one embedding for every word.",
            where=str(path),
            given=(rows.shape, n_words),
        )
    return np.asarray(rows, dtype=np.float32)


def embed_words(words: Sequence[str], tower: str) -> FloatArray:
    """Return true text embeddings [k, d] from a CLIP text tower.

    Args:
        words: what to embed.
        tower: folder of ONNX towers, folder of a transformers model, or its name on the hub.
    """
    folder = Path(tower)
    is_onnx = (folder / TEXT_TOWER_FILE).is_file()
    name, options = (
        ("onnx-pair", {"folder": tower}) if is_onnx else ("transformers", {"model": tower})
    )
    embedder: Embedder = part_class("embedders", name)(**options)
    if not embedder.has_text:
        raise ConfigError("This model has no text tower.", given=tower)
    return unit_rows(np.concatenate([embedder.embed_texts(chunk) for chunk in _chunks(words)]))


def _chunks(texts: Sequence[str]) -> Iterable[Sequence[str]]:
    for start in range(0, len(texts), PHRASES_PER_CALL):
        yield texts[start : start + PHRASES_PER_CALL]
