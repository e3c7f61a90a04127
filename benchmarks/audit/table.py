"""The table of the audit."""

from collections.abc import Mapping

import numpy as np

from audit.cells import Cell
from audit.questions import Answer


def table_of(cells: Mapping[str, Cell], answers: Mapping[tuple[str, int], Answer]) -> str:
    """Return the table as markdown; a promise that is missed by more than two standard errors is marked."""
    lines = [
        "| cell | sets | any false finding | allowed | planted slice confirmed | wanted | adjusted gap covers |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, cell in cells.items():
        own = [answer for (other, _), answer in sorted(answers.items()) if other == name]
        if own:
            lines.append(_row(name, cell, own))
    return "\n".join(lines) + "\n"


def _row(name: str, cell: Cell, answers: list[Answer]) -> str:
    n_sets = len(answers)
    n_false = sum(answer.n_false > 0 for answer in answers)
    n_found = sum(answer.is_found for answer in answers)
    covered = [one for answer in answers for one in answer.covered]
    has_slice = cell.plan.slice_size > 0
    wanted = "" if cell.least_found is None else f"{cell.least_found:.0%}"
    return (
        f"| {name} | {n_sets} | {_share(n_false, n_sets)}{_mark(n_false, n_sets, most=cell.most_false)} | {cell.most_false:.0%} "
        f"| {_share(n_found, n_sets) + _mark(n_found, n_sets, least=cell.least_found) if has_slice else ''} | {wanted} "
        f"| {_share(sum(covered), len(covered)) if covered else ''} |"
    )


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%} ({count})"


def _mark(count: int, total: int, *, most: float | None = None, least: float | None = None) -> str:
    share = count / total
    if most is not None and share > most + 2 * np.sqrt(most * (1 - most) / total):
        return " **missed**"
    if least is not None and share < least - 2 * np.sqrt(least * (1 - least) / total):
        return " **missed**"
    return ""
