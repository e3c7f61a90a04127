"""Small networks trained from scratch in seconds: what experiments retrain where the papers retrain a ResNet."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, get_args

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, ByteArray, DoubleArray, FloatArray, IntArray
from weakspot.core.bounds import Bounds, Count, NonNegativeInt, Positive, check_bounds
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.heads import Head
from weakspot.models.loading import require_library
from weakspot.models.torch.runtime import require_torch

NetworkShape = Literal[
    "plain", "average", "residual", "wide", "separable", "patches", "dense", "coarse"
]
SHAPES: tuple[NetworkShape, ...] = get_args(NetworkShape)
PURPOSE = "small networks"
MAX_PASS = 1024
GRADIENT_NORM = 2.0


@dataclass(frozen=True, kw_only=True)
class ShapedPlan:
    """What network is trained, and how.

    Args:
        shape: `plain` three strided convolutions and the largest activation of each channel; `average` the same with means;
            `residual` blocks with a shortcut; `wide` kernels of 5 x 5; `separable` convolutions of one channel each; `patches`
            blocks on patches of 4 x 4; `dense` two layers without convolution; `coarse` convolutions on halved images.
        width: channels of the first layer; there are four times as many features.
        seed: of the first weights and of the order of samples.
        epochs: passes over the training samples.
        learning_rate: the largest; it rises and falls once.
        batch: samples of a step.
    """

    shape: NetworkShape = "plain"
    width: Annotated[int, Bounds(ge=2)] = 16
    seed: NonNegativeInt = 0
    epochs: Count = 10
    learning_rate: Positive = 0.01
    batch: Annotated[int, Bounds(ge=2)] = 64

    def __post_init__(self) -> None:
        known = [] if self.shape in SHAPES else [f"shape must be one of {list(SHAPES)}"]
        check_bounds(self, where="network", problems=known)

    @property
    def name(self) -> str:
        return f"{self.shape}-{self.width}-{self.seed}"

    def again(self, seed: int) -> "ShapedPlan":
        """Return the same network from other first weights."""
        return replace(self, seed=seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShapedNetwork:
    """A trained network.

    Args:
        plan: what was trained.
        module: features, then the last layer.
    """

    plan: ShapedPlan
    module: Any

    def features(self, images: ByteArray) -> FloatArray:
        """Return what the last layer sees [n, d] of images [n, h, w, 3]."""
        return self._passed(images, self.module[0])

    def logits(self, images: ByteArray) -> FloatArray:
        """Return scores [n, c] of images [n, h, w, 3]."""
        return self._passed(images, self.module)

    def probabilities(self, images: ByteArray) -> FloatArray:
        """Return probabilities [n, c] of images [n, h, w, 3]."""
        scores = self.logits(images).astype(np.float64)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float32)

    @property
    def last_layer(self) -> tuple[FloatArray, FloatArray]:
        """Return weights [c, d] and bias [c]."""
        layer = self.module[1]
        return layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()

    def _passed(self, images: ByteArray, module: Any) -> FloatArray:
        import torch

        found = []
        with torch.inference_mode(), _one_thread():
            for first in range(0, max(len(images), 1), MAX_PASS):
                found.append(module(_image_tensor(images[first : first + MAX_PASS])).numpy())
        return np.concatenate(found)


def train_small_network(
    plan: ShapedPlan,
    images: ByteArray,
    labels: IntArray,
    *,
    n_classes: int,
    start: ShapedNetwork | None = None,
) -> ShapedNetwork:
    """Train a network; on one machine the same arguments give the same network.

    Args:
        plan: which one.
        images: [n, h, w, 3].
        labels: class codes [n].
        n_classes: outputs of the last layer.
        start: go on from this network instead of from first weights.

    Raises:
        MissingExtraError: if torch is not installed.
    """
    torch = require_torch(PURPOSE)
    with torch.random.fork_rng(devices=[]), _one_thread():
        torch.manual_seed(plan.seed)
        if start is None:
            body = _body(plan, side=int(images.shape[1]))
            module = torch.nn.Sequential(body, torch.nn.Linear(4 * plan.width, n_classes))
        else:
            import copy

            module = copy.deepcopy(start.module)
        _fit(
            module,
            plan,
            _image_tensor(images),
            torch.from_numpy(np.asarray(labels, dtype=np.int64)),
        )
    module.eval()
    return ShapedNetwork(plan=plan, module=module)


def _fit(module: Any, plan: ShapedPlan, images: Any, labels: Any) -> None:
    import torch

    n_steps = max(1, len(images) // plan.batch)
    optimiser = torch.optim.AdamW(module.parameters(), lr=plan.learning_rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, plan.learning_rate, total_steps=plan.epochs * n_steps + 1
    )
    module.train()
    for _ in range(plan.epochs):
        order = torch.randperm(len(images))
        for step in range(n_steps):
            chosen = order[step * plan.batch : (step + 1) * plan.batch]
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(images[chosen]), labels[chosen])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), GRADIENT_NORM)
            optimiser.step()
            schedule.step()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread: sums come in the same order on every machine, and small layers gain nothing by more."""
    import torch

    n_before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_before)


