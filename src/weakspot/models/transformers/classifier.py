"""Image classifiers of the transformers library, by name or from a folder."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.heads import Head
from weakspot.models.class_scores import (
    labels_in_order,
    parsed_class_names,
    parsed_score_kind,
    parsed_task,
    probe_images,
)
from weakspot.models.loading import LoadedOnce, reloaded, require_library
from weakspot.models.model_hash import model_id
from weakspot.models.preprocessing import (
    ImageFileSettings,
    plain_preprocessing,
    preprocessing_from,
    processor_call,
)
from weakspot.models.torch.device import declare_torchvision_operators, require_torch
from weakspot.models.torch.files import fill_layer
from weakspot.models.torch.network import (
    NetworkClassifier,
    NetworkSettings,
    TorchNetwork,
    make_network,
)
from weakspot.models.transformers.source import hub_is_off

PURPOSE = "transformers classifiers"
MULTI_LABEL = "multi_label_classification"
UNNAMED = "LABEL_"
IMAGE_FILES = ("preprocessor_config.json", "processor_config.json")
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")
PROBE_SIDE = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class _Images:
    prepare: Callable[[Image.Image], AnyArray]
    needed_side: int | None
    settings: Any


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
        images: what to prepare otherwise than the model's own processor does, see `ImageFileSettings`.
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
        **images: Unpack[ImageFileSettings],
    ) -> None:
        self._model = str(model)
        self._revision = revision
        self._given_names = parsed_class_names(class_names)
        self._given_task = None if task is None else parsed_task(task)
        self._scores = parsed_score_kind(scores)
        self._feature_layer = feature_layer
        self._device = device
        self._dtype = dtype
        self._image_settings = images

    @LoadedOnce
    def classifier_id(self) -> str:
        name = Path(self._model).name if self._is_folder else self._model
        network = self._network
        return model_id(
            "transformers",
            name,
            network.weights_hash,
            self._images.settings,
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
        return self._images.needed_side

    def prepare(self, image: Image.Image) -> AnyArray:
        return self._images.prepare(image)

    @property
    def _is_folder(self) -> bool:
        return Path(self._model).is_dir()

    @LoadedOnce
    def _library(self) -> Any:
        require_torch(PURPOSE)
        declare_torchvision_operators()
        return require_library("transformers", extra="hub", purpose=PURPOSE)

    @LoadedOnce
    def _module(self) -> Any:
        return self._fresh()

    def _fresh(self) -> Any:
        loader = self._library.AutoModelForImageClassification
        module, report = self._from_pretrained(loader, output_loading_info=True)
        missing = sorted(report.get("missing_keys", ()))
        if missing:
            raise ModelError(
                f"The model holds no trained classifier: {len(missing)} weights are missing, such as {missing[:3]}.",
                where=self._model,
                fix="Name a model that was trained to classify images.",
            )
        return module

    @LoadedOnce
    def _images(self) -> _Images:
        processor = self._processor()
        plain = plain_preprocessing(processor.to_dict(), where=self._model)
        if plain is None and not self._image_settings:
            return _Images(
                prepare=processor_call(processor), needed_side=None, settings=processor.to_dict()
            )
        wanted = preprocessing_from(
            self._image_settings, **({} if plain is None else plain.as_settings())
        )
        return _Images(
            prepare=wanted.apply, needed_side=wanted.needed_side, settings=wanted.as_settings()
        )

    def _processor(self) -> Any:
        loader = self._library.AutoImageProcessor
        is_first_form = int(self._library.__version__.partition(".")[0]) < 5  # noqa: PLR2004 - version 5 renamed the option
        return self._from_pretrained(
            loader, **({"use_fast": False} if is_first_form else {"backend": "pil"})
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
        return make_network(self._module, settings, probes=self._probes(), where=self._model)

    def _probes(self) -> list[AnyArray]:
        side = self.image_side or PROBE_SIDE
        return [self.prepare(image) for image in probe_images(side, side)]

    def named_tensors(self) -> Mapping[str, Any]:
        tensors: Mapping[str, Any] = self._fresh().state_dict()
        return tensors

    def _write_rows(self, rows: Head, layer: str, folder: Path) -> Path:
        module = self._check(self._fresh())
        fill_layer(module, layer, rows, where=self._model)
        with _without_progress_bars(self._library):
            module.save_pretrained(folder)
            if not self._is_folder:
                self._processor().save_pretrained(folder)
        for kept in IMAGE_FILES if self._is_folder else ():
            if (Path(self._model) / kept).is_file():
                shutil.copyfile(Path(self._model) / kept, folder / kept)
        return next(path for name in WEIGHT_FILES if (path := folder / name).is_file())

    def _read_back(self, path: Path) -> "TransformersClassifier":
        other: TransformersClassifier = reloaded(self, _model=str(path.parent), _revision=None)
        return other

    def _from_pretrained(self, loader: Any, **options: Any) -> Any:
        """Load from the folder or the hub's cache, and from the hub itself only if that is not enough and allowed."""
        options |= {"revision": self._revision, "trust_remote_code": False}
        with _without_progress_bars(self._library):
            try:
                return loader.from_pretrained(self._model, local_files_only=True, **options)
            except Exception as error:
                if self._is_folder or not isinstance(error, OSError):
                    raise ModelError(
                        f"transformers cannot load the model: {_first_line(error)}",
                        where=self._model,
                    ) from error
                if hub_is_off() is not None:
                    raise self._unavailable(f"the hub is off ({hub_is_off()})") from error
            try:
                return loader.from_pretrained(self._model, **options)
            except Exception as error:
                raise self._unavailable(_first_line(error)) from error

    def _unavailable(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"The model is not in the hub's cache and cannot be fetched: {reason}",
            where=self._model,
            fix="Check the name and the network, or give the folder of a copy.",
        )


@contextmanager
def _without_progress_bars(library: Any) -> Iterator[None]:
    switch = library.utils.logging
    was_on = switch.is_progress_bar_enabled()
    switch.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            switch.enable_progress_bar()


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0][:300]
