"""A torch module as a classifier: in memory, as TorchScript, or as weights with a factory."""

import copy
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head
from weakspot.models.class_scores import (
    parsed_class_names,
    parsed_score_kind,
    parsed_task,
)
from weakspot.models.files import PlainModel
from weakspot.models.loading import LoadedOnce, reloaded
from weakspot.models.model_hash import model_id, settings_hash
from weakspot.models.preprocessing import Preprocessing, preprocessing_from
from weakspot.models.torch.device import require_torch
from weakspot.models.torch.files import (
    PURPOSE,
    SAFETENSORS,
    fill,
    fill_layer,
    is_script,
    load_module,
    load_script,
    load_state,
    quiet_scripts,
    refuse_shared,
    save_script,
    save_tensors,
    with_layer,
)
from weakspot.models.torch.network import (
    NetworkSettings,
    PreparedClassifier,
    TorchNetwork,
    make_network,
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
