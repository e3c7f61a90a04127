"""A torch module as a classifier's network: its features, its head, its answers, and what all such classifiers share."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.core.heads import Head
from weakspot.core.registry import Sendable
from weakspot.core.roles import ClassifierOutput
from weakspot.models.class_scores import (
    AnswerReader,
    check_repaired,
    fitted_head,
    head_explains,
    not_verified,
    probe_images,
    score_kinds,
    settle,
)
from weakspot.models.files import files_in, main_first, new_files
from weakspot.models.loading import LoadedOnce, arrays_hash, last_line
from weakspot.models.preprocessing import Preprocessing
from weakspot.models.torch.runtime import (
    PURPOSE,
    changed_tensors,
    layer_kind,
    require_torch,
    rounding,
    torch_device,
    torch_dtype,
)

SCORE_FIELDS = ("logits", "scores", "probabilities", "out", "output")
NO_LAYER = "the module has no linear layer that sees one embedding an image"
NO_SCRIPT_LAYER = "the script has no linear layer that gives its scores directly (frozen, or followed by a soft-max)"
PROBE_SIDE = 256
_MATRIX = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class TorchRunner:
    """A module in evaluation mode on its device.

    Args:
        module: the module; a script's last layer may have been widened, see `widened_script`.
        device: where it runs.
        dtype: kind of number it takes.
        where: the model, for messages.
        layer: the linear layer whose input is read, or None.
        layer_name: name in the module of the layer whose input is read, also of a widened one; empty without.
        n_scores: for a widened script, how many of its columns are scores; the rest are features.
    """

    module: Any
    device: Any
    dtype: Any
    where: str
    layer: Any = None
    layer_name: str = ""
    n_scores: int | None = None

    def run(self, prepared: Sequence[AnyArray]) -> tuple[AnyArray, AnyArray | None]:
        if self.layer is None:
            scores = self.forward(prepared)
            return (
                (scores, None)
                if self.n_scores is None
                else (scores[:, : self.n_scores], scores[:, self.n_scores :])
            )
        seen: list[AnyArray] = []
        hook = self.layer.register_forward_pre_hook(
            lambda _layer, inputs: seen.append(to_numpy(inputs[0]))
        )
        try:
            scores = self.forward(prepared)
        finally:
            hook.remove()
        return scores, seen[-1] if seen else None

    def forward(self, prepared: Sequence[AnyArray]) -> AnyArray:
        import torch

        batch = torch.from_numpy(np.stack(prepared)).to(device=self.device, dtype=self.dtype)
        try:
            with (
                torch.inference_mode(),
                torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True),
            ):
                return to_numpy(scores_of(self.module(batch), where=self.where))
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                f"The module fails on a batch: {type(error).__name__}: {last_line(error)}",
                where=self.where,
                given=tuple(batch.shape),
                fix="Check image_side, layout and dtype.",
            ) from error


def to_numpy(tensor: Any) -> AnyArray:
    """Return a tensor as float32 numbers on the processor."""
    return np.asarray(tensor.detach().float().cpu().numpy())


def scores_of(answer: Any, *, where: str) -> Any:
    """Return the scores in whatever a module gives: a tensor, the first of several, or a field of that name."""
    import torch

    if isinstance(answer, torch.Tensor):
        return answer
    for name in SCORE_FIELDS:
        found = answer.get(name) if isinstance(answer, Mapping) else getattr(answer, name, None)
        if isinstance(found, torch.Tensor):
            return found
    if isinstance(answer, tuple | list) and answer and isinstance(answer[0], torch.Tensor):
        return answer[0]
    raise ModelError(
        "The module gives no tensor of scores.", where=where, given=type(answer).__name__
    )


def head_of(layer: Any, task: Task) -> Head:
    weights = to_numpy(layer.weight)
    bias = np.zeros(len(weights), np.float32) if layer.bias is None else to_numpy(layer.bias)
    return Head(weights=weights, bias=bias, task=task)


def linear_layers_called(
    runner: TorchRunner, prepared: Sequence[AnyArray], *, only: str | None
) -> list[tuple[Any, AnyArray]]:
    """Return the linear layers that see one embedding an image, with those embeddings, last called first.

    Args:
        runner: runs the module.
        prepared: probe images.
        only: name of the one layer that is wanted, or None.
    """
    import torch

    named = {
        name: layer
        for name, layer in runner.module.named_modules()
        if isinstance(layer, torch.nn.Linear)
    }
    if only is not None and only not in named:
        raise ConfigError(
            "The module has no such linear layer.",
            where="feature_layer",
            given=only,
            fix=f"Choose one of {list(named)}.",
        )
    wanted = [named[only]] if only is not None else list(named.values())
    seen: list[tuple[Any, AnyArray]] = []
    hooks = [
        layer.register_forward_pre_hook(
            lambda called, inputs: seen.append((called, to_numpy(inputs[0])))
        )
        for layer in wanted
    ]
    try:
        runner.forward(prepared)
    finally:
        for hook in hooks:
            hook.remove()
    return [
        (layer, inputs)
        for layer, inputs in reversed(seen)
        if inputs.ndim == _MATRIX and len(inputs) == len(prepared)
    ]


def last_layer(
    runner: TorchRunner,
    prepared: Sequence[AnyArray],
    *,
    only: str | None,
    kinds: Sequence[str],
    task: Task,
) -> Any:
    """Return the linear layer that explains the scores, or the named one, or None."""
    called = linear_layers_called(runner, prepared, only=only)
    if only is not None:
        return called[0][0] if called else None
    scores = runner.forward(prepared)
    for layer, features in called:
        single = Task.MULTI_LABEL if scores.shape[1:] == (1,) else task
        if any(head_explains(head_of(layer, single), features, scores, kind) for kind in kinds):
            return layer
    return None


TRIED_LAYERS = 4


def widened_script(
    runner: TorchRunner, prepared: Sequence[AnyArray], *, only: str | None, task: Task
) -> tuple[TorchRunner, Head | None]:
    """Return a runner whose last linear layer gives its scores and then its own input, and that layer as a head.

    The layer's weights W and bias b become [W; I] and [b; 0], so that one pass gives logits and features. If that changes the
    scores, or no layer is found, the script is left as it was.

    Args:
        runner: runs the script.
        prepared: probe images.
        only: name of the layer that is wanted, or None for the last that works.
        task: of the head.
    """
    scores = runner.forward(prepared)
    linear = [
        (name, layer)
        for name, layer in runner.module.named_modules()
        if getattr(layer, "original_name", "") == "Linear"
    ]
    wanted = [(name, layer) for name, layer in linear if only in {None, name}]
    for name, layer in list(reversed(wanted))[:TRIED_LAYERS]:
        head = head_of(layer, task)
        weight, bias = layer.weight, layer.bias
        if bias is None or scores.ndim != _MATRIX or head.weights.shape[0] != scores.shape[1]:
            continue
        _widen(layer)
        candidate = replace(runner, n_scores=scores.shape[1], layer_name=name)
        if _gives_features(candidate, prepared, scores, head):
            return candidate, head
        layer.weight, layer.bias = weight, bias
    return runner, None


def _widen(layer: Any) -> None:
    import torch

    weight, bias = layer.weight.detach(), layer.bias.detach()
    n_features = weight.shape[1]
    identity = torch.eye(n_features, dtype=weight.dtype, device=weight.device)
    zeros = torch.zeros(n_features, dtype=bias.dtype, device=bias.device)
    layer.weight = torch.nn.Parameter(torch.cat([weight, identity]), requires_grad=False)
    layer.bias = torch.nn.Parameter(torch.cat([bias, zeros]), requires_grad=False)


def _gives_features(
    runner: TorchRunner, prepared: Sequence[AnyArray], scores: AnyArray, head: Head
) -> bool:
    try:
        found, features = runner.run(prepared)
    except ModelError:
        return False
    if (
        features is None
        or found.shape != scores.shape
        or features.shape[1] != head.weights.shape[1]
    ):
        return False
    return bool(np.allclose(found, scores, atol=1e-4, rtol=1e-3)) and head_explains(
        head, features, scores, "logits"
    )


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """What a user says about running a network.

    Args:
        class_names: the classes, or None.
        task: single-label or multi-label.
        scores: `auto`, `logits` or `probabilities`.
        feature_layer: name of the linear layer whose input is taken as features, or None for the last.
        device: `cpu`, `cuda`, `cuda:1`, `mps` or `auto`.
        dtype: kind of number.
    """

    class_names: tuple[str, ...] | None
    task: Task
    scores: str = "auto"
    feature_layer: str | None = None
    device: str = "cpu"
    dtype: str = "float32"


@dataclass(frozen=True, kw_only=True, eq=False)
class TorchNetwork:
    """A module that is ready to classify, and the hash of its weights."""

    runner: TorchRunner
    reader: AnswerReader
    weights_hash: str

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        if not prepared:
            return self.reader.empty()
        scores, features = self.runner.run(prepared)
        return self.reader.output(scores, features, n_rows=len(prepared))


def make_network(
    module: Any, settings: NetworkSettings, *, probes: Sequence[AnyArray], where: str
) -> TorchNetwork:
    """Put a module to work: evaluation mode, device, last layer, kind of scores.

    Args:
        module: owned by the network from now on.
        settings: what the user says.
        probes: prepared probe images.
        where: the model, for messages.
    """
    torch = require_torch(PURPOSE)
    hashed = weights_hash(module)
    device, dtype = torch_device(torch, settings.device), torch_dtype(torch, settings.dtype)
    runner = TorchRunner(
        module=module.eval().to(device=device, dtype=dtype), device=device, dtype=dtype, where=where
    )
    if isinstance(module, torch.jit.ScriptModule):
        only, task = settings.feature_layer, settings.task
        runner, head = widened_script(runner, probes, only=only, task=task)
        note = NO_SCRIPT_LAYER if head is None else None
    else:
        runner, head = _with_last_layer(runner, settings, probes)
        note = NO_LAYER if runner.layer is None else None
    scores, features = runner.run(probes)
    reader = settle(
        scores,
        features,
        head,
        note,
        kinds=score_kinds(settings.scores),
        task=settings.task,
        class_names=settings.class_names,
        where=where,
    )
    return TorchNetwork(runner=runner, reader=reader, weights_hash=hashed)


def _with_last_layer(
    runner: TorchRunner, settings: NetworkSettings, probes: Sequence[AnyArray]
) -> tuple[TorchRunner, Head | None]:
    kinds, only = score_kinds(settings.scores), settings.feature_layer
    layer = last_layer(runner, probes, only=only, kinds=kinds, task=settings.task)
    name = next((name for name, one in runner.module.named_modules() if one is layer), "")
    head = None if layer is None else head_of(layer, settings.task)
    return replace(runner, layer=layer, layer_name=name), head


def weights_hash(module: Any) -> str:
    import torch

    state = module.state_dict()
    arrays = {
        name: value.detach().cpu().contiguous()
        for name, value in state.items()
        if isinstance(value, torch.Tensor)
    }
    return arrays_hash(
        {
            f"{name}|{value.dtype}": value.reshape(-1).view(torch.uint8).numpy()
            for name, value in arrays.items()
        }
    )


class NetworkClassifier(Sendable, ABC):
    """Answers, features and head of a network that is loaded on first use."""

    @property
    @abstractmethod
    def classifier_id(self) -> str:
        """Name and hash of weights and of what else decides the answers."""

    @property
    @abstractmethod
    def task(self) -> Task:
        """Single-label or multi-label."""

    @property
    @abstractmethod
    def class_names(self) -> tuple[str, ...] | None:
        """The classes, in the order of the outputs."""

    @property
    @abstractmethod
    def image_side(self) -> int | None:
        """The shortest image side from which nothing is lost."""

    @abstractmethod
    def prepare(self, image: Image.Image) -> AnyArray:
        """Return an image as the network takes it."""

    @abstractmethod
    def _load_network(self) -> TorchNetwork:
        """Return the network, ready to classify."""

    @abstractmethod
    def named_tensors(self) -> Mapping[str, Any]:
        """Return the named tensors as the user keeps them, read anew."""

    @abstractmethod
    def _write_rows(self, rows: Head, layer: str, folder: Path) -> Path:
        """Write the network with these rows in a layer into an empty folder and return the main file."""

    @abstractmethod
    def _read_back(self, path: Path) -> "NetworkClassifier":
        """Return the same classifier with the network that was written to a file."""

    @LoadedOnce
    def _network(self) -> TorchNetwork:
        return self._load_network()

    def _probes(self) -> list[AnyArray]:
        height, width = self._probe_size
        return [self.prepare(image) for image in probe_images(height, width)]

    @property
    def _probe_size(self) -> tuple[int, int]:
        side = self.image_side or PROBE_SIDE
        return side, side

    @property
    def head(self) -> Head | None:
        """The last linear layer, checked against the network's own answer; None where there is none."""
        return self._network.reader.head

    @property
    def features_note(self) -> str | None:
        return self._network.reader.note

    @property
    def layer_kind(self) -> str | None:
        """The kind of number that the last layer is kept in, for example `float16`; None without a head."""
        name = f"{self._network.runner.layer_name}.weight"
        tensors = self.named_tensors() if self.head is not None else {}
        return str(tensors[name].dtype).removeprefix("torch.") if name in tensors else None

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        return self._network.classify(prepared)

    def write_repaired(self, head: Head, folder: Path) -> tuple[Path, ...]:
        """Write the network with this last layer into a folder, in the format it was read from; all other tensors stay as they are.

        Raises:
            ModelError: if a file is there already, the layer does not fit, or what was written does not hold when read back.
        """
        runner, reader = self._network.runner, self._network.reader
        rows = fitted_head(
            head, self.head, self.features_note, is_single=reader.is_single, where=reader.where
        )
        with new_files(folder) as staging:
            main = self._write_rows(rows, runner.layer_name, staging)
            after = self._read_back(main)
            own = {f"{runner.layer_name}.weight", f"{runner.layer_name}.bias"}
            before, found = self.named_tensors(), after.named_tensors()
            if not changed_tensors(before, found) <= own:
                raise not_verified("a tensor beside the layer changed")
            epsilon = rounding(
                layer_kind(before, runner.layer_name), str(runner.dtype).removeprefix("torch.")
            )
            is_cpu = str(runner.device) == "cpu"
            check_repaired(self, after, head, self._probes(), epsilon=epsilon, is_exact=is_cpu)
            names = files_in(staging)
        return main_first(folder, names, main.relative_to(staging))

    def _check(self, module: Any) -> Any:
        if weights_hash(module) != self._network.weights_hash:
            raise ModelError(
                "The weights changed since they were loaded.",
                where=self._network.runner.where,
                fix="Start again with the weights as they are.",
            )
        return module


