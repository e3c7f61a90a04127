from dataclasses import replace

import pytest
from typer.testing import CliRunner

from weakspot_lab.reproduce.figures import Measured, PaperFigure, PaperFigures, read_figures
from weakspot_lab.reproduce.protocol import Outcome, PaperTable, Protocol, Step, open_protocol
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.reproduce.running import StepJournal, run_protocol
from weakspot_lab.reproduce.writing import RESULTS, Reproduction

STATED = PaperFigures(
    paper="toy",
    title="A toy paper",
    figures=(
        PaperFigure(key="mean", where="Table 1", what="mean", value=50.0, is_headline=True),
        PaperFigure(key="drawn", where="Fig. 2", what="a picture only"),
    ),
)


@pytest.fixture
def toy_request(tmp_path):
    return ReproduceRequest(paper="toy", out=tmp_path / "toy", is_stand_in=True)


@pytest.fixture
def make_protocol():
    """Two steps that draw numbers; the second needs the first, and `calls` counts what was run."""

    def build(calls, fail_in=""):
        def draw(context):
            calls.append("draw")
            return {"values": context.random("draw").random(20).tolist(), "pair": (1, 2)}

        def sum_up(context):
            calls.append("sum")
            if fail_in == "sum":
                raise KeyboardInterrupt
            values = context.results["draw"]["values"]
            return {"mean": sum(values) / len(values), "jitter": context.random("sum").random()}

        def measured(results):
            mean = 100 * results["sum"]["mean"]
            return {"mean": Measured(value=mean, beside=mean - 10, beside_name="chance")}

        def tables(results):
            rows = (("mean", 100 * results["sum"]["mean"], None),)
            return [PaperTable(title="Table 1", header=("row", "mean", "none"), rows=rows)]

        return Protocol(
            stated=STATED,
            data_words="Numbers by lot.",
            steps=(
                Step(name="draw", seconds=1.0, work=draw),
                Step(name="sum", seconds=2.0, work=sum_up),
            ),
            outcome=Outcome(
                measured=measured,
                tables=tables,
                plots=lambda results: {"toy.svg": f"<svg>{results['sum']['jitter']}</svg>"},
            ),
        )

    return build


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """Run the small version of a paper's protocol on its stand-in."""

    def run(paper):
        out = tmp_path_factory.mktemp(paper)
        request = ReproduceRequest(paper=paper, out=out, is_stand_in=True, is_small=True)
        return run_protocol(open_protocol(request), request), request

    return run


@pytest.fixture(scope="session")
def answers_every_figure():
    """Check that a small run has every figure of its paper, a sentence for each, and says in every heading what it is."""

    def check(found, request):
        stated = read_figures(request.paper).figures
        assert {one.figure.key for one in found.figures} == {one.key for one in stated}
        assert all(one.why.endswith(".") for one in found.figures)
        lines = (request.out / "tables.md").read_text().splitlines()
        headings = [line for line in lines if line.startswith("## ")]
        assert len(headings) > 1
        assert all("stand-in, small" in line for line in headings)

    return check


@pytest.fixture
def resumed(tmp_path):
    """Resume a run that was killed before one of its steps; return the steps that ran, after comparing all tables."""

    def resume(finished, *, without):
        found, request = finished
        again = replace(request, out=tmp_path / "again")
        journal = StepJournal(again.out / "steps", found.key)
        for name, result in found.steps.items():
            if name != without:
                journal.keep(name, result)
        said = []
        run_protocol(open_protocol(again), again, say=said.append)
        for name in ("tables.md", "figures.csv", "results.json", *found.plots):
            assert (again.out / name).read_bytes() == (request.out / name).read_bytes()
        return [line.split(": ")[1].split(",")[0] for line in said if " left" in line]

    return resume


@pytest.fixture(scope="session")
def run_on_data(tmp_path_factory):
    """Run the small version of a paper's protocol on a folder, as the command does; return what it wrote, and the tables as text."""

    def run(paper, folder):
        from weakspot.cli.main import app  # only here: it takes long to load

        out = tmp_path_factory.mktemp(f"{paper}-data")
        words = ["lab", "reproduce", paper, "--data", folder, "--out", out, "--models", "planted"]
        result = CliRunner().invoke(app, [*map(str, words), "--small"], env={"NO_COLOR": "1"})
        if result.exception is not None:
            raise result.exception
        found = Reproduction.model_validate_json((out / RESULTS).read_bytes())
        return found, (out / "tables.md").read_text()

    return run
