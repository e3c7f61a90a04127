"""Planted tables put to weakspot, DivExplorer and sliceline.

    python -m tables                         # from benchmarks/: 50 planted and 200 null tables; an hour or more; goes on where it stopped
    python -m tables --planted 2 --null 4 --rows 4000
    python -m tables --cost 3                # seconds and peak memory of each, in processes of their own

Answers are kept in a file of JSON lines; the table at the end is the one in docs/results/tables.md. Seeds start at 1000: smaller ones
chose settings. Null tables are smaller, so that 200 of them can be made.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tables import ours, peers
from tables.worlds import TablePlan, make_table

FIRST_SEED = 1000
NULL = TablePlan(n_rows=3_000, n_classes=3, n_columns=12, rest_rate=0.1, is_null=True)


def answer_planted(plan: TablePlan, seed: int, *, with_peers: bool) -> dict[str, object]:
    """Put one planted table to weakspot, and to the others."""
    table = make_table(plan, seed)
    answer: dict[str, object] = {"kind": "planted", "seed": seed, "ours": asdict(ours.ask(table))}
    for name, find in peers.PEERS.items() if with_peers else ():
        begun = time.perf_counter()
        answer[name] = peers.recalled(table, find(table))
        answer[f"{name} seconds"] = time.perf_counter() - begun
    return answer


def answer_null(seed: int) -> dict[str, object]:
    """Put one table without anything to find to weakspot."""
    return {"kind": "null", "seed": seed, "ours": asdict(ours.ask(make_table(NULL, seed)))}


def known_answers(path: Path) -> list[dict]:
    """Return the answers in a file; a line that was cut off is no answer."""
    known = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            known.append(json.loads(line))
        except ValueError:
            continue
    return known


def wanted(given: argparse.Namespace, known: list[dict]) -> Iterator[tuple[str, int]]:
    """Yield what is not answered yet, four null tables after every planted one."""
    answered = {(one["kind"], one["seed"]) for one in known}
    per_turn = max(1, given.null // max(given.planted, 1))
    for turn in range(max(given.planted, given.null)):
        asked = [("planted", turn)] if turn < given.planted else []
        asked += [("null", turn * per_turn + place) for place in range(per_turn)]
        for kind, place in asked:
            limit = given.planted if kind == "planted" else given.null
            if place < limit and (kind, given.first_seed + place) not in answered:
                yield kind, given.first_seed + place


def cost_of(name: str, seed: int, rows: int, answers: multiprocessing.Queue) -> None:
    """Put processor seconds, wall seconds and peak memory of one of them into a queue."""
    table = make_table(TablePlan(n_rows=rows), seed)
    begun, cpu = time.perf_counter(), time.process_time()
    ours.ask(table) if name == "weakspot" else peers.PEERS[name](table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers.put((time.process_time() - cpu, time.perf_counter() - begun, peak))


def measure_cost(given: argparse.Namespace) -> None:
    context = multiprocessing.get_context("spawn")
    for name in ("weakspot", *peers.PEERS):
        for seed in range(given.first_seed, given.first_seed + given.cost):
            answers = context.Queue()
            child = context.Process(target=cost_of, args=(name, seed, given.rows, answers))
            child.start()
            cpu, wall, peak = answers.get()
            child.join()
            print(f"{name:12} seed {seed}: {cpu:.1f} s processor, {wall:.1f} s wall, {peak:.0f} MB")


def table_of(known: list[dict]) -> str:
    """Return the figures as a Markdown table."""
    planted = [one for one in known if one["kind"] == "planted"]
    null = [one["ours"] for one in known if one["kind"] == "null"]
    lines = ["| | broad | inside | beside | all three | tables |", "|---|---|---|---|---|---|"]

    def add(title: str, found: list[list[str]]) -> None:
        names = ("broad", "inside", "beside")
        counts = [sum(name in one for one in found) for name in names]
        whole = sum(set(names) <= set(one) for one in found)
        shares = [f"{100 * count / max(len(found), 1):.0f} %" for count in (*counts, whole)]
        lines.append(f"| {title} | {' | '.join(shares)} | {len(found)} |")

    for title, field in (
        ("weakspot, confirmed", "confirmed"),
        ("weakspot, in the tree as findings", "findings"),
        ("weakspot, lines shown first", "first_lines"),
    ):
        add(title, [one["ours"][field] for one in planted])
    for name in peers.PEERS:
        told = [one[name] for one in planted if name in one]
        for way in told[0] if told else ():
            add(f"{way}, first {peers.FIRST}", [one[way] for one in told])
    if planted:
        own = [one["ours"] for one in planted]
        lines.append("")
        lines.append(
            f"Lines shown first: at most {max(one['n_first'] for one in own)}, mean {sum(one['n_first'] for one in own) / len(own):.1f}. "
            f"Findings: mean {sum(one['n_findings'] for one in own) / len(own):.1f} of {sum(one['n_confirmed'] for one in own) / len(own):.0f} "
            f"confirmed. Planted tables with a false confirmed slice: {sum(one['n_false'] > 0 for one in own)} of {len(own)}."
        )
    if null:
        n_any = sum(one["n_confirmed"] > 0 for one in null)
        lines.append(f"Null tables with any confirmed slice: {n_any} of {len(null)}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Ask for all tables that are not answered yet and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--planted", type=int, default=50)
    parser.add_argument("--null", type=int, default=200)
    parser.add_argument("--rows", type=int, default=20_000, help="of a planted table")
    parser.add_argument(
        "--peers", type=int, default=1, help="every so-many table is put to the others"
    )
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--answers", type=Path, default=Path("tables-answers.jsonl"))
    parser.add_argument(
        "--cost", type=int, default=0, help="only measure time and memory, on so many tables"
    )
    given = parser.parse_args()
    if given.cost:
        measure_cost(given)
        return
    with given.answers.open("a", encoding="utf-8") as stream:
        for kind, seed in wanted(given, known_answers(given.answers)):
            plan = TablePlan(n_rows=given.rows)
            with_peers = seed % given.peers == 0
            entry = (
                answer_planted(plan, seed, with_peers=with_peers)
                if kind == "planted"
                else answer_null(seed)
            )
            stream.write(json.dumps(entry, default=int) + "\n")
            stream.flush()
            sys.stderr.write(f"\r{kind} {seed}   ")
    sys.stdout.write("\n" + table_of(known_answers(given.answers)))


if __name__ == "__main__":
    main()
