"""Image classifiers of the timm library, by name or with a checkpoint of one's own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.heads import Head
from weakspot.models.class_scores import (
    parsed_class_names,
    parsed_score_kind,
    parsed_task,
)
from weakspot.models.loading import LoadedOnce, reloaded, require_library
from weakspot.models.model_hash import model_id
from weakspot.models.preprocessing import (
    RESAMPLES,
    Preprocessing,
    preprocessing_from,
)
from weakspot.models.torch.device import declare_torchvision_operators, require_torch
from weakspot.models.torch.files import (
    SAFETENSORS,
    fill,
    load_state,
    refuse_shared,
    save_tensors,
    with_layer,
)
from weakspot.models.torch.network import (
    NetworkSettings,
    PreparedClassifier,
    TorchNetwork,
    make_network,
)

PURPOSE = "timm classifiers"


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
        require_torch(PURPOSE)
        declare_torchvision_operators()
        return require_library("timm", extra="hub", purpose=PURPOSE)

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
