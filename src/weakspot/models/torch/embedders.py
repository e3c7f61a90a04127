"""Embedders of torch: open_clip models, and the network that FID and KID are measured in or any other that gives features.

Distances between sets of images need features as the network gives them (`raw_features`); an embedder's embeddings have length one.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, unit_rows
from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.registry import Sendable
from weakspot.models.loading import (
    LoadedOnce,
    file_hash,
    first_line,
    last_line,
    model_id,
    require_library,
)
from weakspot.models.onnx.session import make_session, run_session
from weakspot.models.preprocessing import Preprocessing
from weakspot.models.torch.network import weights_hash
from weakspot.models.torch.runtime import (
    declare_torchvision_operators,
    is_script,
    load_script,
    require_torch,
    torch_device,
    torch_dtype,
)

OPEN_CLIP_PURPOSE = "open_clip models"
_LOCAL = "local-dir:"
_HUB = "hf-hub:"


class OpenClipEmbedder(Sendable):
    """Image and text features of an open_clip model, as unit vectors.

    Args:
        model: name of the architecture, `hf-hub:organisation/model`, `local-dir:folder`, or simply a folder.
        pretrained: tag of the weights or a checkpoint file; not needed for a hub model or a folder.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: float32, float16 or bfloat16.
    """

    def __init__(
        self,
        *,
        model: str | Path,
        pretrained: str | Path = "",
        device: str = "auto",
        dtype: str = "float32",
    ) -> None:
        name = str(model)
        self._model_name = f"{_LOCAL}{name}" if Path(name).is_dir() else name
        self._pretrained = str(pretrained)
        self._device = device
        self._dtype = dtype
        if not self._pretrained and not self._model_name.startswith((_LOCAL, _HUB)):
            raise ModelError(
                "An open_clip architecture without weights would give random embeddings.",
                given=name,
                fix="Set embedder.options.pretrained to a tag or a checkpoint file.",
            )

    @LoadedOnce
    def encoder_id(self) -> str:
        local = Path(self._model_name.removeprefix(_LOCAL))
        checkpoint = Path(self._pretrained)
        name = (
            f"{local.name}@{file_hash(local)}"
            if self._model_name.startswith(_LOCAL) and local.is_dir()
            else self._model_name
        )
        tag = (
            f"{checkpoint.name}@{file_hash(checkpoint)}"
            if checkpoint.is_file()
            else self._pretrained
        )
        return f"open-clip:{name}" + (f":{tag}" if tag else "") + f"+{self._dtype}"

    @LoadedOnce
    def dimension(self) -> int:
        return int(self.embed_texts(["a"]).shape[1])

    @property
    def image_side(self) -> int | None:
        size = self._loaded[0].visual.image_size
        return int(max(size) if isinstance(size, tuple | list) else size)

    @property
    def has_text(self) -> bool:
        return True

    def prepare(self, image: Image.Image) -> AnyArray:
        """Turn one RGB image into [3, height, width], as open_clip does it for this model."""
        return np.asarray(self._loaded[1](image).numpy(), dtype=np.float32)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d] of prepared images."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        torch, model = require_torch(OPEN_CLIP_PURPOSE), self._loaded[0]
        weights = next(model.parameters())
        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(prepared)).to(weights.device, weights.dtype)
            return unit_rows(model.encode_image(pixels).float().cpu().numpy())

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        torch, model = require_torch(OPEN_CLIP_PURPOSE), self._loaded[0]
        with torch.inference_mode():
            tokens = self._tokenizer(list(texts)).to(next(model.parameters()).device)
            return unit_rows(model.encode_text(tokens).float().cpu().numpy())

    @LoadedOnce
    def _tokenizer(self) -> Any:
        return self._guard(lambda: _library().get_tokenizer(self._model_name))

    @LoadedOnce
    def _loaded(self) -> tuple[Any, Any]:
        torch = require_torch(OPEN_CLIP_PURPOSE)
        device, dtype = torch_device(torch, self._device), torch_dtype(torch, self._dtype)
        create = _library().create_model_and_transforms
        model, _, transform = self._guard(
            lambda: create(self._model_name, pretrained=self._pretrained or None)
        )
        return model.to(device, dtype).eval(), transform

    def _guard(self, load: Any) -> Any:
        where = f"{self._model_name} {self._pretrained}".strip()
        try:
            return load()
        except (OSError, ConnectionError) as error:
            raise UnavailableError(
                f"The model is unavailable: {first_line(error)}",
                where=where,
                fix="Check the name, the tag and the network, or give a folder.",
            ) from error
        except (RuntimeError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise ModelError(
                f"open_clip cannot load the model: {first_line(error)}", where=where
            ) from error


def _library() -> Any:
    require_torch(OPEN_CLIP_PURPOSE)
    declare_torchvision_operators()
    return require_library("open_clip", extra="hub", purpose=OPEN_CLIP_PURPOSE)


PURPOSE = "Inception features"
SIDE = 299
RETURN_FEATURES = "return_features"
ONNX_SUFFIX = ".onnx"
BYTES = "tensor(uint8)"
MIDDLE = (0.5, 0.5, 0.5)
_FOLDER_SCHEME = "local-dir:"
_SCHEMES = (_FOLDER_SCHEME, "hf-hub:", "hf_hub:")
_MATRIX, _MAPS = 2, 4

FIX = (
    "Give path to a TorchScript or ONNX file of the FID network, path to a folder that timm saved, or a timm model such as "
    "'inception_v3.tf_in1k'."
)


FeatureNetwork = tuple[Preprocessing, Callable[[AnyArray], AnyArray], str]
"""How an image becomes what a network takes; the network, from a batch [n, ...] to features [n, d] or maps [n, d, h, w]; and a hash of
what decides the numbers."""


class InceptionEmbedder(Sendable):
    """Features of an image network without a text side; with the usual Inception weights distances in its space are FID and KID.

    The whole image is resized to the network's square by an anti-aliasing bicubic filter, without a crop. A TorchScript file gets
    bytes [n, 3, side, side] (and `return_features=True` if it takes that); an ONNX graph gets bytes or numbers from -1 to 1, as its
    input says; a timm model gets what its data configuration says.

    Args:
        path: TorchScript or ONNX file, or a folder that timm saved.
        model: timm model, `inception_v3.tf_in1k` or `hf-hub:organisation/model`; instead of a path.
        side: pixels of the square, where the network does not fix it.
        device: `cpu`, `cuda`, `cuda:1`, `mps` or `auto`, for all but ONNX graphs.
        providers: execution providers of onnxruntime for an ONNX graph, best first; by default the best that starts.
    """

    def __init__(
        self,
        *,
        path: str | Path = "",
        model: str = "",
        side: int = SIDE,
        device: str = "cpu",
        providers: Sequence[str] | None = None,
    ) -> None:
        if bool(str(path)) == bool(model):
            raise ConfigError(
                "The embedder 'inception' needs either path or model.",
                given={"path": str(path), "model": model},
                fix=FIX,
            )
        if side < 1:
            raise ConfigError(
                "The side of an image is a number of pixels.", where="side", given=side
            )
        self._path = Path(path)
        self._model = model
        self._side = side
        self._device = device
        self._providers = providers

    @LoadedOnce
    def encoder_id(self) -> str:
        images, _, identity = self._network
        name = self._model or self._path.name
        return model_id("inception", name, identity, images.as_settings())

    @LoadedOnce
    def dimension(self) -> int:
        """Length of the embeddings; 2048 for the usual network."""
        return int(self.raw_features([self.prepare(Image.new("RGB", (8, 8)))]).shape[1])

    @property
    def image_side(self) -> int | None:
        return self._network[0].needed_side

    @property
    def has_text(self) -> bool:
        return False

    def prepare(self, image: Image.Image) -> AnyArray:
        return self._network[0].apply(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d] of prepared images."""
        return unit_rows(self.raw_features(prepared))

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Refuse phrases.

        Raises:
            ModelError: always.
        """
        raise ModelError(
            "The embedder 'inception' has no text side.",
            given=list(texts)[:3],
            fix="Use it for distances, or learn one: weakspot lab align.",
        )

    def raw_features(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return features [n, d] of prepared images as the network gives them, of any length."""
        if not prepared:
            return np.zeros((0, self.dimension), dtype=np.float32)
        found = np.asarray(self._network[1](np.stack(prepared)), dtype=np.float32)
        if found.ndim == _MAPS:
            found = found.mean(axis=(2, 3))
        if found.ndim != _MATRIX or len(found) != len(prepared):
            raise ModelError(
                f"The network must give one row of features for each of {len(prepared)} images.",
                where=self._model or str(self._path),
                given=found.shape,
                fix=FIX,
            )
        return found

    @LoadedOnce
    def _network(self) -> FeatureNetwork:
        if self._model:
            return _timm_network(self._model, self._device)
        if self._path.is_dir():
            return _timm_network(f"{_FOLDER_SCHEME}{self._path}", self._device)
        if not self._path.is_file():
            raise ModelError(
                "There is no such model file or folder.", where=str(self._path), fix=FIX
            )
        if self._path.suffix.lower() == ONNX_SUFFIX:
            return _onnx_network(self._path, self._side, self._providers)
        if is_script(self._path):
            return _script_network(self._path, self._side, self._device)
        raise ModelError("This is neither TorchScript nor ONNX.", where=str(self._path), fix=FIX)


