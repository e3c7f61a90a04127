"""The exact head trainer against 1000 full-batch epochs of torch's SGD (rate 0.2, momentum 0.9, weight decay 5e-4), and its memory.

    python benchmarks/head_training.py            # about 5 minutes on two cores
    python benchmarks/head_training.py --whole    # also runs all 1000 epochs with 1000 classes; about half an hour more

Features are correlated, skewed and standardised, and their spectrum decays by a power, slowly (well-conditioned) or fast
(ill-conditioned); classes overlap. Both sides get the same single-precision features and all cores, and are judged by the same
number, taken in double precision: mean cross-entropy plus half the weight decay times the squared weights.

Two times are given for the exact solver: until it is at or below the loss of SGD, measuring and turning of features included, and
until it stops by itself. With 1000 classes a whole SGD run takes long; without --whole some epochs are timed and scaled to 1000.
The loss that SGD would have reached is then not known, and the target is 0.1 % above the loss at which the exact solver stops. SGD
might end between the two, so without --whole the ratio to the end is the safe one. Measure on an idle machine: threads of torch
that wait for each other suffer more from other work than ours do, which flatters the ratio.

Memory is the growth of the peak resident size of a child process that already holds the features, as a share of these.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np

from weakspot.core.dataset import Task
from weakspot.repair.training.objective import Problem, workers_for
from weakspot.repair.training.trainer import HeadTrainer

DECAY, RATE, MOMENTUM = 5e-4, 0.2, 0.9
EPOCHS, NEAR = 1_000, 1e-3
WANTED = {10: 40.0, 1000: 10.0}
WANTED_MEMORY = 2.0
WORLDS = {
    10: {"well-conditioned": (0.5, 0.1), "ill-conditioned": (2.0, 0.2)},
    1000: {"moderately conditioned": (1.0, 0.35)},
}
MEMORY = ((30_000, 512, 10, 40), (30_000, 512, 1000, 12), (30_000, 2048, 1000, 10))


def world(n_rows, width, n_classes, *, fall, apart):
    """Return features [n, d] and class codes [n]; the spectrum falls by a power, class means lie a part of the spread apart."""
    draws = np.random.default_rng(0)
    spectrum = (1.0 + np.arange(width)) ** (-fall / 2)
    spectrum = (spectrum * np.sqrt(width / np.square(spectrum).sum())).astype(np.float32)
    codes = draws.integers(n_classes, size=n_rows)
    centres = draws.standard_normal((n_classes, width), dtype=np.float32)
    turn = np.linalg.qr(draws.standard_normal((width, width)))[0].astype(np.float32)
    values = (
        (apart * centres[codes] + draws.standard_normal((n_rows, width), dtype=np.float32))
        * spectrum
    ) @ turn
    values = np.log1p(np.exp(2 * values))
    return np.ascontiguousarray(
        (values - values.mean(axis=0)) / values.std(axis=0), dtype=np.float32
    ), codes


def loss_of(weights, bias, features, codes):
    total, weights, bias = (
        0.0,
        np.asarray(weights, dtype=np.float64),
        np.asarray(bias, dtype=np.float64),
    )
    for first in range(0, len(features), 4_096):
        part = slice(first, first + 4_096)
        logits = features[part] @ weights.T + bias
        logits -= logits.max(axis=1, keepdims=True)
        total += float(
            (np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), codes[part]]).sum()
        )
    return total / len(features) + 0.5 * DECAY * float(np.square(weights).sum())


def by_torch(features, codes, n_classes, n_epochs):
    """Return seconds and loss of SGD; the first epoch is not timed."""
    import torch

    torch.manual_seed(0)
    layer = torch.nn.Linear(features.shape[1], n_classes)
    optimiser = torch.optim.SGD(layer.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
    inputs, targets = torch.from_numpy(features), torch.from_numpy(codes)
    started = time.perf_counter()
    for epoch in range(n_epochs + 1):
        if epoch == 1:
            started = time.perf_counter()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(layer(inputs), targets).backward()
        optimiser.step()
    seconds = time.perf_counter() - started
    return seconds, loss_of(
        layer.weight.detach().numpy(), layer.bias.detach().numpy(), features, codes
    )


class Until:
    """Stops a descent once a loss is reached."""

    def __init__(self, target):
        self.target, self.n_seen = target, 0

    def goes_on(self, layer, worth):
        """Keep the layer."""
        self.n_seen += 1
        self.layer = layer
        return worth > self.target


def reaching(features, codes, n_classes, target):
    """Return seconds, steps and loss of the exact solver at the first layer that is no worse than a target."""
    started, until = time.perf_counter(), Until(target)
    problem = Problem.of(
        features, codes, np.ones(len(features)), task=Task.SINGLE_LABEL, n_classes=n_classes
    )
    with workers_for(problem) as workers:
        solver = HeadTrainer().solver_of(problem, None, workers=workers)
        solver.descend(DECAY, solver.begin, until)
    head = solver.coordinates.outwards(until.layer, Task.SINGLE_LABEL)
    return (
        time.perf_counter() - started,
        until.n_seen - 1,
        loss_of(head.weights, head.bias, features, codes),
    )


def converging(features, codes, n_classes):
    started = time.perf_counter()
    found = HeadTrainer(penalty=DECAY).train(
        features, codes, np.ones(len(features)), task=Task.SINGLE_LABEL, n_classes=n_classes
    )
    return time.perf_counter() - started, found


def speed(n_classes, name, chosen):
    """Return the figures of one world."""
    fall, apart = WORLDS[n_classes][name]
    features, codes = world(chosen.rows, chosen.width, n_classes, fall=fall, apart=apart)
    is_whole = n_classes < 100 or chosen.whole
    n_epochs = EPOCHS if is_whole else chosen.timed
    repeats = chosen.repeats if n_classes < 100 else 1
    own_seconds, found = min(
        (converging(features, codes, n_classes) for _ in range(repeats)), key=lambda pair: pair[0]
    )
    best = loss_of(found.head.weights, found.head.bias, features, codes)
    torch_seconds, torch_loss = by_torch(features, codes, n_classes, n_epochs)
    target = torch_loss if is_whole else best * (1 + NEAR)
    seconds, n_steps, reached = min(
        reaching(features, codes, n_classes, target) for _ in range(repeats)
    )
    scaled = torch_seconds * EPOCHS / n_epochs
    return {
        "classes": n_classes,
        "features": name,
        "accuracy": round(float(np.mean(found.head.logits(features).argmax(axis=1) == codes)), 3),
        "torch_seconds_of_1000_epochs": round(scaled, 2),
        "epochs_run": n_epochs,
        "torch_loss_after_them": round(torch_loss, 7),
        "target_loss": round(target, 7),
        "reached_loss": round(reached, 7),
        "seconds_to_reach": round(seconds, 3),
        "steps_to_reach": n_steps,
        "seconds_to_converge": round(own_seconds, 3),
        "steps_to_converge": found.n_steps,
        "converged_loss": round(best, 7),
        "ratio": round(scaled / seconds, 1),
        "ratio_to_converge": round(scaled / own_seconds, 1),
    }


def peak_bytes():
    """Return the peak resident size; `getrusage` would start at the peak of the parent process."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024


