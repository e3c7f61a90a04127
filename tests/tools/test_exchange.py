import csv

import numpy as np
import pytest
from tests.tools.made_bundle import made_evidence

from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, StoreError
from weakspot.core.evidence import LabelFinding, Share
from weakspot.core.rules import ColumnRule
from weakspot.core.run import RunRecord
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.project.project import Project
from weakspot.repair.labels import read_labels
from weakspot.tools.exchange import (
    EXPORTS,
    IMPORTS,
    exchange_bundle,
    export_to,
    import_from,
    samples_to_label,
)

N_TRAIN, N_CHECKED, N_POOL = 30, 20, 6


@pytest.fixture
def project(tmp_path):
    """Apples and pears without images: the odd apples of validation are called pears, and so are odd pool samples."""
    lines = []
    for number in range(2 * N_TRAIN):
        lines.append(
            (
                "apple" if number < N_TRAIN else "pear",
                "train",
                "no",
                "apple" if number < N_TRAIN else "pear",
            )
        )
    for number in range(2 * N_CHECKED):
        label = "apple" if number < N_CHECKED else "pear"
        lines.append(
            (label, "validation", "yes" if number < 8 else "no", "pear" if number < 8 else label)
        )
    lines += [("", "pool", "yes" if number < 3 else "no", "apple") for number in range(N_POOL)]
    with (tmp_path / "predictions.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sample_id", "label", "split", "odd", "prediction"])
        writer.writerows([f"s{number}", *line] for number, line in enumerate(lines))
    (tmp_path / "weakspot.toml").write_text(
        '[data]\nsource = "predictions.csv"\nkind = "predictions"\n'
    )
    opened = Project.open(tmp_path)
    opened.ingest()
    return opened


def _record():
    found = FailureSlice(
        class_name="apple",
        rule=ColumnRule(column="odd", values=("yes",)),
        method="attributes",
        found_on=DataUse(name="validation", n_samples=1, digest="0"),
        names=(SliceName(phrase="an odd apple", contrast="odd", score=1.0, describer="made"),),
    )
    share = Share.of(8, 8)
    labels = LabelFinding(
        n_suspect=8,
        share=1.0,
        inside=share,
        outside=Share.of(0, 0),
        witnesses=("neighbours",),
        is_flagged=True,
    )
    evidence = made_evidence(found).model_copy(update={"labels": labels})
    return RunRecord(
        run_id="20260101T000000",
        command="run",
        started="2026-01-01",
        seed=0,
        slices=(found,),
        evidence=(evidence,),
    )


def _samples(project):
    dataset = project.store.dataset()
    is_pear = dataset.predictions == dataset.class_code("pear")
    embeddings = np.stack([is_pear, ~is_pear, np.linspace(0.1, 0.2, len(dataset))], axis=1).astype(
        np.float32
    )
    return SampleSet(
        dataset=dataset,
        rows=np.arange(len(dataset)),
        spaces={"clip": EmbeddingSpace(encoder_id="made", embeddings=embeddings)},
    )


def test_samples_to_label__suspect_labels_then_the_pool(project):
    samples = _samples(project)
    listed = samples_to_label(project, _record(), samples)
    splits = samples.dataset.splits
    order = list(Split)
    assert [order[splits[one.row]].value for one in listed] == ["validation"] * 8 + ["pool"] * 3
    assert listed[0].why == "apple: odd: is the label right?"
    assert listed[-1].why == "apple: odd"
    assert {samples.dataset.metadata("odd")[one.row].as_py() for one in listed} == {"yes"}


def test_samples_to_label__what_a_repair_waits_for_goes_before_a_guess(project):
    samples, record = _samples(project), _record()
    pool = samples.dataset.rows_of(Split.POOL)
    first, second = samples.dataset.sample_ids(pool[-2:])
    (project.store.runs.run_folder(record.run_id) / "to_label.csv").write_text(
        f"sample_id,image,suggested_class,why,label\n{first},,apple,chosen,\n{second},,apple,chosen,pear\n"
    )
    listed = samples_to_label(project, record, samples)
    assert [(one.row, one.why) for one in listed[8:]] == [(int(pool[-2]), "chosen")]


def test_exchange_bundle__before_the_first_run(project):
    bundle = exchange_bundle(project)
    assert bundle.record is None
    assert bundle.slices == bundle.to_label == ()
    assert bundle.has_failed.sum() == 8
    assert bundle.is_judged.sum() == 2 * (N_TRAIN + N_CHECKED)
    with pytest.raises(StoreError):
        exchange_bundle(project, "no-such-run")


def test_exchange_bundle__slices_with_members_of_every_split(project):
    record = _record()
    project.store.runs.save(record)
    bundle = exchange_bundle(project)
    (marked,) = bundle.slices
    assert (marked.tag, len(marked.rows)) == ("weakspot-apple-odd", 8)
    assert bundle.tags()[int(marked.rows[0])] == ["weakspot-apple-odd"]


def test_tables__every_function_is_there():
    from weakspot.tools.exchange import _function

    for table in (EXPORTS, IMPORTS):
        assert all(callable(_function(table, name)) for name in table)


def test_export_to__folder_that_cannot_be_made(project, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be made"):
        export_to(project, "cleanlab", tmp_path / "file" / "out")


def test_import_from__labels_of_pool_samples_are_taken_by_repair(project, tmp_path):
    dataset = project.store.dataset()
    pool = dataset.rows_of(Split.POOL)
    images = "".join(
        f'<image id="{row}" name="{name}.png"><tag label="pear" source="manual"/></image>'
        for row, name in zip(pool.tolist(), dataset.sample_ids(pool), strict=True)
    )
    (tmp_path / "annotations.xml").write_text(f"<annotations>{images}</annotations>")
    import_from("cvat", tmp_path / "annotations.xml", tmp_path / "labels.csv")
    labelled = read_labels(tmp_path / "labels.csv", dataset)
    assert set(labelled.labels[pool].tolist()) == {dataset.class_code("pear")}