def _script_network(path: Path, side: int, wanted_device: str) -> FeatureNetwork:
    torch = require_torch(PURPOSE)
    device = torch_device(torch, wanted_device)
    module = load_script(path).eval().to(device)
    takes = {argument.name for argument in module.forward.schema.arguments}
    options = {RETURN_FEATURES: True} if RETURN_FEATURES in takes else {}

    def run(pixels: AnyArray) -> AnyArray:
        try:
            with torch.inference_mode():
                return _numbers(module(torch.from_numpy(pixels).to(device), **options))
        except RuntimeError as error:
            raise ModelError(
                f"The script fails on a batch of bytes: {last_line(error)}",
                where=str(path),
                given=pixels.shape,
                fix=FIX,
            ) from error

    images = Preprocessing(height=side, width=side, crop="none", dtype="uint8")
    return images, run, file_hash(path)


def _onnx_network(path: Path, side: int, providers: Sequence[str] | None) -> FeatureNetwork:
    session = make_session(path, providers=providers)
    entry = session.get_inputs()[0]
    height, width = (one if isinstance(one, int) else side for one in entry.shape[-2:])
    dtype = "uint8" if entry.type == BYTES else "float32"
    images = Preprocessing(
        height=height, width=width, crop="none", dtype=dtype, mean=MIDDLE, std=MIDDLE
    )
    n_fixed = entry.shape[0] if isinstance(entry.shape[0], int) else None

    def run(pixels: AnyArray) -> AnyArray:
        step = n_fixed or len(pixels)
        filled = np.concatenate([pixels, np.repeat(pixels[-1:], -len(pixels) % step, axis=0)])
        parts = [
            run_session(session, {entry.name: filled[start : start + step]}, where=str(path))[0]
            for start in range(0, len(filled), step)
        ]
        return np.concatenate(parts)[: len(pixels)]

    return images, run, file_hash(path)


