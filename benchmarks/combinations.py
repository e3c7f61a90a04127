"""All combinations of attribute values up to order 3, against a Python loop, polars and duckdb.

    pip install -r requirements-bench.txt
    python benchmarks/combinations.py

Our side counts samples and failures and adds Wilson intervals and Fisher's p-values; so does the Python loop. polars and duckdb
only group and count. The large case runs in a process of its own, so that its peak memory is its own; duckdb is timed there on some
of the attribute tuples, drawn at random, and what all of them would take is extrapolated order by order.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import time
from collections import Counter
from itertools import combinations

import numpy as np

from weakspot.core.statistics import fisher_ps, wilson_intervals
from weakspot.discover.combinations import count_combinations

MAX_ORDER = 3
FLOOR = 10
QUANTILE = 1.959963984540054
BOUNDS = {"python_loop": 1000.0, "best_group_by": 20.0, "large_duckdb": 8.0}
MAX_MEMORY_MB = 1000.0
N_REPEATS = 12


def random_codes(n_rows, n_attributes, n_values, seed=0):
    draws = np.random.default_rng(seed)
    codes = draws.integers(1, n_values + 1, (n_rows, n_attributes), dtype=np.uint8)
    failed = draws.random(n_rows, dtype=np.float32) < 0.15
    return codes, failed


def ours(codes, failed):
    found = count_combinations(codes, failed, max_order=MAX_ORDER, min_support=FLOOR)
    low, high = wilson_intervals(found.failed_inside, found.n_inside)
    outside = found.n_failed - found.failed_inside
    return (
        found,
        low,
        high,
        fisher_ps(found.failed_inside, found.n_inside, outside, found.n_samples - found.n_inside),
    )


def as_dictionary(result):
    found, low, high, p_values = result
    keys = [
        tuple((a, v) for a, v in zip(attributes, values, strict=True) if a >= 0)
        for attributes, values in zip(found.attributes.tolist(), found.codes.tolist(), strict=True)
    ]
    columns = (
        found.n_inside.tolist(),
        found.failed_inside.tolist(),
        low.tolist(),
        high.tolist(),
        p_values.tolist(),
    )
    return dict(zip(keys, zip(*columns, strict=True), strict=True))


def python_loop(codes, failed):
    """Count with dictionaries, one sample after the other, and test every combination."""
    n_inside, failed_inside = Counter(), Counter()
    for row, bad in zip(codes.tolist(), failed.tolist(), strict=True):
        values = list(enumerate(row))
        for order in range(1, MAX_ORDER + 1):
            for key in combinations(values, order):
                n_inside[key] += 1
                if bad:
                    failed_inside[key] += 1
    n_samples, n_failed = len(codes), int(failed.sum())
    found = {}
    for key, count in n_inside.items():
        if count >= FLOOR:
            bad = failed_inside[key]
            found[key] = (
                count,
                bad,
                *python_wilson(bad, count),
                python_fisher(bad, count, n_failed, n_samples),
            )
    return found


def python_wilson(successes, trials):
    rate, square = successes / trials, QUANTILE**2
    middle = rate + square / (2 * trials)
    spread = QUANTILE * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials**2))
    low = 0.0 if successes == 0 else (middle - spread) / (1 + square / trials)
    return low, 1.0 if successes == trials else (middle + spread) / (1 + square / trials)


def python_fisher(bad, n_inside, n_failed, n_samples):
    most = min(n_failed, n_inside)
    whole = (
        math.lgamma(n_samples + 1)
        - math.lgamma(n_failed + 1)
        - math.lgamma(n_samples - n_failed + 1)
    )
    chance = 0.0
    for count in range(bad, most + 1):
        rest = n_failed - count
        inside = (
            math.lgamma(n_inside + 1) - math.lgamma(count + 1) - math.lgamma(n_inside - count + 1)
        )
        n_outside = n_samples - n_inside
        outside = (
            math.lgamma(n_outside + 1) - math.lgamma(rest + 1) - math.lgamma(n_outside - rest + 1)
        )
        chance += math.exp(inside + outside - whole)
    return min(1.0, chance)


def attribute_tuples(n_attributes):
    return [
        chosen
        for order in range(1, MAX_ORDER + 1)
        for chosen in combinations(range(n_attributes), order)
    ]


def polars_frame(codes, failed):
    import polars

    columns = {
        f"a{place}": np.ascontiguousarray(codes[:, place]) for place in range(codes.shape[1])
    }
    return polars.DataFrame({**columns, "failed": failed})


def polars_groups(frame, n_attributes):
    """Group by every tuple in one call, so that polars can run them side by side."""
    import polars

    counts = [polars.len().alias("n"), polars.col("failed").sum().alias("bad")]
    plans = [
        frame.lazy()
        .group_by([f"a{place}" for place in chosen])
        .agg(counts)
        .filter(polars.col("n") >= FLOOR)
        for chosen in attribute_tuples(n_attributes)
    ]
    return polars.collect_all(plans)


def polars_dictionary(frames, n_attributes):
    found = {}
    for chosen, frame in zip(attribute_tuples(n_attributes), frames, strict=True):
        for *values, count, bad in frame.iter_rows():
            found[tuple(zip(chosen, values, strict=True))] = (count, bad)
    return found


def duckdb_table(codes, failed):
    import duckdb
    import pyarrow

    columns = {
        f"a{place}": pyarrow.array(np.ascontiguousarray(codes[:, place]))
        for place in range(codes.shape[1])
    }
    given = pyarrow.table({**columns, "failed": pyarrow.array(failed.astype(np.uint8))})
    connection = duckdb.connect()
    connection.register("given", given)
    connection.execute("CREATE TABLE samples AS SELECT * FROM given")
    connection.unregister("given")
    return connection


def duckdb_singly(connection, tuples):
    """Ask one GROUP BY for every tuple."""
    return [
        connection.execute(
            f"SELECT {names}, count(*) AS n, sum(failed) AS bad FROM samples GROUP BY {names} HAVING n >= {FLOOR}"
        ).fetchnumpy()
        for names in (", ".join(f"a{place}" for place in chosen) for chosen in tuples)
    ]


def duckdb_together(connection, tuples):
    """Ask for all tuples at once by GROUPING SETS."""
    sets = ", ".join("(" + ", ".join(f"a{place}" for place in chosen) + ")" for chosen in tuples)
    every = ", ".join(
        f"a{place}" for place in sorted({place for chosen in tuples for place in chosen})
    )
    query = f"SELECT {every}, count(*) AS n, sum(failed) AS bad FROM samples GROUP BY GROUPING SETS ({sets}) HAVING n >= {FLOOR}"
    return connection.execute(query).fetchnumpy()


def duckdb_dictionary(results, tuples):
    found = {}
    for chosen, result in zip(tuples, results, strict=True):
        columns = [
            np.asarray(result[name]).tolist()
            for name in (*(f"a{place}" for place in chosen), "n", "bad")
        ]
        for *values, count, bad in zip(*columns, strict=True):
            found[tuple(zip(chosen, values, strict=True))] = (count, int(bad))
    return found


def best_seconds(function, n_repeats):
    seconds, result = [], None
    for _ in range(n_repeats):
        started = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - started)
    return min(seconds), result


def in_turn(functions, n_repeats):
    """Run functions one after the other, again and again; return by name (best seconds, best processor seconds, result)."""
    seconds, processor, results = (
        {name: [] for name in functions},
        {name: [] for name in functions},
        {},
    )
    for _ in range(n_repeats):
        for name, function in functions.items():
            started, used = time.perf_counter(), time.process_time()
            results[name] = function()
            seconds[name].append(time.perf_counter() - started)
            processor[name].append(time.process_time() - used)
    return {name: (min(seconds[name]), min(processor[name]), results[name]) for name in functions}


def agree(result, other):
    mine = as_dictionary(result)
    assert mine.keys() == other.keys(), "the two sides found different combinations"
    for key, values in other.items():
        assert np.allclose(values, mine[key][: len(values)], rtol=1e-7, atol=1e-300), (
            key,
            values,
            mine[key],
        )


def small_case(n_rows, n_attributes, n_values):
    codes, failed = random_codes(n_rows, n_attributes, n_values)
    frame, connection, tuples = (
        polars_frame(codes, failed),
        duckdb_table(codes, failed),
        attribute_tuples(n_attributes),
    )
    sides = {
        "ours": lambda: ours(codes, failed),
        "polars": lambda: polars_groups(frame, n_attributes),
        "duckdb_singly": lambda: duckdb_singly(connection, tuples),
        "duckdb_grouping_sets": lambda: duckdb_together(connection, tuples),
    }
    in_turn(sides, 1)
    timed = in_turn(sides, N_REPEATS)
    loop_seconds, looped = best_seconds(lambda: python_loop(codes, failed), 1)
    mine, mine_processor, result = timed["ours"]
    agree(result, looped)
    agree(result, polars_dictionary(timed["polars"][2], n_attributes))
    agree(result, duckdb_dictionary(timed["duckdb_singly"][2], tuples))
    fastest = min((name for name in sides if name != "ours"), key=lambda name: timed[name][0])
    return {
        "rows": n_rows,
        "combinations": len(result[0]),
        **{f"{name}_seconds": seconds for name, (seconds, _, _) in timed.items()},
        **{f"{name}_processor_seconds": used for name, (_, used, _) in timed.items()},
        "python_loop_seconds": loop_seconds,
        "fastest_group_by": fastest,
        "python_loop": loop_seconds / mine,
        "best_group_by": timed[fastest][0] / mine,
        "best_group_by_processor": timed[fastest][1] / mine_processor,
    }


def large_ours(n_rows, n_attributes, n_values):
    import resource

    small = random_codes(1_000, n_attributes, n_values)
    ours(*small)
    codes, failed = random_codes(n_rows, n_attributes, n_values)
    seconds, result = best_seconds(lambda: ours(codes, failed), 3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "combinations": len(result[0])}))


def large_case(n_rows, n_attributes, n_values, n_sampled):
    shape = [str(number) for number in (n_rows, n_attributes, n_values)]
    command = [sys.executable, __file__, "--only-ours", *shape]
    mine = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    codes, failed = random_codes(n_rows, n_attributes, n_values)
    connection = duckdb_table(codes, failed)
    every, choice = attribute_tuples(n_attributes), random.Random(0)
    total, n_timed = 0.0, 0
    for order in range(1, MAX_ORDER + 1):
        of_order = [chosen for chosen in every if len(chosen) == order]
        sampled = choice.sample(of_order, min(n_sampled, len(of_order)))
        duckdb_singly(connection, sampled[:1])
        seconds = min(
            best_seconds(lambda tuples=sampled: duckdb_singly(connection, tuples), 2)[0],
            best_seconds(lambda tuples=sampled: duckdb_together(connection, tuples), 1)[0],
        )
        total += seconds / len(sampled) * len(of_order)
        n_timed += len(sampled)
    return {
        "large_rows": n_rows,
        "large_combinations": mine["combinations"],
        "large_ours_seconds": mine["seconds"],
        "large_peak_mb": mine["peak_mb"],
        "large_duckdb_seconds_extrapolated": total,
        "large_duckdb_tuples_timed": f"{n_timed} of {len(every)}",
        "large_duckdb": total / mine["seconds"],
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only-ours", nargs=3, type=int, metavar=("ROWS", "ATTRIBUTES", "VALUES"))
    parser.add_argument("--large-rows", type=int, default=2_000_000)
    parser.add_argument(
        "--sampled",
        type=int,
        default=20,
        help="attribute tuples of each order that duckdb is timed on",
    )
    settings = parser.parse_args()
    if settings.only_ours:
        large_ours(*settings.only_ours)
        return
    found = small_case(20_000, 10, 5)
    if settings.large_rows:
        found |= large_case(settings.large_rows, 20, 5, settings.sampled)
    print(
        json.dumps(
            {
                name: round(value, 5) if isinstance(value, float) else value
                for name, value in found.items()
            }
        )
    )
    for name, bound in BOUNDS.items():
        if name in found:
            print(
                f"{name}: {found[name]:.1f}x, wanted at least {bound:.0f}x: {'yes' if found[name] >= bound else 'NO'}"
            )
    print(
        f"best_group_by in processor time: {found['best_group_by_processor']:.1f}x (all threads added up; no bound)"
    )
    if "large_peak_mb" in found:
        peak = found["large_peak_mb"]
        print(
            f"peak memory: {peak:.0f} MB, wanted below {MAX_MEMORY_MB:.0f} MB: {'yes' if peak < MAX_MEMORY_MB else 'NO'}"
        )


if __name__ == "__main__":
    main()
