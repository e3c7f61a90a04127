"""Features of TorchScript, whose inner layers cannot be hooked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weakspot.backends.class_scores import head_explains
from weakspot.backends.torch_features import TorchRunner, head_of
from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head

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
        prepared: probe pictures.
        only: name of the layer that is wanted, or None for the last that works.
        task: of the head.
    """
    scores = runner.forward(prepared)
    linear = [(name, layer) for name, layer in runner.module.named_modules() if getattr(layer, "original_name", "") == "Linear"]
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


def _gives_features(runner: TorchRunner, prepared: Sequence[AnyArray], scores: AnyArray, head: Head) -> bool:
    try:
        found, features = runner.run(prepared)
    except ModelError:
        return False
    if features is None or found.shape != scores.shape or features.shape[1] != head.weights.shape[1]:
        return False
    return bool(np.allclose(found, scores, atol=1e-4, rtol=1e-3)) and head_explains(head, features, scores, "logits")
