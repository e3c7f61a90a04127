"""A model that says something of pictures, batch by batch, wherever an engine has a worker; a bad picture costs its own text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PIL import Image

from weakspot.app.model_answers import failing_as_model_error, storable
from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.errors import MissingExtraError, ModelError, UnavailableError
from weakspot.core.roles import Engine
from weakspot.embed.encode import Loaded, LoadedPicture, PictureRequest, load_picture, positions_of, sorted_out

MOST_FAILURES_IN_A_ROW = 16
MOST_FAILURES_AT_FIRST = 2

Speak = Callable[[Sequence[Image.Image]], list[str]]


@dataclass(frozen=True, kw_only=True, eq=False)
class SpokenBatch:
    """What was said of some pictures.

    Args:
        positions: numbers of the pictures that have a text [n].
        texts: what was said of them.
        n_requests: pictures that were asked about, whether they have a text or not.
        failure: why the model is not asked any more; None if it can be.
    """

    positions: IntArray
    texts: tuple[str, ...]
    n_requests: int
    failure: ModelError | None = None


class SpeakWork:
    """Requests to texts. A batch that fails is asked about picture by picture; too many failures in a row are one of the model.

    A model that has failed is not asked again, also not about batches that an engine had given out before it knew.

    Args:
        who: how the model is called in messages.
        speak: asks it about some pictures.
        picture_side: shortest picture side that it can use; None for full size.
        has_spoken: whether it has ever said anything; one that has not is given up sooner.
    """

    def __init__(self, *, who: str, speak: Speak, picture_side: int | None, has_spoken: bool) -> None:
        self._who = who
        self._speak = speak
        self._picture_side = picture_side
        self._has_spoken = has_spoken
        self._n_bad_in_a_row = 0
        self._failure: ModelError | None = None

    def prepare(self, item: PictureRequest) -> Loaded:
        """Return the pixels of one picture, or why there are none."""
        return load_picture(item, _pixels, self._picture_side)

    def run(self, ready: Sequence[Loaded]) -> SpokenBatch:
        """Return the texts of those that could be read and spoken of."""
        loaded, _ = sorted_out(ready)
        spoken: list[tuple[LoadedPicture, str]] = []
        if self._failure is None and loaded:
            self._failure = self._speak_of(loaded, spoken)
        texts = tuple(text for _, text in spoken)
        positions = positions_of([picture for picture, _ in spoken])
        return SpokenBatch(positions=positions, texts=texts, n_requests=len(ready), failure=self._failure)

    def _speak_of(self, loaded: list[LoadedPicture], spoken: list[tuple[LoadedPicture, str]]) -> ModelError | None:
        """Add pictures with their texts as far as the model has some, and return why it must not be asked any more."""
        try:
            spoken += zip(loaded, self._texts(loaded), strict=True)
        except ModelError as error:
            return error if _is_gone(error) else self._one_by_one(loaded, spoken)
        return None

    def _one_by_one(self, loaded: list[LoadedPicture], spoken: list[tuple[LoadedPicture, str]]) -> ModelError | None:
        for picture in loaded:
            try:
                spoken += zip([picture], self._texts([picture]), strict=True)
            except ModelError as error:
                self._n_bad_in_a_row += 1
                most = MOST_FAILURES_IN_A_ROW if self._has_spoken else MOST_FAILURES_AT_FIRST
                if self._n_bad_in_a_row >= most or _is_gone(error):
                    return error
        return None

    def _texts(self, loaded: list[LoadedPicture]) -> list[str]:
        pictures = [Image.fromarray(picture.array) for picture in loaded]
        with failing_as_model_error(self._who):
            given = self._speak(pictures)
            if len(given) != len(pictures):
                raise ModelError(f"The {self._who} gave {len(given)} texts for {len(pictures)} pictures.")
            texts = [storable(text).strip() for text in given]
        self._has_spoken, self._n_bad_in_a_row = True, 0
        return texts


def speak_of_pictures(  # noqa: PLR0913 - the model, what it is asked about, and where
    requests: Iterable[PictureRequest],
    speak: Speak,
    *,
    who: str,
    picture_side: int | None,
    has_spoken: bool,
    engine: Engine,
    batch_size: int,
) -> Iterator[SpokenBatch]:
    """Yield texts batch by batch, in the order of requests; pictures that cannot be read or spoken of are left out.

    Args:
        requests: the pictures.
        speak: asks the model about some pictures; sent to other processes where the engine has some.
        who: how the model is called in messages.
        picture_side: shortest picture side that it can use; None for full size.
        has_spoken: whether it has ever said anything.
        engine: where it is asked.
        batch_size: pictures a call.
    """
    build = partial(SpeakWork, who=who, speak=speak, picture_side=picture_side, has_spoken=has_spoken)
    yield from engine.map_batches(build, requests, batch_size=batch_size, lost=_lost_batch)


def _lost_batch(_request: PictureRequest) -> SpokenBatch:
    return SpokenBatch(positions=positions_of([]), texts=(), n_requests=1)


def _is_gone(error: ModelError) -> bool:
    return isinstance(error.__cause__, UnavailableError | MissingExtraError)


def _pixels(picture: Image.Image) -> AnyArray:
    return np.asarray(picture)