def _image_tensor(images: AnyArray) -> Any:
    import torch

    scaled = np.ascontiguousarray(images.transpose(0, 3, 1, 2), dtype=np.float32) / 127.5 - 1.0
    return torch.from_numpy(scaled)


def _body(plan: ShapedPlan, *, side: int) -> Any:
    from torch import nn

    width = plan.width
    if plan.shape == "dense":
        first = nn.Linear(3 * side * side, 8 * width)
        return nn.Sequential(
            nn.Flatten(), first, nn.ReLU(), nn.Linear(8 * width, 4 * width), nn.ReLU()
        )
    if plan.shape == "patches":
        layers = [nn.Conv2d(3, 4 * width, 4, stride=4), nn.ReLU()]
        layers += [_residual(_separable(4 * width, 4 * width, kernel=5)) for _ in range(2)]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    kernel = 5 if plan.shape == "wide" else 3
    steps = [(3, width), (width, 2 * width), (2 * width, 4 * width)]
    layers = [nn.AvgPool2d(2)] if plan.shape == "coarse" else []
    for place, (inputs, outputs) in enumerate(steps):
        is_separable = plan.shape == "separable" and place > 0
        make = _separable if is_separable else _convolution
        layers.append(make(inputs, outputs, kernel=kernel, stride=2))
        if plan.shape == "residual" and place < len(steps) - 1:
            layers.append(_residual(_convolution(outputs, outputs, kernel=3)))
    means = plan.shape in {"average", "residual"}
    pool = nn.AdaptiveAvgPool2d(1) if means else nn.AdaptiveMaxPool2d(1)
    return nn.Sequential(*layers, pool, nn.Flatten())


def _convolution(inputs: int, outputs: int, *, kernel: int, stride: int = 1) -> Any:
    from torch import nn

    layer = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())


def _separable(inputs: int, outputs: int, *, kernel: int, stride: int = 1) -> Any:
    from torch import nn

    each = nn.Conv2d(inputs, inputs, kernel, stride=stride, padding=kernel // 2, groups=inputs)
    mixed = nn.Conv2d(inputs, outputs, 1, bias=False)
    return nn.Sequential(each, nn.ReLU(), mixed, nn.BatchNorm2d(outputs), nn.ReLU())


def _residual(inner: Any) -> Any:
    """Return a module that adds its input to what another one makes of it."""
    from torch import nn

    class Residual(nn.Module):  # type: ignore[misc] # torch has no types here
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, given: Any) -> Any:
            return given + self.inner(given)

    return Residual()


IMAGE_DIMENSIONS = 4
CHUNK = 2048


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """How a small network is built and trained.

    Args:
        width: channels of the first of three convolutions, or half the hidden units over vectors.
        n_epochs: passes over the training samples.
        batch_size: samples a step.
        peak_rate: the learning rate rises to this linearly and falls to zero, as in the Directions paper.
        peak_epoch: when it is reached.
        momentum: of the descent.
        weight_decay: of the descent.
        loss: `cross-entropy`, or `generalised` cross-entropy, which holds on to what is easy, as in Learning from Failure;
            multi-label tasks take the binary cross-entropy of every label.
        exponent: q of the generalised cross-entropy.
        seed: the only source of chance.
    """

    width: int = 16
    n_epochs: int = 12
    batch_size: int = 64
    peak_rate: float = 0.1
    peak_epoch: float = 2.0
    momentum: float = 0.9
    weight_decay: float = 5e-4
    loss: Literal["cross-entropy", "generalised"] = "cross-entropy"
    exponent: float = 0.7
    seed: int = 0

    def rate(self, epoch: float) -> float:
        """Return the learning rate at a time.

        >>> plan = NetworkPlan(n_epochs=10, peak_epoch=2.0, peak_rate=0.1)
        >>> [round(plan.rate(epoch), 3) for epoch in (0.0, 1.0, 2.0, 6.0, 10.0)]
        [0.0, 0.05, 0.1, 0.05, 0.0]
        """
        points = [0.0, min(self.peak_epoch, self.n_epochs / 2), float(self.n_epochs)]
        return float(np.interp(epoch, points, [0.0, self.peak_rate, 0.0]))


@dataclass(frozen=True, kw_only=True, eq=False)
class SmallNetwork:
    """A trained network.

    Args:
        body: everything but the last layer.
        head: the last layer.
        kept: the same network after earlier epochs, by epoch.
    """

    body: Any
    head: Head
    kept: dict[int, "SmallNetwork"] = field(default_factory=dict)

    def features(self, inputs: AnyArray) -> FloatArray:
        """Return what the last layer sees [n, d]."""
        torch = _torch()
        with torch.no_grad():
            parts = [
                self.body(_tensor(inputs[start : start + CHUNK])).numpy()
                for start in range(0, len(inputs), CHUNK)
            ]
        return np.concatenate(parts) if parts else np.zeros((0, 1), dtype=np.float32)

    def probabilities(self, inputs: AnyArray) -> FloatArray:
        """Return class probabilities [n, c]."""
        return self.head.probabilities(self.features(inputs))


