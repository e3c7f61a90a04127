import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from tests.build import heron_record

from weakspot.core.evidence import GivenGroup, GivenGroups
from weakspot.core.run import Advice, AdviceKind, CheckState, PreflightCheck, RunRecord
from weakspot.report.document import build_document, render_html, render_json, render_markdown
from weakspot.report.findings import ShownImage, SliceImages

VOID = {"meta", "img", "br", "link", "input", "hr"}


class _Page(HTMLParser):
    """Checks that tags close in order and collects text and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def _images(record):
    green = record.slices[1]
    hard = (
        ShownImage(sample_id="s1", answer="pear", has_failed=True),
        ShownImage(sample_id="s2", answer="apple", has_failed=False),
    )
    return {
        green.slice_id: SliceImages(
            hard=hard, easy=(ShownImage(sample_id="s3", answer="apple", has_failed=False),)
        )
    }


@pytest.fixture
def page(record, jpeg):
    text = render_html(build_document(record, _images(record)), {"s1": jpeg, "s3": jpeg})
    parsed = _Page()
    parsed.feed(text)
    assert parsed.open == []
    return text, parsed


def test_render_html__is_one_self_contained_page(page):
    text, parsed = page
    assert text.lstrip().startswith("<!doctype html>")
    images = [address for address in parsed.addresses if not address.startswith("#")]
    assert len(images) == 2
    assert all(address.startswith("data:image/jpeg;base64,/9j/") for address in images)
    assert "http" not in text.replace("http-equiv", "").replace(
        "https://(not shown)@host.example", ""
    )
    assert "script" not in parsed.tags
    assert "no image" in text


def test_render_html__hostile_names_are_text(page):
    text, parsed = page
    assert "<script>" not in text
    assert "<b>bold" not in text
    assert any("<b>bold</b> | pipe" in piece for piece in parsed.text)


def test_render_html__says_what_matters(page):
    text, parsed = page
    said = " ".join("".join(parsed.text).replace("\u00a0", " ").split())
    for sentence in (
        "On “apple” images that fit “green” the classifier fails 73 % of the time",
        "16 of 22",
        "Evidence points to too few such samples in training.",
        "Lower, which may be chance: “pear” (36 to 34 of 36 right, p = 0.5).",
        "least confident",
        "not confirmed: the difference may be chance",
        "melon: Too few failures.",
        "How to read this",
        "weakspot run",
        "Classes not listed because nothing changed in them: 1.",
    ):
        assert sentence in said
    assert "hunter2" not in text
    assert ":pw@" not in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_render_html__an_empty_run_still_reads():
    text = render_html(
        build_document(RunRecord(run_id="r", command="c", started="2026-01-01T00:00:00Z", seed=0))
    )
    parsed = _Page()
    parsed.feed(text)
    assert parsed.open == []
    assert "No slice was found to test" in text


def test_render_html__same_record_same_page(record):
    assert render_html(build_document(record)) == render_html(build_document(record))


def test_render_markdown__tables_and_escapes(record):
    text = render_markdown(build_document(record))
    lines = text.splitlines()
    assert lines[0] == "# The classifier: 76 % right on 148 samples (68-82 %)"
    assert any(line.startswith("On “apple” images") for line in lines)
    assert (
        "| accuracy on | samples | before | slice-balanced | random choice (baseline) | least confident (baseline) |"
        in lines
    )
    assert (
        "| overall | 92 | 84 % | 90 % (+6.5, p 0.031) | 87 % (+3.3, p 0.25) | 84 % (±0, p 1) |"
        in lines
    )
    assert (
        "| apple: green (slice) | 15 | 7 % | 67 % (+60, p 0.0039) | 40 % (+33, p 0.062) | 60 % (+53, p 0.0078) |"
        in lines
    )
    assert "| apple: the rest (rest of the class) | 0 | – | – | – | – |" in lines
    assert any(line.startswith("| \\<script\\>alert") and "\\| pipe" in line for line in lines)
    assert "<script>" not in text
    assert "- melon: Too few failures." in lines
    assert "\n\n\n" not in text


def test_render_json__holds_the_figures(record):
    content = json.loads(render_json(build_document(record, _images(record))))
    assert content["run_id"] == "20260101-abcdef"
    assert content["findings"][0]["evidence"]["failures_inside"] == 16
    assert content["findings"][0]["hard_samples"] == ["s1", "s2"]
    assert content["not_confirmed"][0]["evidence"]["q_value"] == 0.31
    assert content["repairs"][0]["arms"][0]["arm"] == "slice-balanced"
    assert content["repairs"][0]["got_worse"] == ["pear"]


def test_render_html__everything_that_was_looked_into(full_record):
    text = render_html(build_document(full_record))
    parsed = _Page()
    parsed.feed(text)
    assert parsed.open == []
    assert parsed.tags.count("polyline") == 2
    said = " ".join("".join(parsed.text).replace("\u00a0", " ").split())
    for sentence in (
        "2,007 candidates looked at on the discovery samples, 4 slices found, 2 tested on held-out samples, 1 confirmed.",
        "Check the labels. 9 of 16 failures inside look like wrong labels.",
        "apple: green become pear.",
        "Members fail 21.1 times as often (95 % interval of the ratio 3.0 to 69.9)",
        "Found by directions.",
        "On other data",
        "Other slices with nearly the same members, not counted as findings of their own: apple: unnamed (attributes).",
        "“green” fits according to captions (+0.40). “old” does not fit according to captions (-0.10).",
        "not counted, has nearly the same members as: apple: green",
        "cannot be tested: it is defined by what the classifier said",
        "How it was looked for",
        "No answerer.",
        "Kept within the limit: the chance that any confirmed slice is a false finding (Holm).",
    ):
        assert sentence in said, sentence


def test_render_markdown__everything_that_was_looked_into(full_record):
    lines = render_markdown(build_document(full_record)).splitlines()
    assert "**Check the labels.** 9 of 16 failures inside look like wrong labels." in lines
    assert "| attributes | 2000 | 50 | 1 | No answerer. |" in lines
    assert "- pool: no such samples" in lines
    assert (
        "- Accuracy on the samples nearest to “green”: 20 % of 10, 35 % of 20, 60 % of 40." in lines
    )
    assert any(
        line.startswith(
            "| apple: unnamed (attributes) | attributes | 16 of 22 | 1 of 29 | – | – | not counted"
        )
        for line in lines
    )


def test_render_html__everything_of_repairs(compared_record):
    text = render_html(build_document(compared_record))
    parsed = _Page()
    parsed.feed(text)
    assert parsed.open == []
    assert parsed.tags.count("svg") == 1
    assert parsed.tags.count("details") >= 2
    assert "<th>" not in text
    said = " ".join("".join(parsed.text).replace("\u00a0", " ").split())
    for sentence in (
        "Ways of repairing, compared",
        "Waiting for 50 labels: labels.csv (images alone: labels.txt); 10 of 60 have come back.",
        "How even it became",
        "seed (validation, discovery half)",
        "former failures, now right",
        "Looked for again",
        "New: “pear: old” (3 failures before, 9 after, of 12 members).",
        "Expected calibration error: 0.081 before, 0.032 after; logits were divided by 1.40.",
        "repair/model.onnx, repair/plan.json",
        "Trained on 135 samples, 30 of them from the pool, 5 of them generated.",
        "Zero-shot prompts need an embedder.",
        "What repairs do to slices, against what they do overall",
    ):
        assert sentence in said, sentence


def test_render_html__hostile_names_of_repairs_are_text(compared_record):
    hostile = "<img src=x onerror=alert(1)>"
    result = compared_record.repairs[0]
    arm = result.arms[0].model_copy(update={"arm": hostile})
    result = result.model_copy(
        update={"arms": (arm, *result.arms[1:]), "notes": (hostile,), "files": (hostile,)}
    )
    text = render_html(
        build_document(compared_record.model_copy(update={"repairs": (result, result)}))
    )
    assert "<img src=x" not in text


def test_render_markdown__everything_of_repairs(compared_record):
    lines = render_markdown(build_document(compared_record)).splitlines()
    chosen = "| slice-balanced (chosen) | +60 (+24 to +82) | +53 (least confident) | – | +6.5 (+0.6 to +12) |"
    assert f"{chosen} 7 % → 67 % | 77 → 23 | nothing |" in lines
    reference = (
        "| group-dro (baseline) | +73 (+37 to +93) | +33 (random choice) | – | −7.6 (−14 to −1.4) |"
    )
    assert f"{reference} – | – | overall, pear |" in lines
    assert (
        "| seed (validation, discovery half) | former failures, now right | 60 % (6 of 10) | 10 % (1 of 10) | – |"
        in lines
    )
    assert "Files: `repair/model.onnx`, `repair/plan.json`." in lines
    assert "## Repair: pool-budgeted" in lines


def test_render_json__everything_of_repairs(compared_record):
    content = json.loads(render_json(build_document(compared_record)))
    first, _, waiting = content["repairs"]
    assert first["aftermath"]["slices"][0]["status"] == "gone"
    assert first["accounting"][0]["arms"][0]["count"] == 6
    assert first["files"] == ["repair/model.onnx", "repair/plan.json"]
    assert waiting["arms"] == []
    assert waiting["labelling"]["n_samples"] == 60
    rows = {row["strategy"]: row for row in content["strategies"]}
    assert rows["slice-balanced"]["slices"]["gained"] == 9
    assert rows["slice-balanced"]["best_baseline"]["arm"] == "confidence"
    assert rows["pool-budgeted"]["slices"] is None
    assert rows["group-dro"]["got_worse"] == ["overall", "pear"]


@pytest.fixture
def birds():
    hostile = PreflightCheck(
        check="class order", state=CheckState.PROBLEM, sentence="<b>Shifted</b>.", fix="Mend it.", settings_line="a = `<i>`",
    )  # fmt: skip
    story = heron_record()
    return story.model_copy(
        update={
            "checks": (hostile, *story.checks),
            "advice": tuple(
                Advice(kind=AdviceKind.LABEL, sentence=f"Label {number}.", command="weakspot label")
                for number in range(5)
            ),
        }
    )


def test_render_html__begins_with_the_first_answer(birds):
    text = render_html(build_document(birds)).replace("\u00a0", " ")
    parsed = _Page()
    parsed.feed(text)
    assert parsed.open == []
    said = " ".join(" ".join(parsed.text).split())
    places = [
        said.index(part)
        for part in (
            "model.onnx: 66 % right on 208 validation images (59-72 %); training 100 %",
            "Problem: class order. <b>Shifted</b>. Mend it. In weakspot.toml: a = `<i>`",
            "! heron 4 of 52 8 % crane 44, gull 4",
            "Findings confirmed on images not used to find them",
            "heron fails as a whole; looks unlike training",
            "gull: at night – 75 % of 12 wrong",
            "Label 0. weakspot label",
            "Not confirmed. 1 suspicion with too few samples (owl: in the snow).",
            "Checks. no sign of wrong class order",
            "How sure?",
            "The classifier fails on 71 of 208",
            "Whole classes",
            "Everything that can be done",
            "Label 4.",
            "Looked at before the run",
        )
    ]
    assert places == sorted(places)
    assert f'href="#slice-{birds.slices[0].slice_id}"' in text


def test_render_markdown__begins_with_the_first_answer(birds):
    text = render_markdown(build_document(birds))
    assert text.startswith("# model.onnx: 66 % right on 208 validation images (59-72 %); training")
    assert "\\<b\\>Shifted\\</b\\>. Mend it. In weakspot.toml: `a = '<i>'`" in text
    lines = text.splitlines()
    assert "| ! heron | 4 of 52 | 8 % | crane 44, gull 4 |" in lines
    assert "1. heron fails as a whole; looks unlike training" in lines
    assert "5. Label 4. `weakspot label`" in lines
    assert "\n\n\n" not in text


def test_render_json__holds_the_first_answer(birds):
    content = json.loads(render_json(build_document(birds)))
    answer = content["first_answer"]
    assert answer["classes"][0]["right"]["count"] == 4
    assert answer["findings"][1]["slice_id"] == birds.slices[0].slice_id
    assert len(content["advice"]) == 5
    assert len(content["class_findings"]) == 2


def test_render_html__images_of_both_sides_of_a_class_finding(birds, jpeg):
    shift = birds.class_findings[0].model_copy(update={"words_here": ("standing", "reeds")})
    images = SliceImages(
        hard=(ShownImage(sample_id="here", answer="crane", has_failed=True),),
        easy=(ShownImage(sample_id="there", answer="heron", has_failed=False),),
    )
    record = birds.model_copy(update={"class_findings": (shift,)})
    document = replace(build_document(record), class_images={shift.finding_id: images})
    text = render_html(document, {"here": jpeg, "there": jpeg})
    assert "Evaluation: standing, reeds" in text
    assert text.count("data:image/jpeg;base64,") == 2
    assert "data:image" not in render_html(build_document(record), {"here": jpeg})


def _with_given(record):
    """The same run; the chosen repair was measured over given groups, too, and is exploratory."""
    first, *others = record.repairs
    arms = []
    for arm in first.arms:
        given = GivenGroups(
            column="<place>",
            overall_before=0.8,
            overall_after=0.9,
            groups=(GivenGroup(group="g", n_samples=9, accuracy_before=0.1, accuracy_after=0.6),),
            spread=arm.spread,
        )
        arms.append(arm.model_copy(update={"given": given if arm.spread else None}))
    plan = first.plan.model_copy(update={"is_exploratory": True})
    changed = first.model_copy(update={"arms": tuple(arms), "plan": plan})
    return record.model_copy(update={"repairs": (changed, *others)})


def test_render__given_groups_and_exploratory_repairs_are_told(compared_record):
    report = build_document(_with_given(compared_record))
    page, text = render_html(report), render_markdown(report)
    assert "which no method has seen" in page
    assert "&lt;place&gt;" in page
    assert "<place>" not in page
    assert "Over given groups" in page
    assert "Repair (exploratory): " in page
    assert "a slice of this repair was not confirmed" in page
    assert "over groups by class and" in text
    plain = build_document(compared_record)
    assert "given groups" not in render_html(plain).lower()
    assert "exploratory" not in render_html(plain).lower()
