import csv
import json

import pytest
import yaml
from tests.build import planted_project, write_captioned_table

from weakspot.core.evidence import Verdict
from weakspot.project.project import Project
from weakspot.run.reporting import place_of_report, write_report
from weakspot.run.settings import Settings


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = planted_project(tmp_path_factory.mktemp("report"), 900)
    project.verify(project.discover().run_id)
    return project


def _many(record, number):
    """The same run with its finding many times over."""
    evidence = record.evidence[0].model_copy(update={"verdict": Verdict.CONFIRMED})
    found = record.slice_by_id(evidence.slice_id)
    slices = [found.model_copy(update={"method": f"method {place}"}) for place in range(number)]
    entries = [evidence.model_copy(update={"slice_id": one.slice_id}) for one in slices]
    return record.model_copy(update={"slices": tuple(slices), "evidence": tuple(entries)})


def _written(project, record, **changes):
    settings = project.settings.model_copy(
        update={"report": project.settings.report.model_copy(update=changes)}
    )
    criterion = settings.failure.criterion()
    html, *_ = write_report(
        record, project.prepared(record).samples, settings, criterion, project.store
    )
    return html


def test_write_report__card_beside_and_the_same_figures(project):
    record = project.run_record()
    html, markdown, data = project.report()
    card = (html.parent / "model-card.md").read_text()
    matter = yaml.safe_load(card.split("---\n")[1])
    facts = record.classifier
    right = (facts.n_samples - facts.n_failed) / facts.n_samples
    metrics = matter["model-index"][0]["results"][0]["metrics"]
    assert metrics[0]["value"] == pytest.approx(right, abs=1e-6)
    content = json.loads(data.read_text())
    assert content["model_card"]["accuracy"]["value"] == pytest.approx(right)
    assert sum(content["model_card"]["samples_by_split"].values()) == 900
    measured = [entry["evidence"] for entry in (*content["findings"], *content["not_confirmed"])]
    assert sorted(entry["slice_id"] for entry in measured) == sorted(
        entry.slice_id for entry in record.evidence
    )
    assert all(
        entry in measured for entry in (one.model_dump(mode="json") for one in record.evidence)
    )
    assert "Model card" in markdown.read_text()
    assert project.ledger().standing().sentence in markdown.read_text()
    assert html.stat().st_size < 10_000_000


def test_write_report__two_hundred_slices__below_the_limit_and_says_so(project):
    record = _many(project.run_record(), 200)
    html = _written(project, record, most_megabytes=2.5)
    text = html.read_text()
    assert html.stat().st_size < 2_500_000
    assert "To keep this file below 2.5 MB" in text
    assert text.count('<section class="finding"') == 200
    assert "data:image/jpeg" in text


def test_write_report__captions__plain_frequencies_of_the_discovery_half_beside_the_findings(
    tmp_path,
):
    path = write_captioned_table(tmp_path / "table.csv")
    settings = Settings.model_validate({"discover": {"methods": ["words"]}})
    project = Project.create(tmp_path / "t", data=str(path), settings=settings)
    project.ingest()
    record = project.verify(project.discover().run_id)
    page, text, content = project.report(record.run_id)
    with (page.parent / "caption_words.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    first = next(line for line in lines if line["class"] == "dog")
    assert first["words"] == "rain"
    listed = json.loads(content.read_text(encoding="utf-8"))["caption_words"]
    assert [one["words"] for one in listed] == [line["words"] for line in lines]
    assert "counted and not tested" in page.read_text(encoding="utf-8")
    assert f"| dog | rain | {first['failed_with']} of " in text.read_text(encoding="utf-8")
    samples = project.samples()
    discovery, _ = project.prepared().halves(project.settings, project.criterion)[0]
    dogs = discovery.rows[samples.dataset.labels[discovery.rows] == 1]
    assert int(first["n_failed"]) + int(first["n_right"]) == len(dogs)


def test_write_report__newest_run_lies_in_the_project_folder(project):
    older, place = project.run_record(), project.store.root / "report.html"
    project.report()
    assert (
        place.read_bytes()
        == (project.store.runs.run_folder(older.run_id) / place.name).read_bytes()
    )
    assert place_of_report(project.store, older.run_id) == place
    newer = project.discover()
    project.report(older.run_id)
    assert older.run_id.encode() in place.read_bytes()[:2000]
    project.report(newer.run_id)
    assert place_of_report(project.store, newer.run_id) == place
    assert (
        place_of_report(project.store, older.run_id)
        == project.store.runs.run_folder(older.run_id) / place.name
    )


def test_write_report__a_page_of_the_user_is_left_alone(project):
    place = project.store.root / "report.html"
    place.write_text("<title>My own page</title>")
    html, *_ = project.report()
    assert place.read_text() == "<title>My own page</title>"
    assert place_of_report(project.store, html.parent.name) == html
    place.unlink()