def train_network(
    inputs: AnyArray,
    labels: IntArray | BoolArray,
    *,
    n_classes: int,
    plan: NetworkPlan,
    weights: DoubleArray | None = None,
    keep_epochs: tuple[int, ...] = (),
) -> SmallNetwork:
    """Train a network from scratch; the same input and seed give the same network on one machine.

    Args:
        inputs: images [n, h, w, 3] of bytes, or vectors [n, d].
        labels: class codes [n], or for a multi-label task which labels each sample has [n, c].
        n_classes: how many classes there are.
        plan: how.
        weights: what each sample counts in the loss; all alike by default.
        keep_epochs: epochs after which a copy of the network is kept, for references that stop early.

    Raises:
        DataError: if inputs and labels do not belong together.
        MissingExtraError: if torch is not installed.
    """
    if len(inputs) != len(labels) or not len(inputs):
        raise DataError(
            "There must be one label for every training sample, and at least one sample.",
            given=(len(inputs), len(labels)),
        )
    torch = _torch()
    drawn = np.random.default_rng(plan.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        body, last = _build(torch, inputs, n_classes, plan)
    task = Task.SINGLE_LABEL if labels.ndim == 1 else Task.MULTI_LABEL
    every, truth = _tensor(inputs), torch.from_numpy(np.asarray(labels, dtype=np.int64))
    counts = torch.from_numpy(
        np.ones(len(labels), dtype=np.float32)
        if weights is None
        else np.asarray(weights / np.mean(weights), dtype=np.float32)
    )
    parameters = [*body.parameters(), *last.parameters()]
    optimiser = torch.optim.SGD(
        parameters, lr=plan.peak_rate, momentum=plan.momentum, weight_decay=plan.weight_decay
    )
    kept: dict[int, SmallNetwork] = {}
    for epoch, places in _batches(len(labels), plan, drawn):
        optimiser.param_groups[0]["lr"] = plan.rate(epoch)
        optimiser.zero_grad()
        losses = _losses(torch, last(body(every[places])), truth[places], plan)
        (losses * counts[places]).mean().backward()
        optimiser.step()
        done = round(epoch, 6)
        if done in keep_epochs and done not in kept:
            kept[int(done)] = _copy(torch, inputs, plan, body, _head(last, task))
    body.eval()
    return SmallNetwork(body=body, head=_head(last, task), kept=kept)


def _batches(
    n_samples: int, plan: NetworkPlan, drawn: np.random.Generator
) -> Iterator[tuple[float, IntArray]]:
    """Yield the time in epochs and the samples of every step."""
    n_steps = -(-n_samples // plan.batch_size)
    for epoch in range(plan.n_epochs):
        order = drawn.permutation(n_samples)
        for step in range(n_steps):
            places = order[step * plan.batch_size : (step + 1) * plan.batch_size]
            yield epoch + (step + 1) / n_steps, places


def _losses(torch: Any, scores: Any, truth: Any, plan: NetworkPlan) -> Any:
    if truth.ndim > 1:
        each = torch.nn.functional.binary_cross_entropy_with_logits(
            scores, truth.to(scores.dtype), reduction="none"
        )
        return each.mean(dim=1)
    if plan.loss == "cross-entropy":
        return torch.nn.functional.cross_entropy(scores, truth, reduction="none")
    likely = torch.softmax(scores, dim=1).gather(1, truth[:, None])[:, 0].clamp_min(1e-6)
    return (1.0 - likely**plan.exponent) / plan.exponent


def _build(torch: Any, inputs: AnyArray, n_classes: int, plan: NetworkPlan) -> tuple[Any, Any]:
    nn, width = torch.nn, plan.width
    if inputs.ndim != IMAGE_DIMENSIONS:
        body = nn.Sequential(
            nn.Linear(inputs.shape[1], 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.ReLU()
        )
        return body, nn.Linear(width, n_classes)
    layers: list[Any] = []
    channels = 3
    for number in range(3):
        wider = width * 2**number
        layers += [
            nn.Conv2d(channels, wider, 3, padding=1, bias=False),
            nn.BatchNorm2d(wider),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        channels = wider
    body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return body, nn.Linear(channels, n_classes)


def _copy(torch: Any, inputs: AnyArray, plan: NetworkPlan, body: Any, head: Head) -> SmallNetwork:
    with torch.random.fork_rng(devices=[]):
        other, _ = _build(torch, inputs, len(head.bias), plan)
    other.load_state_dict(body.state_dict())
    other.eval()
    return SmallNetwork(body=other, head=head)


def _head(last: Any, task: Task) -> Head:
    return Head(
        weights=last.weight.detach().numpy().copy(),
        bias=last.bias.detach().numpy().copy(),
        task=task,
    )


def _tensor(inputs: AnyArray) -> Any:
    torch = _torch()
    if inputs.ndim != IMAGE_DIMENSIONS:
        return torch.from_numpy(np.asarray(inputs, dtype=np.float32))
    scaled = np.asarray(inputs, dtype=np.float32) / 127.5 - 1.0
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(scaled, 3, 1)))


def _torch() -> Any:
    return require_library("torch", extra="torch", purpose="networks trained from scratch")
