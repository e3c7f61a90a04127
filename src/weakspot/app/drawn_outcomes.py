"""Drawn pictures and what the models of a project say of them, each asked once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.app.classifier_work import checked_output, classify_pictures
from weakspot.app.config import Settings
from weakspot.app.embedding import KnowsVectors
from weakspot.app.preparation import Prepared
from weakspot.app.remembered_vectors import RememberingEmbedder
from weakspot.app.studio import Studio, studio_for
from weakspot.app.vector_classifying import reads_vectors
from weakspot.app.wiring import engine_elsewhere
from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.drawn import DrawnPicture, PictureOrder
from weakspot.core.errors import ConfigError, DataError, StoreError
from weakspot.core.roles import Classifier, Embedder, Engine, ImageGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.embed.encode import PictureRequest, checked_rows, count_reasons
from weakspot.ingest.outcomes import class_columns
from weakspot.store.keyed_rows import KeyedRows
from weakspot.store.names import folder_name
from weakspot.store.vectors import VectorCache

PICTURES_A_CALL = 16
FEWEST_KEYS = 256
"""Fewer pictures are classified here: a model would have to be loaded in every worker for them."""


class DrawnOutcomes:
    """Draws pictures, and gives probabilities and vectors of those that passed the gate by content hash; kept in a folder.

    Args:
        studio: draws.
        prepared: the project's classifier, embedder and classes.
        folder: where the numbers are kept.
        engine: where many pictures at once are classified; None: here.

    Raises:
        ConfigError: if the project has no classifier that can be asked about new pictures.
        DataError: if samples can have several labels, for which failures of a drawn picture have no meaning yet.
    """

    def __init__(self, studio: Studio, prepared: Prepared, folder: Path, *, engine: Engine | None = None) -> None:
        if prepared.classifier is None:
            raise ConfigError(
                "Without a classifier nothing can be said of new pictures.",
                where="[classifier]",
                fix="Configure one: predictions alone are not enough here.",
            )
        if prepared.samples.dataset.task is Task.MULTI_LABEL:
            raise DataError("Failures are searched for with generated pictures in single-label tasks only.")
        self._classifier: Classifier = prepared.classifier
        self._given_embedder = prepared.embedder
        self._dataset = prepared.samples.dataset
        self._folder = folder
        self._studio = studio
        self._engine = engine
        self._kept: dict[str, DrawnPicture] = {}

    @classmethod
    def of(
        cls, generator: ImageGenerator, prepared: Prepared, folder: Path, *, settings: Settings, progress: Progress = no_progress
    ) -> "DrawnOutcomes":
        """Return outcomes with a studio as the settings want it; what its gate has embedded is not embedded again."""
        embedder = prepared.embedder
        if embedder is not None and not isinstance(embedder, KnowsVectors):
            embedder = RememberingEmbedder(embedder=embedder)
        names = prepared.samples.dataset.class_names
        studio = studio_for(settings, generator, folder, embedder=embedder, class_names=names, progress=progress)
        return cls(studio, replace(prepared, embedder=embedder), folder, engine=engine_elsewhere(settings))

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return the classes in the order of the probability columns."""
        return self._dataset.class_names

    @property
    def tally(self) -> dict[str, int]:
        """Return how many pictures of this generator were kept, and how many each gate rejected."""
        return self._studio.tally()

    @property
    def has_vectors(self) -> bool:
        """Return whether the project's embedder can take new pictures."""
        return self._given_embedder is not None and not isinstance(self._given_embedder, KnowsVectors)

    def draw(self, orders: Sequence[PictureOrder]) -> list[DrawnPicture]:
        """Return what came of every order; of those that are kept, models can be asked from now on.

        Raises:
            RefusedPromptError: if the generator cannot draw what a prompt says.
        """
        drawn = self._studio.draw(orders)
        self._kept |= {one.content_hash: one for one in drawn if one.is_kept}
        return drawn

    def picture(self, key: str) -> Image.Image:
        """Return a picture that was drawn."""
        return self._studio.picture(self._kept[key])

    def probabilities(self, keys: Sequence[str]) -> FloatArray:
        """Return what the classifier says of some pictures [n, c]."""
        if not len(keys):
            return np.zeros((0, len(self.class_names)), dtype=np.float32)
        found = self._outcomes.rows(keys, self._classified)
        return found[:, self._columns(found.shape[1])]

    def vectors(self, keys: Sequence[str]) -> FloatArray:
        """Return unit vectors of some pictures [n, d]."""
        if not len(keys):
            return np.zeros((0, self._embedder.dimension), dtype=np.float32)
        return self._vectors.rows(keys, self._embedded)

    def flush(self) -> None:
        """Write what is only in memory."""
        for name in ("_outcomes", "_vectors"):
            if name in self.__dict__:
                self.__dict__[name].flush()

    @property
    def _embedder(self) -> Embedder:
        if self._given_embedder is None or not self.has_vectors:
            raise ConfigError(
                "Vectors of new pictures are needed, and the project's embedder cannot make any.",
                where="[embedder]",
                fix="Configure an embedder of pictures.",
            )
        return self._given_embedder

    @cached_property
    def _outcomes(self) -> KeyedRows:
        return self._rows("outcomes", self._classifier.classifier_id)

    @cached_property
    def _vectors(self) -> KeyedRows:
        return self._rows("vectors", self._embedder.encoder_id)

    def _rows(self, kind: str, identity: str) -> KeyedRows:
        return KeyedRows(VectorCache(self._folder / kind / folder_name(identity), identity=identity))

    def _columns(self, n_columns: int) -> IntArray:
        names, where = self._classifier.class_names, self._classifier.classifier_id
        return class_columns(self._dataset, names, n_columns=n_columns, classifier_id=where)

    def _classified(self, keys: Sequence[str]) -> FloatArray:
        if reads_vectors(self._classifier):
            return checked_output(self._classifier, list(self.vectors(keys))).probabilities
        if self._engine is not None and len(keys) >= FEWEST_KEYS:
            return self._said_elsewhere(keys, self._engine)
        return self._in_parts(keys, self._said)

    def _said_elsewhere(self, keys: Sequence[str], engine: Engine) -> FloatArray:
        places = [self._studio.place(self._kept[key]) for key in keys]
        requests = [PictureRequest(position=number, location=str(place)) for number, place in enumerate(places)]
        batches = list(classify_pictures(requests, self._classifier, engine=engine, batch_size=PICTURES_A_CALL))
        lost = [picture for batch in batches for picture in batch.unreadable]
        if lost:
            raise StoreError(f"Drawn pictures cannot be read: {count_reasons(lost)}.", where=lost[0].location)
        return np.concatenate([batch.output.probabilities for batch in batches if batch.output is not None])

    def _said(self, pictures: Sequence[Image.Image]) -> FloatArray:
        return checked_output(self._classifier, [self._classifier.prepare(picture) for picture in pictures]).probabilities

    def _embedded(self, keys: Sequence[str]) -> FloatArray:
        embedder = self._embedder

        def embed(pictures: Sequence[Image.Image]) -> FloatArray:
            made = embedder.embed_prepared([embedder.prepare(picture) for picture in pictures])
            return checked_rows(made, len(pictures), where=embedder.encoder_id)

        return self._in_parts(keys, embed)

    def _in_parts(self, keys: Sequence[str], ask: Callable[[Sequence[Image.Image]], FloatArray]) -> FloatArray:
        starts = range(0, len(keys), PICTURES_A_CALL)
        return np.concatenate([ask([self.picture(key) for key in keys[start : start + PICTURES_A_CALL]]) for start in starts])