class PreparedClassifier(NetworkClassifier):
    """A network whose settings and pre-processing are ours."""

    _settings: NetworkSettings

    @property
    @abstractmethod
    def preprocessing(self) -> Preprocessing:
        """How images become what the network takes."""

    @property
    def class_names(self) -> tuple[str, ...] | None:
        return self._settings.class_names

    @property
    def task(self) -> Task:
        return self._settings.task

    @property
    def image_side(self) -> int | None:
        return self.preprocessing.needed_side

    def prepare(self, image: Image.Image) -> AnyArray:
        return self.preprocessing.apply(image)

    @property
    def _probe_size(self) -> tuple[int, int]:
        return self.preprocessing.height, self.preprocessing.width


ASKING_PURPOSE = "Asking a PyTorch module"
BATCH = 32


def ask_module(module: Any, data: Any) -> dict[str, object]:
    """Return images, labels and probabilities of a data set or a loader of pairs of tensor and label.

    The module is asked in evaluation mode, without gradients, where its weights are; then it is as it was.
    Images are the files of the data set where it names them (`samples`, as torchvision's folders do), else the tensors.

    Raises:
        DataError: if the data set gives no pairs.
        ModelError: if the module gives no scores [n, classes].
    """
    torch = require_torch(ASKING_PURPOSE)
    device = next((weight.device for weight in module.parameters()), torch.device("cpu"))
    was_training = module.training
    images: list[Any] = []
    labels: list[Any] = []
    scores: list[Any] = []
    module.eval()
    try:
        with torch.inference_mode():
            for tensors, answers in _batches(torch, data):
                told = _asked(module, tensors, device)
                told = getattr(told, "logits", told)
                if getattr(told, "ndim", 0) != 2 or len(told) != len(tensors):  # noqa: PLR2004
                    raise ModelError(
                        "The module gives no scores [n, classes].",
                        given=tuple(getattr(told, "shape", ())),
                        fix="Give a classifier, or its predictions.",
                    )
                scores.append(torch.softmax(told.float(), dim=1).cpu().numpy())
                images += list(tensors.cpu().numpy())
                labels += answers.tolist()
    finally:
        module.train(was_training)
    files = _files(data, len(labels))
    return {
        "images": images if files is None else files,
        "labels": labels,
        "probabilities": np.concatenate(scores),
    }


