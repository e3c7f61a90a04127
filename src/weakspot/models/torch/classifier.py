"""Torch modules as classifiers: in memory, as TorchScript, as weights with a factory; and those of the timm library."""

import copy
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.heads import Head
from weakspot.models.class_scores import (
    parsed_class_names,
    parsed_score_kind,
    parsed_task,
)
from weakspot.models.files import PlainModel
from weakspot.models.loading import LoadedOnce, model_id, reloaded, require_library, settings_hash
from weakspot.models.preprocessing import (
    RESAMPLES,
    Preprocessing,
    preprocessing_from,
)
from weakspot.models.torch.network import (
    NetworkSettings,
    PreparedClassifier,
    TorchNetwork,
    make_network,
)
from weakspot.models.torch.runtime import (
    PURPOSE,
    SAFETENSORS,
    declare_torchvision_operators,
    fill,
    fill_layer,
    is_script,
    load_module,
    load_script,
    load_state,
    quiet_scripts,
    refuse_shared,
    require_torch,
    save_script,
    save_tensors,
    with_layer,
)


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Where a module comes from."""

    module: Any
    path: Path | None
    factory: str | None
    arguments: Mapping[str, Any] | None
    folder: str | Path | None

    @property
    def name(self) -> str:
        return self.path.name if self.path is not None else type(self.module).__name__

    @property
    def is_script(self) -> bool:
        if self.path is not None:
            return is_script(self.path)
        return isinstance(self.module, require_torch(PURPOSE).jit.ScriptModule)

    def load(self) -> Any:
        if self.path is not None:
            return load_module(
                self.path, factory=self.factory, arguments=self.arguments, folder=self.folder
            )
        return _own_copy(self.module)


class TorchClassifier(PreparedClassifier):
    """A torch module, always in evaluation mode and without gradients.

    A module in memory is copied, so the caller's own stays as it is. The features are what the last linear layer sees.

    Args:
        module: a `torch.nn.Module` in memory; or
        path: a TorchScript file, or weights as .safetensors (or a plain state dict in .pt), which need a factory.
        factory: `package.module:function` that builds the module for weights.
        arguments: keyword arguments of the factory.
        folder: where the factory's module is looked for first.
        class_names: one name an output.
        task: `single-label` or `multi-label`.
        scores: whether the module gives `logits` or `probabilities`; `auto` sees for itself.
        feature_layer: name of the linear layer whose input is taken as features; by default the one that gives the scores.
        device: `cpu`, `cuda`, `cuda:1`, `mps` or `auto`.
        dtype: `float32`, `float16` or `bfloat16`.
        images: how images are prepared, see `IMAGE_OPTIONS`; `image_side` is needed, and pixels are scaled to 0 to 1 and
            not normalised by default.
    """

    def __init__(
        self,
        *,
        module: Any = None,
        path: str | Path | None = None,
        factory: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        class_names: Sequence[str] | None = None,
        task: str = "single-label",
        scores: str = "auto",
        feature_layer: str | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        **images: Any,
    ) -> None:
        if (module is None) == (path is None):
            raise ConfigError(
                "Give either a module or the path of a model file.", where="classifier settings"
            )
        self._source = _Source(
            module=module,
            path=None if path is None else Path(path),
            factory=factory,
            arguments=arguments,
            folder=folder,
        )
        self._settings = NetworkSettings(
            class_names=parsed_class_names(class_names),
            task=parsed_task(task),
            scores=parsed_score_kind(scores),
            feature_layer=feature_layer,
            device=device,
            dtype=dtype,
        )
        self._preprocessing: Preprocessing = preprocessing_from(images)

    @LoadedOnce
    def classifier_id(self) -> str:
        shown = (
            settings_hash(str(self._network.runner.module))
            if self._source.path is None
            else self._source.factory
        )
        return model_id(
            "torch",
            self._source.name,
            self._network.weights_hash,
            shown,
            self._preprocessing.as_settings(),
            self._network.reader.kind,
            self._settings.task,
            self._settings.dtype,
        )

    @property
    def preprocessing(self) -> Preprocessing:
        """How images become what the network takes."""
        return self._preprocessing

    def plain_model(self) -> PlainModel | None:
        path = self._source.path
        if path is None or not self._source.is_script or self._settings.dtype != "float32":
            return None
        return PlainModel(
            kind="torchscript",
            path=path,
            preprocessing=self._preprocessing,
            class_names=self._settings.class_names,
            has_one_score=self._network.reader.is_single,
        )

    def _load_network(self) -> TorchNetwork:
        return make_network(
            self._source.load(), self._settings, probes=self._probes(), where=self._source.name
        )

    def named_tensors(self) -> Mapping[str, Any]:
        path = self._source.path
        tensors: Mapping[str, Any] = (
            load_state(path) if path and not is_script(path) else self._source.load().state_dict()
        )
        return tensors

    def _write_rows(self, rows: Head, layer: str, folder: Path) -> Path:
        module, path, where = (
            self._check(self._source.load()),
            self._source.path,
            self._source.name,
        )
        stem = f"{Path(where).stem}_repaired"
        refuse_shared(module, layer, where=where)
        if self._source.is_script:
            fill_layer(module, layer, rows, where=where)
            return save_script(folder / f"{stem}{path.suffix if path else '.pt'}", module, path)
        tensors = with_layer(self.named_tensors(), layer, rows, where=where)
        suffixes = dict.fromkeys((path.suffix if path else SAFETENSORS, SAFETENSORS))
        written = [save_tensors(folder / f"{stem}{suffix}", tensors, path) for suffix in suffixes]
        return written[0]

    def _read_back(self, path: Path) -> "TorchClassifier":
        if self._source.path is not None or self._source.is_script:
            return self._with_source(replace(self._source, module=None, path=path))
        module = self._source.load()
        fill(module, load_state(path), where=path.name)
        return self._with_source(replace(self._source, module=module))

    def _with_source(self, source: _Source) -> "TorchClassifier":
        other: TorchClassifier = reloaded(self, _source=source)
        return other


def _own_copy(module: Any) -> Any:
    torch = require_torch(PURPOSE)
    if not isinstance(module, torch.nn.Module):
        raise ConfigError(
            "This is no torch.nn.Module.", where="module", given=type(module).__name__
        )
    try:
        if not isinstance(module, torch.jit.ScriptModule):
            return copy.deepcopy(module)
        stream = io.BytesIO()
        with quiet_scripts():
            torch.jit.save(module, stream)
    except (RuntimeError, TypeError) as error:
        raise ModelError(
            "The module cannot be copied.",
            where="module",
            given=type(module).__name__,
            fix="Export it to a file.",
        ) from error
    stream.seek(0)
    return load_script(stream)


TIMM_PURPOSE = "timm classifiers"


class TimmClassifier(PreparedClassifier):
    """An image classifier of the timm library.

    Args:
        model: name in timm, `resnet50.a1_in1k` or `hf-hub:organisation/model`.
        checkpoint: weights of one's own as .safetensors (or a plain state dict in .pth); without it pretrained ones are fetched.
        arguments: further keyword arguments of `timm.create_model`.
        class_names: one name an output; with a checkpoint their number decides the size of the last layer.
        task: `single-label` or `multi-label`.
        scores: whether the model gives `logits` or `probabilities`; `auto` sees for itself.
        feature_layer: name of the linear layer whose input is taken as features; by default the one that gives the scores.
        device: `cpu`, `cuda`, `cuda:1`, `mps` or `auto`.
        dtype: `float32`, `float16` or `bfloat16`.
        images: what to prepare otherwise than the model's data configuration says, see `IMAGE_OPTIONS`.
    """

    def __init__(
        self,
        *,
        model: str,
        checkpoint: str | Path | None = None,
        arguments: Mapping[str, Any] | None = None,
        class_names: Sequence[str] | None = None,
        task: str = "single-label",
        scores: str = "auto",
        feature_layer: str | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        **images: Any,
    ) -> None:
        self._model = model
        self._checkpoint = None if checkpoint is None else Path(checkpoint)
        self._arguments = dict(arguments or {})
        self._settings = NetworkSettings(
            class_names=parsed_class_names(class_names),
            task=parsed_task(task),
            scores=parsed_score_kind(scores),
            feature_layer=feature_layer,
            device=device,
            dtype=dtype,
        )
        self._image_settings = images

    @LoadedOnce
    def classifier_id(self) -> str:
        network, images = self._network, self.preprocessing.as_settings()
        parts = (
            network.weights_hash,
            sorted(self._arguments.items()),
            images,
            network.reader.kind,
            self._settings,
        )
        return model_id("timm", self._model, *parts)

    @LoadedOnce
    def _library(self) -> Any:
        require_torch(TIMM_PURPOSE)
        declare_torchvision_operators()
        return require_library("timm", extra="hub", purpose=TIMM_PURPOSE)

    @LoadedOnce
    def _module(self) -> Any:
        return self._fresh()

    def _fresh(self) -> Any:
        if self._checkpoint is None:
            return self._pretrained()
        if not self._checkpoint.is_file():
            raise ModelError(
                "There is no such checkpoint.", where=str(self._checkpoint), fix="Correct the path."
            )
        names = self._settings.class_names
        sizes = (
            {} if names is None or "num_classes" in self._arguments else {"num_classes": len(names)}
        )
        module = self._create(pretrained=False, **sizes)
        fill(module, load_state(self._checkpoint), where=str(self._checkpoint))
        return module

    def _pretrained(self) -> Any:
        try:
            return self._create(pretrained=True)
        except ModelError:
            raise
        except Exception as error:
            raise UnavailableError(
                f"The pretrained weights are unavailable: {type(error).__name__}: {str(error).strip().splitlines()[0][:200]}",
                where=self._model,
                fix="Check the name and the network, or give the checkpoint of a copy.",
            ) from error

    def _create(self, **options: Any) -> Any:
        timm = self._library
        is_own = not self._model.startswith(("hf-hub:", "hf_hub:", "local-dir:"))
        if is_own and not timm.is_model(self._model):
            close = timm.list_models(f"*{self._model.partition('.')[0].partition('_')[0]}*")[:10]
            raise ModelError(
                "timm has no such model.",
                where="model",
                given=self._model,
                fix=f"Choose a name, such as one of {close}.",
            )
        try:
            return timm.create_model(self._model, **{**self._arguments, **options})
        except TypeError as error:
            raise ConfigError(
                f"timm cannot build the model: {error}", where="arguments", given=self._arguments
            ) from error

    @LoadedOnce
    def preprocessing(self) -> Preprocessing:
        """How images become what the network takes."""
        stated = self._library.data.resolve_model_data_config(self._module)
        return preprocessing_from(
            self._image_settings, **_fields(stated, self._image_settings, where=self._model)
        )

    def _load_network(self) -> TorchNetwork:
        return make_network(self._module, self._settings, probes=self._probes(), where=self._model)

    def named_tensors(self) -> Mapping[str, Any]:
        tensors: Mapping[str, Any] = (
            load_state(self._checkpoint) if self._checkpoint else self._fresh().state_dict()
        )
        return tensors

    def _write_rows(self, rows: Head, layer: str, folder: Path) -> Path:
        refuse_shared(self._check(self._fresh()), layer, where=self._model)
        tensors = with_layer(self.named_tensors(), layer, rows, where=self._model)
        stem = (
            self._checkpoint.stem
            if self._checkpoint
            else self._model.rpartition("/")[2].rpartition(":")[2]
        )
        return save_tensors(folder / f"{stem}_repaired{SAFETENSORS}", tensors, self._checkpoint)

    def _read_back(self, path: Path) -> "TimmClassifier":
        other: TimmClassifier = reloaded(self, _checkpoint=path)
        return other


def _fields(
    stated: Mapping[str, Any], settings: Mapping[str, Any], *, where: str
) -> dict[str, Any]:
    """Return timm's data configuration as fields of `Preprocessing`."""
    channels, height, width = stated["input_size"]
    share, mode = float(stated.get("crop_pct") or 1.0), stated.get("crop_mode", "center")
    if mode != "center" and not (mode == "squash" and share == 1.0) and "crop" not in settings:
        raise ModelError(
            f"The model crops in a way that is not known here ({mode}, {share}).",
            where=where,
            fix="Set crop and resize_side yourself.",
        )
    resample = stated.get("interpolation", "bicubic")
    is_given = "image_side" in settings
    return {
        "height": height,
        "width": width,
        "resize_side": None if mode != "center" or is_given else int(max(height, width) / share),
        "crop": "centre" if mode == "center" else "none",
        "resample": resample if resample in RESAMPLES else "bicubic",
        "mean": tuple(stated["mean"]),
        "std": tuple(stated["std"]),
        "colour": "grey" if channels == 1 else "rgb",
    }
