"""The CIFAR-10 results as Markdown."""

from collections.abc import Sequence

import numpy as np

from repair_results.figures import Figures, average, by_unit, in_order, paired
from repair_results.table import markdown, points, with_error

ALL = "all classes"
BEFORE, RANDOM = "before", "at random"
CLOSEST = (10, 20, 30, 40, 50)
PLACES = {"name": "closest to the hard name", "direction": "deepest along the direction"}


def cifar_page(figures: Sequence[Figures]) -> str:
    """Return overall accuracy, accuracy of the hardest images per number of images and per class, and the names."""
    text = [
        "Accuracy in %, mean ± standard error over runs; differences in points with a 95 % interval.",
        "",
    ]
    text += ["## Overall, all test images", "", _overall(figures), ""]
    for place, title in PLACES.items():
        text += [
            f"## The test images of every class {title}, mean over classes",
            "",
            _closest(figures, place),
            "",
        ]
        text += [
            f"### Per class, the {CLOSEST[-1]} test images {title}",
            "",
            _per_class(figures, place),
            "",
        ]
    return "\n".join([*text, "## Hard names", "", _names(figures)])


def over_classes(figures: Sequence[Figures], arm: str, name: str) -> dict[str, float]:
    """Return for every run the mean of a measure over classes."""
    own = [one for one in figures if one.arm == arm and one.part != ALL and name in one.values]
    return {
        unit: float(np.mean([one.values[name] for one in own if one.unit == unit]))
        for unit in in_order(own, lambda one: one.unit)
    }


def _arms(figures: Sequence[Figures]) -> tuple[str, ...]:
    return in_order(figures, lambda one: one.arm)


def _against_random(arm: str, values: dict[str, float], random: dict[str, float]) -> str:
    return "" if arm in (BEFORE, RANDOM) else points(paired(values, random))


def _overall(figures: Sequence[Figures]) -> str:
    random = by_unit(figures, ALL, RANDOM, "overall")
    rows = []
    for arm in _arms(figures):
        values = by_unit(figures, ALL, arm, "overall")
        rows.append(
            [arm, with_error(average(list(values.values()))), _against_random(arm, values, random)]
        )
    return markdown(["added", "accuracy, %", "against random, points"], rows)


def _closest(figures: Sequence[Figures], place: str) -> str:
    rows = []
    for arm in _arms(figures):
        values = {count: over_classes(figures, arm, f"{place} {count}") for count in CLOSEST}
        cells = [with_error(average(list(values[count].values()))) for count in CLOSEST]
        random = over_classes(figures, RANDOM, f"{place} {CLOSEST[-1]}")
        rows.append([arm, *cells, _against_random(arm, values[CLOSEST[-1]], random)])
    return markdown(
        ["added", *(f"K = {count}" for count in CLOSEST), f"against random, K = {CLOSEST[-1]}"],
        rows,
    )


def _per_class(figures: Sequence[Figures], place: str) -> str:
    name = f"{place} {CLOSEST[-1]}"
    classes = [part for part in in_order(figures, lambda one: one.part) if part != ALL]
    rows = [
        [
            part,
            *(
                with_error(average(list(by_unit(figures, part, arm, name).values())))
                for arm in _arms(figures)
            ),
        ]
        for part in classes
    ]
    return markdown(["class", *_arms(figures)], rows)


def _names(figures: Sequence[Figures]) -> str:
    """Return the hard name of every class in every run, and how strong its direction is."""
    own = [one for one in figures if one.part != ALL and one.arm == BEFORE]
    rows = []
    for part in in_order(own, lambda one: one.part):
        strength = average(list(by_unit(own, part, BEFORE, "strength").values()))
        rows.append(
            [
                part,
                f"{strength.mean:.2f}" if strength else "",
                "; ".join(one.note for one in own if one.part == part),
            ]
        )
    return markdown(["class", "strength", "names, one a run"], rows)
