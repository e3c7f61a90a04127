"""What a classifier said of every image, and the features under its last layer, by content hash."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.errors import StoreError
from weakspot.store import atomic
from weakspot.store.embeddings import AlignedMatrix, EmbeddingCache

LAYOUT_FILE = "layout.json"


@dataclass(frozen=True, kw_only=True)
class PredictionLayout:
    """How many probabilities and features a classifier gives for a sample."""

    n_classes: int
    n_features: int


class PredictionCache:
    """Probabilities and features of one classifier; both of a sample are stored in one step.

    Args:
        folder: where they are; made on first write.
        identity: id of the classifier.
    """

    def __init__(self, folder: Path, *, identity: str) -> None:
        self.folder = folder
        self.identity = identity
        self._rows = EmbeddingCache(folder, identity=identity)

    @property
    def layout(self) -> PredictionLayout | None:
        """Return what is stored for a sample, or None when nothing is."""
        path = self.folder / LAYOUT_FILE
        if not path.exists():
            return None
        found = atomic.read_json(path)
        n_classes, n_features = found.get("n_classes"), found.get("n_features")
        if not isinstance(n_classes, int) or not isinstance(n_features, int):
            raise atomic.damaged(path, "it does not say how many classes and features there are")
        return PredictionLayout(n_classes=n_classes, n_features=n_features)

    def keys(self) -> AnyArray:
        """Return the keys for which something is stored [n]; one may occur twice."""
        return self._rows.keys()

    def missing(self, keys: AnyArray) -> BoolArray:
        """Return for which keys [n] nothing is stored yet."""
        return self._rows.missing(keys)

    def append(
        self, keys: AnyArray, probabilities: FloatArray, features: FloatArray | None = None
    ) -> None:
        if not len(keys):
            return
        self._settle(
            PredictionLayout(
                n_classes=probabilities.shape[1],
                n_features=0 if features is None else features.shape[1],
            )
        )
        self._rows.append(
            keys,
            probabilities
            if features is None
            else np.hstack([probabilities, features]).astype(np.float32),
        )

    def compact(self) -> None:
        """Merge many small files into few large ones."""
        self._rows.compact()

    def probabilities(self, keys: AnyArray, columns: IntArray) -> AlignedMatrix | None:
        """Return probabilities [n, c] in the order of keys, their columns in the given order; None if nothing is stored."""
        return self._align(keys, "probabilities", columns)

    def features(self, keys: AnyArray) -> AlignedMatrix | None:
        """Return features [n, d] in the order of keys; None if the classifier gives none."""
        layout = self.layout
        if layout is None or not layout.n_features:
            return None
        return self._align(
            keys, "features", np.arange(layout.n_classes, layout.n_classes + layout.n_features)
        )

    def is_complete(self, keys: AnyArray, columns: IntArray) -> bool:
        """Return whether the matrices for these keys are there and lack nothing; cheap."""
        found = self._rows.matrix(keys, name="probabilities", columns=columns)
        return found is not None and found.n_missing == 0

    def refresh(self, keys: AnyArray, columns: IntArray) -> None:
        layout = self.layout
        if layout is None:
            return
        width = layout.n_classes + layout.n_features
        if layout.n_features:
            own = np.arange(layout.n_classes, width)
            self._rows.materialise(keys, width=width, name="features", columns=own)
        self._rows.materialise(keys, width=width, name="probabilities", columns=columns)

    def _align(self, keys: AnyArray, name: str, columns: IntArray) -> AlignedMatrix | None:
        layout = self.layout
        if layout is None:
            return None
        found = self._rows.matrix(keys, name=name, columns=columns)
        if found is None:
            found = self._rows.materialise(
                keys, width=layout.n_classes + layout.n_features, name=name, columns=columns
            )
        return found

    def _settle(self, given: PredictionLayout) -> None:
        stored = self.layout
        if stored is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic.write_json(
                self.folder / LAYOUT_FILE,
                {"n_classes": given.n_classes, "n_features": given.n_features},
            )
        elif stored != given:
            raise StoreError(
                f"{self.identity!r} now gives {given.n_classes} probabilities and {given.n_features} features a sample, "
                f"but gave {stored.n_classes} and {stored.n_features} before under the same id.",
                where=str(self.folder),
                fix="Give the changed classifier another id, or delete this folder.",
            )
