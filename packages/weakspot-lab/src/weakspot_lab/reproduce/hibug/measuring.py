"""The steps of the HiBug protocol on networks: slices, whether they hold elsewhere, chosen and generated images, retraining."""

from dataclasses import replace

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import ByteArray, IntArray
from weakspot.core.dataset import Split
from weakspot.project.refine.training import Prompt
from weakspot.testing.scenes import factors_of
from weakspot.words.captions import with_article
from weakspot_lab.reproduce.hibug.choosing import HIBUG, WAYS, chosen_rows
from weakspot_lab.reproduce.hibug.tasks import BUDGETS, Task, TaskName, task_of
from weakspot_lab.reproduce.protocol import Context, StepResult
from weakspot_lab.reproduce.scenes.generators import RenderedPrompts
from weakspot_lab.reproduce.scenes.world import SceneWorld
from weakspot_lab.small_networks import ShapedNetwork, train_small_network

STEPS_BELOW = (0.0, 0.1, 0.2)
LIMITS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SHARES = (1.0, 2 / 3, 1 / 3, 1 / 15, 1 / 30)
"""Of the largest validation set: 15k, 10k, 5k, 1k and 0.5k in the paper."""
N_SEEDS = 3
TOP_SLICES = 200
FINE_TUNED = 2


def measure_slices(context: Context, name: TaskName) -> StepResult:
    """Count error slices by threshold and by size of the validation set, and see whether they fail on pool images too."""
    task = task_of(context, name)
    slices, validation, pool = task.combinations, task.rows(Split.VALIDATION), task.rows(Split.POOL)
    overall = float(task.is_right[validation].mean())
    accuracy = slices.accuracy(validation, task.is_right)
    seen = slices.at_most(accuracy, 1.0)
    cuts = [seen, *(slices.at_most(accuracy, overall - below) for below in STEPS_BELOW)]
    inside = [pool[chosen[slices.numbers[pool]]] for chosen in cuts]
    by_size: list[JsonValue] = []
    order = context.random("validation size", name).permutation(validation)
    for share in SHARES:
        own = np.sort(order[: max(1, round(share * len(order)))])
        found = slices.accuracy(own, task.is_right)
        limit = float(task.is_right[own].mean())
        by_size.append([len(own), int(slices.at_most(found, limit).sum())])
    return {
        "columns": list(slices.columns),
        "n_slices": int(seen.sum()),
        "accuracy": 100 * overall,
        "by_threshold": [[limit, int(slices.at_most(accuracy, limit).sum())] for limit in LIMITS],
        "pool_accuracy": [_pool_accuracy(task, rows) for rows in inside],
        "pool_counts": [len(rows) for rows in inside],
        "by_size": by_size,
        "assigned_right": _assigned(task),
    }


def _pool_accuracy(task: Task, rows: IntArray) -> float | None:
    return float(100 * task.is_right[rows].mean()) if len(rows) else None


def _assigned(task: Task) -> float | None:
    """Return how often an attribute value that was told is the true one, in %."""
    right: list[bool] = []
    known = task.world.dataset.metadata_names
    for name in (one for one in task.combinations.columns if one in known):
        told = task.samples.dataset.metadata(name).to_pylist()
        truth = task.world.dataset.metadata(name).to_pylist()
        right += [one == other for one, other in zip(told, truth, strict=True)]
    return float(100 * np.mean(right)) if right else None


def measure_selection(context: Context, name: TaskName) -> StepResult:
    """Retrain the whole network with as many pool images, chosen in different ways."""
    task = task_of(context, name)
    budget = context.request.pick(BUDGETS[name], 40)
    seeds = range(1, 1 + context.request.pick(N_SEEDS, 1))
    training = task.rows(Split.TRAIN)
    scratch: dict[str, JsonValue] = {
        "original": [_retrained(task, training, seed) for seed in seeds]
    }
    tuned: dict[str, JsonValue] = {"original": [task.error(task.network)]}
    notes: dict[str, JsonValue] = {}
    failing: dict[str, JsonValue] = {}
    for way in WAYS:
        rows, note = chosen_rows(task, way, budget, seed=context.seed_of(name, way))
        together = np.concatenate([training, rows])
        scratch[way] = [_retrained(task, together, seed) for seed in seeds]
        notes[way] = note
        failing[way] = [
            len(rows),
            float(100 * np.mean(~task.is_right[rows])) if len(rows) else None,
        ]
        if name == "two":
            tuned[way] = [_tuned(task, together, seed) for seed in seeds]
    return {
        "budget": budget,
        "scratch": scratch,
        "tuned": tuned if name == "two" else {},
        "notes": notes,
        "failing": failing,
        "after": _slices_after(task, budget, context.seed_of(name, HIBUG)),
    }


def _network(
    task: Task, images: ByteArray, labels: IntArray, seed: int, start: ShapedNetwork | None = None
) -> ShapedNetwork:
    plan = task.plan.again(seed)
    if start is not None:
        plan = replace(plan, epochs=FINE_TUNED, learning_rate=plan.learning_rate / 4)
    return train_small_network(
        plan, images, labels, n_classes=task.world.dataset.n_classes, start=start
    )


