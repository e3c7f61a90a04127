"""A torch module as a classifier's network: device, features, head and how its answers are read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weakspot.backends.class_scores import head_explains, score_kinds
from weakspot.backends.model_hash import arrays_hash
from weakspot.backends.network_answer import AnswerReader, Probe, settle
from weakspot.backends.torch.device import require_torch, torch_device, torch_dtype
from weakspot.backends.torch.features import (
    NO_LAYER,
    NO_SCRIPT_LAYER,
    TorchRunner,
    head_of,
    last_layer,
)
from weakspot.backends.torch.files import PURPOSE
from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput

TRIED_LAYERS = 4
_MATRIX = 2


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
    make = _with_script if isinstance(module, torch.jit.ScriptModule) else _with_hook
    runner, reader = make(runner, settings, probes)
    return TorchNetwork(runner=runner, reader=reader, weights_hash=hashed)


def _with_hook(
    runner: TorchRunner, settings: NetworkSettings, probes: Sequence[AnyArray]
) -> tuple[TorchRunner, AnswerReader]:
    kinds = score_kinds(settings.scores)
    layer = last_layer(runner, probes, only=settings.feature_layer, kinds=kinds, task=settings.task)
    runner = replace(
        runner,
        layer=layer,
        layer_name=next((name for name, one in runner.module.named_modules() if one is layer), ""),
    )
    scores, features = runner.run(probes)
    head = head_of(layer, settings.task) if layer is not None else None
    probe = Probe(
        scores=scores, features=features, head=head, note=NO_LAYER if layer is None else None
    )
    return runner, _settle(probe, settings, runner.where)


def _with_script(
    runner: TorchRunner, settings: NetworkSettings, probes: Sequence[AnyArray]
) -> tuple[TorchRunner, AnswerReader]:
    runner, head = widened_script(runner, probes, only=settings.feature_layer, task=settings.task)
    scores, features = runner.run(probes)
    probe = Probe(
        scores=scores, features=features, head=head, note=NO_SCRIPT_LAYER if head is None else None
    )
    return runner, _settle(probe, settings, runner.where)


def _settle(probe: Probe, settings: NetworkSettings, where: str) -> AnswerReader:
    return settle(
        probe,
        kinds=score_kinds(settings.scores),
        task=settings.task,
        class_names=settings.class_names,
        where=where,
    )


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
