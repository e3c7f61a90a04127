"""The audit: error rates, power and coverage of what the product says, on tables that share nothing with its own test worlds.

    python -m audit                        # from benchmarks/: every cell, 200 sets each; hours on two cores, goes on where it stopped
    python -m audit --sets 20 --cells "null: independent"

Every set is a project made through the public interface. Answers are kept in a file of JSON lines, one a set; the table at the end is
the one in docs/results/audit.md. Seeds start at 1000: smaller ones chose settings.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from audit.cells import CELLS, Cell
from audit.questions import Answer
from audit.table import table_of

FIRST_SEED = 1000


def answer_of(name: str, seed: int) -> dict[str, object]:
    """Make one set of a cell, ask, and return what became of it."""
    cell = CELLS[name]
    answer = cell.ask(cell.make(cell.plan, seed))
    return {"cell": name, "seed": seed, **asdict(answer)}


def known_answers(path: Path) -> dict[tuple[str, int], Answer]:
    """Return the answers in a file; a line that was cut off is no answer."""
    known = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
            key = entry.pop("cell"), entry.pop("seed")
            known[key] = Answer(**entry)
        except (ValueError, KeyError, TypeError):
            continue
    return known


def run_cells(
    cells: dict[str, Cell], *, n_sets: int, first_seed: int, path: Path, jobs: int
) -> None:
    """Ask for all sets that are not answered yet, a set of every cell in turn, so that all cells grow alike."""
    known = known_answers(path)
    wanted = [
        (name, seed)
        for seed in range(first_seed, first_seed + n_sets)
        for name in cells
        if (name, seed) not in known
    ]
    with ProcessPoolExecutor(jobs) as pool, path.open("a", encoding="utf-8") as stream:
        names, seeds = ([pair[side] for pair in wanted] for side in (0, 1))
        for number, entry in enumerate(pool.map(answer_of, names, seeds), start=1):
            stream.write(json.dumps(entry) + "\n")
            stream.flush()
            sys.stderr.write(f"\r{number} of {len(wanted)} sets")


def main() -> None:
    """Run the audit and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=200, help="sets of every cell")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument(
        "--cells", nargs="*", default=[], help=f"among: {'; '.join(CELLS).replace('%', '%%')}"
    )
    parser.add_argument("--answers", type=Path, default=Path("audit-answers.jsonl"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    unknown = [name for name in given.cells if name not in CELLS]
    if unknown:
        parser.error(f"There is no cell {unknown[0]!r}. Choose among: {'; '.join(CELLS)}.")
    cells = {name: cell for name, cell in CELLS.items() if not given.cells or name in given.cells}
    run_cells(
        cells,
        n_sets=given.sets,
        first_seed=given.first_seed,
        path=given.answers,
        jobs=given.jobs,
    )
    sys.stdout.write("\n" + table_of(cells, known_answers(given.answers)))


if __name__ == "__main__":
    main()
