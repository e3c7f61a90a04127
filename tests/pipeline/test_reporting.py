import json
import re

import pytest
import yaml
from tests.planted_project import planted_project

from weakspot.core.evidence import Verdict
from weakspot.pipeline.reporting import write_report


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


def test_write_report__two_hundred_slices__default_limit(project):
    html = _written(project, _many(project.run_record(), 200))
    assert html.stat().st_size < 10_000_000


def test_write_report__text_alone_is_too_large__no_images(project):
    html = _written(project, _many(project.run_record(), 200), most_megabytes=0.5)
    assert "no images are shown" in html.read_text()


def test_write_report__nothing_is_loaded_from_elsewhere(project):
    html, *_ = project.report()
    assert re.findall(r'(?:src|href)="(?!data:|#)([^"]+)"', html.read_text()) == []
