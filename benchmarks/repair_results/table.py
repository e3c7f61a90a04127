"""Results as Markdown tables."""

from collections.abc import Mapping, Sequence

from repair_results.figures import Average, Figures, average, by_unit, in_order

NOTHING = ""


def percent(value: float | None) -> str:
    """Return a share as people read it."""
    return NOTHING if value is None else f"{100 * value:.1f}"


def points(found: Average | None) -> str:
    """Return a change in percentage points with its interval."""
    return (
        NOTHING
        if found is None
        else f"{100 * found.mean:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
    )


def with_error(found: Average | None) -> str:
    """Return a mean share with its standard error."""
    if found is None:
        return NOTHING
    return (
        f"{100 * found.mean:.1f} ± {100 * found.error:.1f}"
        if found.n_units > 1
        else f"{100 * found.mean:.1f}"
    )


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first are numbers."""
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


CHANGES: Mapping[str, str] = {
    "slice change": "slice, points",
    "overall change": "overall, points",
    "rest change": "rest of the class, points",
    "worst change": "worst group, points",
}


def change_table(
    figures: Sequence[Figures], part: str, changes: Mapping[str, str] = CHANGES
) -> str:
    """Return one row an arm: accuracy of the slice before and after, and changes with intervals over units."""
    rows = []
    for arm in in_order([one for one in figures if one.part == part], lambda one: one.arm):
        before, after = (
            average(list(by_unit(figures, part, arm, f"slice {when}").values()))
            for when in ("before", "after")
        )
        if before is None or after is None:
            continue
        cells = [
            points(average(list(by_unit(figures, part, arm, name).values()))) for name in changes
        ]
        rows.append([arm, str(before.n_units), percent(before.mean), percent(after.mean), *cells])
    return markdown(["arm", "n", "slice before, %", "after, %", *changes.values()], rows)


def notes(figures: Sequence[Figures], part: str) -> str:
    """Return why arms have no figures, each reason once with how often it came."""
    blank = [one for one in figures if one.part == part and not one.values and one.note]
    counted = [
        (line, sum(f"{one.arm}: {one.note}" == line for one in blank))
        for line in in_order(blank, lambda one: f"{one.arm}: {one.note}")
    ]
    return "\n".join(f"- {line} ({count} of the units)" for line, count in counted)