def memory_child(n_rows, width, n_classes, n_steps):
    """Print what training adds to the peak of this process; features are filled in place, so that they leave no peak behind."""
    draws, features = np.random.default_rng(0), np.empty((n_rows, width), np.float32)
    for first in range(0, n_rows, 1_000):
        features[first : first + 1_000] = draws.standard_normal(
            (min(1_000, n_rows - first), width), dtype=np.float32
        )
    codes, weights = draws.integers(n_classes, size=n_rows), np.ones(n_rows)
    HeadTrainer(max_steps=2).train(
        features[:64, :8], codes[:64] % 3, weights[:64], task=Task.SINGLE_LABEL, n_classes=3
    )
    before, started = peak_bytes(), time.perf_counter()
    trainer = HeadTrainer(penalty=DECAY, max_steps=n_steps)
    found = trainer.train(features, codes, weights, task=Task.SINGLE_LABEL, n_classes=n_classes)
    figures = {
        "rows": n_rows,
        "width": width,
        "classes": n_classes,
        "features_megabytes": round(features.nbytes / 1e6),
        "added_megabytes": round((peak_bytes() - before) / 1e6),
        "share_of_features": round(1 + (peak_bytes() - before) / features.nbytes, 2),
        "seconds": round(time.perf_counter() - started, 1),
        "steps": found.n_steps,
    }
    print(json.dumps(figures))


def memory(case):
    found = subprocess.run(
        [sys.executable, __file__, "--memory", *map(str, case)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(found.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--timed", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--classes", type=int, nargs="*", default=[10, 1000])
    parser.add_argument("--without-memory", action="store_true")
    parser.add_argument("--memory", type=int, nargs=4)
    chosen = parser.parse_args()
    if chosen.memory:
        memory_child(*chosen.memory)
        return
    converging(*world(4_000, 64, 10, fall=1.0, apart=0.2), 10)
    speeds = [
        speed(n_classes, name, chosen) for n_classes in chosen.classes for name in WORLDS[n_classes]
    ]
    sizes = [] if chosen.without_memory else [memory(case) for case in MEMORY]
    print(json.dumps({"speed": speeds, "memory": sizes}))
    for one in speeds:
        print(
            f"{one['classes']} classes, {one['features']}: {one['ratio']}x torch SGD to a loss of {one['target_loss']} "
            f"({'that of 1000 epochs' if one['epochs_run'] == EPOCHS else 'epochs scaled, target not from SGD'}), "
            f"{one['ratio_to_converge']}x to the end; wanted at least {WANTED[one['classes']]}x"
        )
    for one in sizes:
        print(
            f"memory of {one['rows']} x {one['width']}, {one['classes']} classes: {one['share_of_features']}x the features, "
            f"wanted at most {WANTED_MEMORY}x"
        )


if __name__ == "__main__":
    main()
