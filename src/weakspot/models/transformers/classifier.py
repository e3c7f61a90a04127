"""Image classifiers of the transformers library, by name or from a folder."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.models.class_scores import (
    labels_in_order,
    parsed_class_names,
    parsed_score_kind,
    parsed_task,
)
from weakspot.models.loading import LoadedOnce, reloaded
from weakspot.models.model_hash import model_id
from weakspot.models.preprocessing import (
    plain_preprocessing,
    preprocessing_from,
    processor_call,
)
from weakspot.models.torch.files import fill_layer
from weakspot.models.torch.network import (
    NetworkClassifier,
    NetworkSettings,
    TorchNetwork,
    make_network,
)
from weakspot.models.transformers.source import TransformersModel

MULTI_LABEL = "multi_label_classification"
UNNAMED = "LABEL_"
IMAGE_FILES = ("preprocessor_config.json", "processor_config.json")
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")


class TransformersClassifier(NetworkClassifier):
    """An image classifier of the transformers library. Code that comes with a model is never run.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        revision: branch, tag or commit on the hub.
        class_names: one name an output; by default the model's own.
        task: `single-label` or `multi-label`; by default what the model's configuration says.
        scores: whether the model gives `logits` or `probabilities`; `auto` sees for itself.
        feature_layer: name of the linear layer whose input is taken as features; by default the one that gives the scores.
        device: `cpu`, `cuda`, `cuda:1`, `mps` or `auto`.
        dtype: `float32`, `float16` or `bfloat16`.
        images: what to prepare otherwise than the model's own processor does, see `IMAGE_OPTIONS`.
    """

    def __init__(
        self,
        *,
        model: str | Path,
        revision: str | None = None,
        class_names: Sequence[str] | None = None,
        task: str | None = None,
        scores: str = "auto",
        feature_layer: str | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        **images: Any,
    ) -> None:
        self._hub = TransformersModel(model=str(model), revision=revision)
        self._given_names = parsed_class_names(class_names)
        self._given_task = None if task is None else parsed_task(task)
        self._scores = parsed_score_kind(scores)
        self._feature_layer = feature_layer
        self._device = device
        self._dtype = dtype
        self._image_settings = images

    @LoadedOnce
    def classifier_id(self) -> str:
        network = self._network
        return model_id(
            "transformers",
            self._hub.name,
            network.weights_hash,
            self._images[2],
            network.reader.kind,
            self._dtype,
        )

    @LoadedOnce
    def class_names(self) -> tuple[str, ...] | None:
        """The classes as given, or as the model names them; None where it only numbers them."""
        if self._given_names is not None:
            return self._given_names
        names = labels_in_order(self._module.config.id2label or {})
        return (
            None
            if names is None or all(name.startswith(UNNAMED) for name in names)
            else parsed_class_names(names)
        )

    @property
    def task(self) -> Task:
        if self._given_task is not None:
            return self._given_task
        return (
            Task.MULTI_LABEL
            if self._module.config.problem_type == MULTI_LABEL
            else Task.SINGLE_LABEL
        )

    @property
    def image_side(self) -> int | None:
        return self._images[1]

    def prepare(self, image: Image.Image) -> AnyArray:
        return self._images[0](image)

    @LoadedOnce
    def _module(self) -> Any:
        return self._fresh()

    def _fresh(self) -> Any:
        module, report = self._hub.load("AutoModelForImageClassification", output_loading_info=True)
        missing = sorted(report.get("missing_keys", ()))
        if missing:
            raise ModelError(
                f"The model holds no trained classifier: {len(missing)} weights are missing, such as {missing[:3]}.",
                where=self._hub.model,
                fix="Name a model that was trained to classify images.",
            )
        return module

    @LoadedOnce
    def _images(self) -> tuple[Callable[[Image.Image], AnyArray], int | None, dict[str, Any]]:
        """Return what prepares an image, the side it needs, and its settings."""
        processor = self._processor()
        plain = plain_preprocessing(processor.to_dict(), where=self._hub.model)
        if plain is None and not self._image_settings:
            return processor_call(processor), None, processor.to_dict()
        wanted = preprocessing_from(
            self._image_settings, **({} if plain is None else plain.as_settings())
        )
        return wanted.apply, wanted.needed_side, wanted.as_settings()

    def _processor(self) -> Any:
        return self._hub.load(
            "AutoImageProcessor",
            **({"use_fast": False} if self._hub.is_first_form else {"backend": "pil"}),
        )

    def _load_network(self) -> TorchNetwork:
        settings = NetworkSettings(
            class_names=self.class_names,
            task=self.task,
            scores=self._scores,
            feature_layer=self._feature_layer,
            device=self._device,
            dtype=self._dtype,
        )
        return make_network(self._module, settings, probes=self._probes(), where=self._hub.model)

    def named_tensors(self) -> Mapping[str, Any]:
        tensors: Mapping[str, Any] = self._fresh().state_dict()
        return tensors

    def _write_rows(self, rows: Head, layer: str, folder: Path) -> Path:
        module = self._check(self._fresh())
        fill_layer(module, layer, rows, where=self._hub.model)
        with self._hub.quiet():
            module.save_pretrained(folder)
            if not self._hub.is_folder:
                self._processor().save_pretrained(folder)
        for kept in IMAGE_FILES if self._hub.is_folder else ():
            if (Path(self._hub.model) / kept).is_file():
                shutil.copyfile(Path(self._hub.model) / kept, folder / kept)
        return next(path for name in WEIGHT_FILES if (path := folder / name).is_file())

    def _read_back(self, path: Path) -> "TransformersClassifier":
        other: TransformersClassifier = reloaded(
            self, _hub=replace(self._hub, model=str(path.parent), revision=None)
        )
        return other