def _asked(module: Any, tensors: Any, device: Any) -> Any:
    try:
        return module(tensors.to(device))
    except (RuntimeError, TypeError, AttributeError) as error:
        raise ModelError(
            f"The module cannot take a batch of the data set: {str(error).splitlines()[0]}",
            given=tuple(getattr(tensors, "shape", ())) or type(tensors).__name__,
            fix="Give the data set with the transforms that the module was trained with.",
        ) from error


def _batches(torch: Any, data: Any) -> Iterator[tuple[Any, Any]]:
    loader = (
        data
        if hasattr(data, "batch_size") and hasattr(data, "dataset")
        else torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=False)
    )
    if not _is_in_order(loader):
        raise DataError(
            "The loader shuffles, so that members could not be told by their place.",
            fix="Give the data set itself, or a loader with shuffle=False.",
        )
    for batch in loader:
        if not isinstance(batch, (list, tuple)) or len(batch) < 2:  # noqa: PLR2004
            raise DataError(
                "The data set gives no pairs of image and label.",
                given=type(batch).__name__,
                fix="Give images, labels and predictions by name instead.",
            )
        yield batch[0], batch[1]


def _is_in_order(loader: Any) -> bool:
    """Return whether a loader draws every sample once, first to last; one that draws from a stream has no order to keep."""
    known = ("SequentialSampler", "BatchSampler", "_InfiniteConstantSampler", "NoneType")
    samplers = (getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None))
    return all(type(sampler).__name__ in known for sampler in samplers)


def _files(data: Any, n_samples: int) -> list[str] | None:
    if hasattr(data, "batch_size") and hasattr(data, "dataset"):
        data = data.dataset
    known = getattr(data, "samples", None)
    if not isinstance(known, list) or len(known) != n_samples:
        return None
    return [str(entry[0]) for entry in known if isinstance(entry, tuple)] or None