def _timm_network(name: str, wanted_device: str) -> FeatureNetwork:
    torch = require_torch(PURPOSE)
    declare_torchvision_operators()
    timm = require_library("timm", extra="hub", purpose=PURPOSE)
    if not name.startswith(_SCHEMES) and not timm.is_model(name):
        raise ModelError(
            "timm has no such model.",
            where="model",
            given=name,
            fix=f"Choose one of {timm.list_models('*inception*')}.",
        )
    try:
        module = timm.create_model(name, pretrained=True, num_classes=0)
    except Exception as error:
        raise UnavailableError(
            f"The weights are unavailable: {type(error).__name__}: {last_line(error)}",
            where=name.removeprefix(_FOLDER_SCHEME),
            fix=FIX,
        ) from error
    stated = timm.data.resolve_model_data_config(module)
    device = torch_device(torch, wanted_device)
    hashed = weights_hash(module)
    module = module.eval().to(device)

    def run(pixels: AnyArray) -> AnyArray:
        with torch.inference_mode():
            return _numbers(module(torch.from_numpy(pixels).to(device)))

    _, height, width = stated["input_size"]
    images = Preprocessing(
        height=height,
        width=width,
        crop="none",
        mean=tuple(stated["mean"]),
        std=tuple(stated["std"]),
    )
    return images, run, hashed


def _numbers(found: Any) -> AnyArray:
    tensor = found[0] if isinstance(found, tuple | list) else found
    numbers: AnyArray = tensor.float().cpu().numpy()
    return numbers
