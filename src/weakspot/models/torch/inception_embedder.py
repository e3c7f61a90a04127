"""The network that FID and KID are measured in, or any other that turns images into features, from a file, a folder or timm.

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
from weakspot.models.loading import LoadedOnce, last_line, require_library
from weakspot.models.model_hash import file_hash, model_id
from weakspot.models.onnx.session import make_session, run_session
from weakspot.models.preprocessing import Preprocessing
from weakspot.models.torch.device import declare_torchvision_operators, require_torch, torch_device
from weakspot.models.torch.files import is_script, load_script
from weakspot.models.torch.network import weights_hash

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
