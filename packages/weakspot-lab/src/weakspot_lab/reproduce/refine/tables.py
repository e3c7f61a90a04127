"""The tables and plots of the Refine paper, filled with what was measured."""

from collections.abc import Iterator, Mapping
from typing import Any

from weakspot.data.charts import heat_map
from weakspot.project.refine.request import RANDOM, REFINE
from weakspot_lab.charts import line_chart
from weakspot_lab.reproduce.averages import average
from weakspot_lab.reproduce.protocol import PaperTable, Results
from weakspot_lab.reproduce.refine.numbers import (
    ARM_WORDS,
    column,
    families,
    models,
    overlap_of,
    sweep_rows,
)

TABLE_2 = ("clean", "failure", "seed", "held_out")


def tables(results: Results) -> tuple[PaperTable, ...]:
    return tuple(_tables(results))


def _tables(results: Results) -> Iterator[PaperTable]:
    yield _individual("Tables 2 and 7: individual refinement, background", _by_family(results))
    if "colour" in results:
        colours = [("", one) for one in _colours(results)]
        yield _individual("Table 3: individual refinement, colour", colours)
    if all("collective 1" in one for one in families(results).values()):
        yield _collective(results)
        yield _values(results)
    yield from _overlaps(results)
    yield _arms(results)
    if "many" in results and "sweep" in results:
        yield _many(results)
        yield _sweep(results)


def _overlaps(results: Results) -> Iterator[PaperTable]:
    """Yield failures in common: of families where every failure was kept, of the user's own models where their overlaps were."""
    known = families(results)
    names = list(known)
    if any(one["failures"] for one in known.values()):
        shares = [[overlap_of(results, one, other) for other in names] for one in names]
    else:
        (given,) = known.values()
        names, shares = [one["name"] for one in given["models"]], given["overlaps"]
    if shares:
        yield PaperTable(
            title="Figure 4 b: failures in common (intersection over union), percent",
            header=("", *names),
            rows=tuple(
                (name, *(100 * value for value in line))
                for name, line in zip(names, shares, strict=True)
            ),
            note="Of two different models each; of one with itself it is 100."
            if len(names) > len(known)
            else "Of two different models each, the mean.",
        )


def _by_family(results: Results) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, one) for name, found in families(results).items() for one in found["models"]]


def _colours(results: Results) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = results["colour"]["models"]
    return found


def _individual(title: str, rows: list[tuple[str, Mapping[str, Any]]]) -> PaperTable:
    header = (
        "model",
        "family",
        "test before",
        *TABLE_2,
        "random seed",
        "random held-out",
        "test after",
    )
    return PaperTable(
        title=title,
        header=tuple(word.replace("held_out", "held-out") for word in header),
        rows=tuple(
            (
                one["name"],
                family,
                one["arms"][REFINE]["test_before"],
                *(one["arms"][REFINE][name] for name in TABLE_2),
                one["arms"][RANDOM]["seed"],
                one["arms"][RANDOM]["held_out"],
                one["arms"][REFINE]["test_after"],
            )
            for family, one in rows
        ),
        note="All in %. Before refinement seed and held-out are zero by construction.",
    )


def _collective(results: Results) -> PaperTable:
    rows = []
    for family, found in families(results).items():
        for first, second in zip(
            found["collective 1"]["models"], found["collective 2"]["models"], strict=True
        ):
            source = ", source" if second["is_source"] else ""
            rows.append(
                (
                    f"{first['name']} ({family}{source})",
                    first["own_held_out"],
                    first["clean"],
                    first["seed"],
                    first["held_out"],
                    second["clean"],
                    second["seed"],
                    second["held_out"],
                    first["random_held_out"],
                )
            )
    return PaperTable(
        title="Table 4: collective refinement",
        header=(
            "model", "own held-out", "1: clean", "1: seed", "1: held-out", "2: clean", "2: seed", "2: held-out",
            "random held-out",
        ),
        rows=tuple(rows),
        note="Type 1: values of the failures of all networks of the family; type 2: of one, the source.",
    )  # fmt: skip


def _many(results: Results) -> PaperTable:
    given: list[Mapping[str, Any]] = results["many"]["rows"]
    rows = [
        (
            f"{one['n_models']}",
            *(
                average([model[name] for model in one["models"] if model[name] is not None]).mean
                for name in ("own_held_out", "held_out", "random_held_out", "clean")
            ),
            one["relative"],
            one["common"],
        )
        for one in given
    ]
    return PaperTable(
        title="One set of images for 2 to 40 models of all families",
        header=("models", "own held-out", "collective held-out", "random held-out", "clean", "relative", "failed by all"),
        rows=tuple(rows),
        note="Relative: failures that the one set resolves as a part of those that own sets resolve; failed by all: of the test "
        "images that any of the models gets wrong.",
    )  # fmt: skip


def _arms(results: Results) -> PaperTable:
    every = models(results)
    names = list(dict.fromkeys(name for one in every for name in one["arms"]))
    rows = []
    for name in names:
        cells = [average(column(every, name, one)).mean for one in (*TABLE_2, "test_after")]
        rows.append((ARM_WORDS.get(name, name), *cells))
    return PaperTable(
        title="Tables 9 and 11: other ways, means over all networks",
        header=("way", "clean", "failure", "seed", "held-out", "test after"),
        rows=tuple(rows),
        note="As many images (or mixtures) as the refinement has.",
    )


def _sweep(results: Results) -> PaperTable:
    return PaperTable(
        title="Figure 5: lambda and k",
        header=("lambda", "k", "held-out", "clean", "test after"),
        rows=tuple(
            (f"{one['lambda']:g}", f"{one['k']}", one["held_out"], one["clean"], one["test_after"])
            for one in sweep_rows(results)
        ),
    )


def _values(results: Results) -> PaperTable:
    rows = []
    for family, found in families(results).items():
        words = ", ".join(
            f"{value} {share:.0f} %" for value, share in found["collective 1"]["values"]
        )
        rows.append((family, words, found["collective 1"]["common"]))
    return PaperTable(
        title="Figure 4 a: the commonest values of failures that all networks of a family share",
        header=(
            "family",
            "values, share of the shared failures",
            "failed by all, of those failed by any",
        ),
        rows=tuple(rows),
    )


def plots(results: Results) -> Mapping[str, str]:
    """Return Figures 4 b and 5 in the paper's style."""
    names = list(families(results))
    if "sweep" not in results:
        return {}
    swept = sweep_rows(results)
    by_lambda = {
        f"{words}, k = 3": [(one["lambda"], one[name]) for one in swept if one["k"] == 3]  # noqa: PLR2004 - the paper's k
        for name, words in (("held_out", "held-out"), ("test_after", "test"), ("clean", "clean"))
    }
    by_k = {
        f"lambda = {weight:g}": [
            (one["k"], one["held_out"]) for one in swept if one["lambda"] == weight
        ]
        for weight in sorted({one["lambda"] for one in swept})
    }
    return {
        "lambda.svg": line_chart(
            by_lambda,
            title="Figure 5 a: how much generated images count",
            x_label="lambda",
            y_label="%",
            is_log=True,
        ),
        "overlap.svg": heat_map(
            names,
            [[overlap_of(results, one, other) for other in names] for one in names],
            title="Figure 4 b: failures in common",
        ),
        "k.svg": line_chart(
            by_k, title="Figure 5 b: values a class", x_label="k", y_label="held-out, %"
        ),
    }
