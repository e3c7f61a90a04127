import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.build import class_finding, evidence_of, heron_record, heron_slice

from weakspot.cli.results import MAX_LINES, answer_lines, show_run
from weakspot.core.evidence import ClassFindingKind, Verdict
from weakspot.core.run import Advice, AdviceKind, CheckState, ClassifierFacts, PreflightCheck
from weakspot.report.first_answer import first_answer

LONG = (
    "evaluation looks unlike training: “standing, in reeds, at dusk” here, “flying, blue sky” there, "
    * 3
)


@pytest.fixture
def record():
    return heron_record()


def _lines(record, folder, width=80):
    shown = answer_lines(
        first_answer(record), width=width, project=folder, report=folder / "report.html"
    )
    return [line.plain for line in shown]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "birds"


def test_answer_lines__the_whole_story(record, here):
    assert _lines(record, here) == [
        "model.onnx: 66 % right on 208 validation images (59-72 %); training 100 %",
        "         right             mostly taken for",
        "! heron   4 of 52    8 %   crane 44, gull 4",
        "  gull   40 of 52   77 %   owl 12",
        "  owl    45 of 52   87 %",
        "  crane  48 of 52   92 %",
        "FINDINGS  (confirmed on images not used to find them)",
        "1 heron fails as a whole; looks unlike training",
        "2 gull: at night - 75 % of 12 wrong, 8 % of the rest; rare in training",
        "DO  Label about 10: to_label.csv.",
        "NOT CONFIRMED  1 suspicion with too few samples (owl: in the snow)",
        "CHECKS  no sign of wrong class order; 3 files set aside",
        "Next: weakspot serve -p birds    Report: birds/report.html",
    ]


def _crowded(record):
    """Many classes, findings and advice, long names, wide letters, and everything at once."""
    names = [f"鷺のなかま {number} with a name that goes on and on" for number in range(300)]
    found = [heron_slice(name, f"{LONG} {name}", name) for name in names]
    facts = ClassifierFacts(
        n_samples=15_000,
        n_failed=4_500,
        per_class={name: (50, number % 30) for number, name in enumerate(names)},
        confusions={name: tuple((other, 3) for other in names[:3]) for name in names},
        training=(9, 0),
    )
    whole = [class_finding(ClassFindingKind.WHOLE, name, f"{name} fails; {LONG}") for name in names]
    check = PreflightCheck(check="files", state=CheckState.NOTICE, sentence=LONG)
    return record.model_copy(
        update={
            "slices": tuple(found),
            "evidence": tuple(
                evidence_of(one, Verdict.CONFIRMED if number % 2 else Verdict.TOO_FEW)
                for number, one in enumerate(found)
            ),
            "classifier": facts,
            "class_findings": tuple(whole),
            "advice": tuple(Advice(kind=AdviceKind.LABEL, sentence=LONG) for _ in range(9)),
            "checks": (check,) * 9,
        }
    )


@pytest.mark.parametrize("width", [40, 80, 200])
def test_answer_lines__crowded__fifteen_lines_that_fit(record, here, width):
    lines = _lines(_crowded(record), here, width)
    assert len(lines) <= MAX_LINES
    ends = [line for line in lines if line.startswith(("Next", "Report"))]
    assert all(cell_len(line) <= width for line in lines if line not in ends)
    assert any(re.match(r"  worst \d of 300 +right", line) for line in lines)
    assert any(re.search(r"\d of 450, ", line) for line in lines)


def test_answer_lines__columns_stay_aligned_with_wide_letters(record, here):
    facts = record.classifier.model_copy(
        update={"per_class": {"鷺": (50, 25), "a" * 60: (50, 5)}, "confusions": {}}
    )
    rows = _lines(record.model_copy(update={"classifier": facts}), here)[2:4]
    assert {cell_len(row.split(" of ")[0]) for row in rows} == {2 + 26 + 2 + 2}
    assert rows[1].strip().startswith("a" * 25 + "…")


def test_answer_lines__problems_come_before_all_else(record, here):
    wrong = PreflightCheck(
        check="class order", state=CheckState.PROBLEM, sentence="Class names look shifted by one.",
        fix="Mend their order.", settings_line='class_names = ["owl", "heron"]',
    )  # fmt: skip
    lines = _lines(record.model_copy(update={"checks": (wrong,)}), here)
    assert lines[1:3] == [
        "PROBLEM  Class names look shifted by one. Mend their order.",
        '  weakspot.toml: class_names = ["owl", "heron"]',
    ]


def test_answer_lines__a_line_of_settings_is_never_cut(record, here):
    order = f"class_names = {[f'class {number}' for number in range(100)]}"
    wrong = PreflightCheck(
        check="class order", state=CheckState.PROBLEM, sentence=LONG, settings_line=order
    )
    lines = _lines(record.model_copy(update={"checks": (wrong,)}), here)
    assert f"  weakspot.toml: {order}" in lines


def test_answer_lines__long_paths_have_lines_of_their_own(record, tmp_path, here):
    folder = tmp_path.parent / ("long-" * 20)
    assert _lines(record, folder)[-2:] == [
        f"Next: weakspot serve -p {folder}",
        f"Report: {folder / 'report.html'}",
    ]


def test_answer_lines__names_cannot_command_the_terminal(record, here):
    facts = record.classifier.model_copy(
        update={"per_class": {"red\x1b[31m\nnext [bold]": (52, 48)}, "confusions": {}}
    )
    text = "\n".join(_lines(record.model_copy(update={"classifier": facts}), here))
    assert "\x1b" not in text
    assert "red [31m next [bold]" in text


def test_show_run__plain_and_80_columns_without_a_terminal(record, here, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    show_run(record, here, report=here / "report.html")
    shown = capsys.readouterr()
    assert shown.out.splitlines() == _lines(record, here)
    assert shown.err == ""


def test_answer_lines__colour_marks_failing_classes_and_problems_only(record, here):
    wrong = PreflightCheck(check="c", state=CheckState.PROBLEM, sentence="Shifted.")
    answer = first_answer(record.model_copy(update={"checks": (wrong,)}))
    lines = answer_lines(answer, width=80, project=here, report=None)
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    for line in lines:
        console.print(line)
    coloured = [line for line in console.file.getvalue().splitlines() if "31m" in line]
    assert len(coloured) == 2
    assert "Shifted." in coloured[0]
    assert "heron" in coloured[1]
