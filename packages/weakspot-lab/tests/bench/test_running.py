import json

import pytest

from weakspot.core.errors import ConfigError
from weakspot_lab.bench.choice import BenchChoice, chosen_problems
from weakspot_lab.bench.pages import BenchJournal
from weakspot_lab.bench.running import BenchPlan, run_bench, write_bench
from weakspot_lab.bench.scores import MethodScore
from weakspot_lab.bench.worlds import planted_problem

PLAN = BenchPlan(methods=("directions", "attributes", "loss"))


@pytest.fixture(scope="module")
def scores():
    return run_bench([planted_problem("rare", 0, n_samples=2000)], PLAN)


def test_run_bench__a_planted_slice_is_found_named_and_beats_chance(scores):
    by_method = {score.method: score for score in scores}
    assert set(by_method) == {"directions", "attributes", "loss", "chance"}
    (truth,) = by_method["attributes"].truths
    assert (truth.is_confirmed, truth.precision_at_10) == (True, 1.0)
    assert truth.name.is_exact
    assert (
        by_method["directions"].truths[0].precision_at_10
        > 3 * by_method["chance"].truths[0].precision_at_10
    )
    assert by_method["directions"].megabytes > 0


def test_run_bench__baselines_are_scored_and_never_confirmed(scores):
    loss = next(score for score in scores if score.method == "loss")
    assert loss.truths[0].precision_at_10 > 0.3
    assert (loss.n_tested, loss.n_confirmed) == (0, 0)


def test_run_bench__a_journal_is_not_run_again(tmp_path, scores):
    given = MethodScore(
        method="attributes", source="planted, exact embedder", kind="rare", number=0, seconds=123.0
    )
    BenchJournal(tmp_path, "key").add(given)
    with (tmp_path / "scores.jsonl").open("a") as stream:
        stream.write('{"key": "key", "score": {"method"')
    plan = BenchPlan(methods=("attributes", "loss"), measure_memory=False)
    problem = planted_problem("rare", 0, n_samples=400)
    found = run_bench([problem], plan, journal=BenchJournal(tmp_path, "key"))
    assert found[0].seconds == 123.0
    other = run_bench([problem], plan, journal=BenchJournal(tmp_path, "another key"))
    assert other[0].seconds < 123.0


def test_write_bench__table_scores_and_plots(scores, tmp_path):
    files = write_bench(scores, tmp_path / "out", command="weakspot lab bench")
    assert files[0].name == "bench.md"
    assert "| directions |" in files[0].read_text()
    assert {row["method"] for row in json.loads(files[1].read_text())["rows"]} == {
        "directions",
        "attributes",
        "loss",
        "chance",
    }
    assert all(path.exists() for path in files)


def test_bench_choice__counts_problems_and_repeats_its_command():
    choice = BenchChoice(kinds=("rare", "null"), n_worlds=2, n_samples=150)
    assert choice.n_problems == 4
    assert choice.command(["loss"]).endswith(
        "--kind rare --kind null --method loss --worlds 2 --samples 150 --seed 0"
    )
    assert [problem.title for problem in chosen_problems(choice)][
        -1
    ] == "planted, exact embedder, null, 1"


@pytest.mark.parametrize("given", [{"problems": ("plants",)}, {"kinds": ("odd",)}])
def test_bench_choice__unknown_names_are_refused(given):
    with pytest.raises(ConfigError, match="There are no such"):
        BenchChoice(**given)
