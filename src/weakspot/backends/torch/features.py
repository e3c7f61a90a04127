"""Running a torch module and reading the features under its last linear layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weakspot.backends.class_scores import head_explains
from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head

SCORE_FIELDS = ("logits", "scores", "probabilities", "out", "output")
NO_LAYER = "the module has no linear layer that sees one embedding an image"
NO_SCRIPT_LAYER = "the script has no linear layer that gives its scores directly (frozen, or followed by a soft-max)"
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
                f"The module fails on a batch: {type(error).__name__}: {_last_line(error)}",
                where=self.where,
                given=tuple(batch.shape),
                fix="Check image_side, layout and dtype.",
            ) from error


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[-1][:300]


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
