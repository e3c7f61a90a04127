"""A model that gives texts for images, wherever an engine has a worker; a bad image costs only its own text."""

from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import MissingExtraError, ModelError, UnavailableError
from weakspot.embed.encode import Answers
from weakspot.pipeline.models.answers import failing_as_model_error, storable

MOST_FAILURES_IN_A_ROW = 16
MOST_FAILURES_AT_FIRST = 2

Speak = Callable[[Sequence[Image.Image]], list[str]]


class TextModel:
    """Images to texts. A batch that fails is asked about image by image; too many failures in a row are one of the model.

    A model that has failed is not asked again, also not about batches that an engine had given out before it knew.

    Args:
        who: how the model is called in messages.
        speak: asks it about some images.
        image_side: shortest image side that it can use; None for full size.
        has_spoken: whether it has ever given a text; one that has not is given up sooner.
        batch_size: images per call.
    """

    def __init__(
        self,
        *,
        who: str,
        speak: Speak,
        image_side: int | None,
        has_spoken: bool,
        batch_size: int = 16,
    ) -> None:
        self.image_side = image_side
        self.batch_size = batch_size
        self._who = who
        self._speak = speak
        self._has_spoken = has_spoken
        self._n_bad_in_a_row = 0
        self._failure: ModelError | None = None

    def prepare(self, image: Image.Image) -> AnyArray:
        return np.asarray(image)

    def answer(self, prepared: Sequence[AnyArray]) -> Answers:
        """Return one column of texts, of those images that have one."""
        texts: dict[int, str] = {}
        if self._failure is None:
            self._failure = self._ask(prepared, texts)
        return Answers(
            places=np.array(list(texts), dtype=np.int64),
            columns=(np.array(list(texts.values()), dtype=object),),
            failure=self._failure,
        )

    def _ask(self, prepared: Sequence[AnyArray], texts: dict[int, str]) -> ModelError | None:
        try:
            texts.update(enumerate(self._texts(prepared)))
        except ModelError as error:
            return error if _is_gone(error) else self._ask_one_by_one(prepared, texts)
        return None

    def _ask_one_by_one(
        self, prepared: Sequence[AnyArray], texts: dict[int, str]
    ) -> ModelError | None:
        for place, array in enumerate(prepared):
            try:
                (texts[place],) = self._texts([array])
            except ModelError as error:
                self._n_bad_in_a_row += 1
                most = MOST_FAILURES_IN_A_ROW if self._has_spoken else MOST_FAILURES_AT_FIRST
                if self._n_bad_in_a_row >= most or _is_gone(error):
                    return error
        return None

    def _texts(self, prepared: Sequence[AnyArray]) -> list[str]:
        images = [Image.fromarray(array) for array in prepared]
        with failing_as_model_error(self._who):
            given = self._speak(images)
            if len(given) != len(images):
                raise ModelError(
                    f"The {self._who} gave {len(given)} texts for {len(images)} images."
                )
            texts = [storable(text).strip() for text in given]
        self._has_spoken, self._n_bad_in_a_row = True, 0
        return texts


def _is_gone(error: ModelError) -> bool:
    return isinstance(error.__cause__, UnavailableError | MissingExtraError)