def _retrained(task: Task, rows: IntArray, seed: int) -> float:
    world = task.world
    return task.error(_network(task, world.images[rows], world.dataset.labels[rows], seed))


def _tuned(task: Task, rows: IntArray, seed: int) -> float:
    world = task.world
    network = _network(task, world.images[rows], world.dataset.labels[rows], seed, task.network)
    return task.error(network)


def _slices_after(task: Task, budget: int, seed: int) -> list[JsonValue]:
    """Return how many slices are ten points below the network before and after retraining with the paper's choice."""
    rows, _ = chosen_rows(task, HIBUG, budget, seed=seed)
    together = np.concatenate([task.rows(Split.TRAIN), rows])
    labels = task.world.dataset.labels
    network = _network(task, task.world.images[together], labels[together], 1)
    test = task.rows(Split.TEST)
    is_right = task.is_right.copy()
    is_right[test] = network.logits(task.world.images[test]).argmax(axis=1) == labels[test]
    limit = float(task.is_right[test].mean()) - STEPS_BELOW[1]
    slices = task.combinations
    counts = [
        int(slices.at_most(slices.accuracy(test, right), limit).sum())
        for right in (task.is_right, is_right)
    ]
    return [counts[0], counts[1]]


def measure_generation(context: Context) -> StepResult:
    """Retrain with generated images: from bare class names, and from the values of the worst slices."""
    task = task_of(context, "few")
    sizes = context.request.pick((200, 1000, 2000), (40, 80))
    assert isinstance(task.world, SceneWorld)
    images = RenderedPrompts(world=task.world, networks={}, seed=context.seed_of("generation"))
    seeds = range(1, 1 + context.request.pick(N_SEEDS, 1))
    rows: list[JsonValue] = []
    for way, prompts in (("class name", _bare(task)), ("hibug", slice_prompts(task))):
        pixels, labels = _generated(task, images, prompts, max(sizes))
        said = task.network.logits(pixels).argmax(axis=1)
        for size in sizes:
            rows.append(
                {
                    "way": way,
                    "n_images": size,
                    "error_on_generated": float(100 * np.mean(said[:size] != labels[:size])),
                    "errors": [
                        _with_generated(task, pixels[:size], labels[:size], seed) for seed in seeds
                    ],
                }
            )
    return {
        "rows": rows,
        "original": [_retrained(task, task.rows(Split.TRAIN), seed) for seed in seeds],
    }


def _with_generated(task: Task, pixels: ByteArray, labels: IntArray, seed: int) -> float:
    rows = task.rows(Split.TRAIN)
    together = np.concatenate([task.world.images[rows], pixels])
    targets = np.concatenate([task.world.dataset.labels[rows], labels])
    return task.error(_network(task, together, targets, seed))


def _bare(task: Task) -> list[Prompt]:
    return [
        Prompt(name, f"A photo of {with_article(name)}") for name in task.world.dataset.class_names
    ]


def slice_prompts(task: Task) -> list[Prompt]:
    """Return prompts of the worst slices of every class, worst first, one class after the other."""
    slices, rows = task.combinations, task.rows(Split.VALIDATION)
    labels = task.world.dataset.labels
    own: list[list[Prompt]] = []
    for code, name in enumerate(task.world.dataset.class_names):
        mine = rows[labels[rows] == code]
        accuracy = slices.accuracy(mine, task.is_right)
        known = np.flatnonzero(slices.failures(mine, task.is_right) > 0)
        order = known[np.argsort(accuracy[known], kind="stable")][:TOP_SLICES]
        own.append(
            [Prompt(name, _prompt(name, slices.values[one])) for one in order]
            or [Prompt(name, name)]
        )
    longest = max(map(len, own))
    return [mine[place % len(mine)] for place in range(longest) for mine in own]


def _prompt(name: str, values: tuple[str, ...]) -> str:
    """Return a prompt with the values of a slice.

    >>> _prompt("disc", ("grassy", "red", "dark"))
    'A photo of a red disc, grassy background, dark light'
    """
    shown = {factor: found[0] for value in values for factor, found in factors_of(value).items()}
    words = " ".join(filter(None, [shown.get("size"), shown.get("colour"), name]))
    rest = [
        f"{shown[factor]} {noun}"
        for factor, noun in (("background", "background"), ("lighting", "light"))
        if factor in shown
    ]
    return ", ".join([f"A photo of {with_article(words)}", *rest])


def _generated(
    task: Task, images: RenderedPrompts, prompts: list[Prompt], n_images: int
) -> tuple[ByteArray, IntArray]:
    """Return so many images [n, 32, 32, 3] and their classes [n], prompts in turn."""
    turns = [prompts[place % len(prompts)] for place in range(n_images)]
    counts = {prompt: turns.count(prompt) for prompt in dict.fromkeys(turns)}
    drawn = {prompt: iter(images.pixels(prompt, number)) for prompt, number in counts.items()}
    pixels = np.stack([next(drawn[prompt]) for prompt in turns])
    codes = [task.world.dataset.class_code(prompt.class_name) for prompt in turns]
    return pixels, np.array(codes, dtype=np.int64)
