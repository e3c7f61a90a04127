"""Measure false alarms and power: `python benchmarks/preflight --seeds 100`."""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from preflight.worlds import (
    HEALTHY,
    ORDERS,
    PLAIN,
    WAYS,
    disordered_answers,
    healthy_answers,
    write_images,
)
from weakspot.core.run import CheckState
from weakspot.core.statistics import exact_interval
from weakspot.data.open_source import open_source
from weakspot.models.onnx.classifier import OnnxClassifier
from weakspot.run.preflight.classifier import check_class_order, check_classifier, named_outputs
from weakspot.run.preflight.source_look import look_at_source
from weakspot.run.settings import PartSettings, Settings


def main() -> None:
    """Print two tables: planted answers, and planted images with ONNX classifiers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument(
        "--first",
        type=int,
        default=2000,
        help="First seed; lower ones were used to choose the bars.",
    )
    parser.add_argument("--images", type=int, default=25, help="Image worlds per way.")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    print("| answers | sets | PROBLEM | right order named |\n|---|---|---|---|")
    for kind in HEALTHY:
        _row(f"healthy: {kind}", [_order(healthy_answers(kind, seed)) for seed in seeds])
    for kind in ORDERS:
        _row(f"wrong: {kind}", [_order(*disordered_answers(kind, seed)) for seed in seeds])
    print(
        "\n| images are expected as | sets | PROBLEM | right options | seconds, median |\n|---|---|---|---|---|"
    )
    for name in WAYS:
        _image_row(name, range(given.first, given.first + given.images), is_set=False)
    _image_row("each way, set rightly", seeds, is_set=True)


def _order(answers, truth=(), outputs=None):
    check, order = check_class_order(answers, outputs or answers.class_names)
    is_problem = check is not None and check.state is CheckState.PROBLEM
    if not is_problem or order is None:
        return is_problem, False
    meant = np.array(
        [
            answers.class_names.index(name)
            for name in named_outputs(order, answers.class_names, answers.class_names)
        ]
    )
    return is_problem, list(meant) == list(truth)


def _row(name: str, found) -> None:
    problems, right = (sum(one[place] for one in found) for place in (0, 1))
    low, high = exact_interval(problems, len(found))
    print(
        f"| {name} | {len(found)} | {problems} ({100 * low:.0f}-{100 * high:.0f} %) | {right} |",
        flush=True,
    )


def _image_row(name: str, seeds, *, is_set: bool) -> None:
    n_problems, n_right, seconds = 0, 0, []
    for seed in seeds:
        ways = list(WAYS.values())
        way = ways[seed % len(ways)] if is_set else WAYS[name]
        checks, spent = _checked(way, seed, is_set=is_set)
        seconds.append(spent)
        found = [check for check in checks if check.state is CheckState.PROBLEM]
        n_problems += bool(found)
        n_right += any(
            check.check == "preprocessing" and _is_right(check.settings_line, way)
            for check in found
        )
    low, high = exact_interval(n_problems, len(seconds))
    print(
        f"| {name} | {len(seconds)} | {n_problems} ({100 * low:.0f}-{100 * high:.0f} %) | {n_right} | {np.median(seconds):.2f} |",
        flush=True,
    )


def _checked(way, seed: int, *, is_set: bool):
    draws = np.random.default_rng([seed, 7])
    spread = float(draws.uniform(0.04, 0.25))
    n_classes = int(draws.integers(3, 9))
    with tempfile.TemporaryDirectory() as folder:
        world = write_images(Path(folder), way=way, seed=seed, n_classes=n_classes, spread=spread)
        options = _options(way) if is_set else {}
        settings = Settings(
            classifier=PartSettings(name="onnx", options={"path": "model.onnx", **options})
        )
        classifier = OnnxClassifier(
            path=world.folder / "model.onnx", class_names=world.class_names, **options
        )
        look = look_at_source(open_source(str(world.folder / "manifest.csv")))
        begun = time.perf_counter()
        checks = check_classifier(look, classifier, settings)
        return checks, time.perf_counter() - begun


def _options(way):
    return {
        "colour": way.colour,
        "scale": way.scale,
        "mean": list(way.mean),
        "std": list(way.std),
        "crop": way.crop,
    }


def _is_right(line: str, way) -> bool:
    import tomllib

    options = tomllib.loads(line)["options"]
    return all(
        options.get(
            name, list(getattr(PLAIN, name)) if name in ("mean", "std") else getattr(PLAIN, name)
        )
        == value
        for name, value in _options(way).items()
    )


if __name__ == "__main__":
    main()
