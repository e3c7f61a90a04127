"""What a captioner says of drawn pictures; without one, words that the embedder ranks."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.app.model_answers import failing_as_model_error, storable
from weakspot.core.arrays import FloatArray
from weakspot.core.errors import MissingExtraError, ModelError, UnavailableError
from weakspot.core.roles import Captioner, CompletesCaptions, ScoresCaptions
from weakspot.store.texts import TextCache, text_cache, text_keys

PICTURES_A_CALL = 8

PictureOf = Callable[[str], Image.Image]


class DrawnCaptions:
    """Captions of pictures by content hash, each asked for once and kept in a folder.

    A captioner that fails on a batch is asked picture by picture; one that fails on a picture leaves it without a caption.

    Args:
        captioner: pictures to words.
        picture: a content hash to its picture.
        folder: where texts are kept.
    """

    def __init__(self, captioner: Captioner, picture: PictureOf, folder: Path) -> None:
        self._captioner = captioner
        self._picture = picture
        self._folder = folder
        self._caches: dict[str, TextCache] = {}

    @property
    def source(self) -> str:
        """Return who captions."""
        return self._captioner.captioner_id

    def completions(self, keys: Sequence[str], *, beginning: str) -> list[str]:
        """Return what follows the beginning, one text a picture; empty where the captioner says nothing.

        Raises:
            ModelError: if the captioner says nothing of any picture.
        """
        cache = self._cache(beginning)
        packed = text_keys(keys)
        missing = list(dict.fromkeys(key for key, is_new in zip(keys, cache.missing(packed).tolist(), strict=True) if is_new))
        for start in range(0, len(missing), PICTURES_A_CALL):
            part = missing[start : start + PICTURES_A_CALL]
            said = self._said(part, beginning)
            known = [(key, text) for key, text in zip(part, said, strict=True) if text is not None]
            cache.append(text_keys([key for key, _ in known]), [text for _, text in known])
        return [text or "" for text in cache.texts(packed)]

    def likelihoods(self, keys: Sequence[str], captions: Sequence[str]) -> FloatArray | None:
        """Return log P(caption | picture) [n, m], or None if the captioner cannot say."""
        captioner = self._captioner
        if not isinstance(captioner, ScoresCaptions) or not len(keys) or not len(captions):
            return None
        parts = [keys[start : start + PICTURES_A_CALL] for start in range(0, len(keys), PICTURES_A_CALL)]
        with failing_as_model_error("captioner"):
            found = [captioner.log_likelihoods([self._picture(key) for key in part], captions) for part in parts]
        return np.concatenate(found).astype(np.float32)

    def _cache(self, beginning: str) -> TextCache:
        if beginning not in self._caches:
            with failing_as_model_error("captioner"):
                self._caches[beginning] = text_cache(self._folder, f"{self._captioner.captioner_id} goes on from {beginning}")
        return self._caches[beginning]

    def _said(self, keys: Sequence[str], beginning: str) -> list[str | None]:
        try:
            return list(self._asked(keys, beginning))
        except ModelError as error:
            if isinstance(error.__cause__, UnavailableError | MissingExtraError):
                raise
            found = [self._asked_alone(key, beginning) for key in keys]
            if all(text is None for text in found):
                raise
            return found

    def _asked_alone(self, key: str, beginning: str) -> str | None:
        try:
            return self._asked([key], beginning)[0]
        except ModelError:
            return None

    def _asked(self, keys: Sequence[str], beginning: str) -> list[str]:
        pictures, captioner = [self._picture(key) for key in keys], self._captioner
        with failing_as_model_error("captioner"):
            if isinstance(captioner, CompletesCaptions):
                texts = captioner.complete(pictures, beginning=beginning)
            else:
                texts = captioner.caption(pictures)
            if len(texts) != len(pictures):
                raise ModelError(f"The captioner gave {len(texts)} texts for {len(pictures)} pictures.")
            return [storable(text).strip() for text in texts]
