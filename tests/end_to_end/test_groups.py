"""Several images of one object with one outcome: nothing is wrong, and nothing is confirmed."""

import csv

import numpy as np

from weakspot.cli.results import whole_run
from weakspot.core.evidence import Verdict
from weakspot.project.project import Project
from weakspot.report.document import build_document

SETTINGS = """\
[data]
source = "manifest.csv"
{group}
[attributes]
use_vocabulary = false
use_properties = false
[discover]
methods = ["attributes"]
[verify]
splits = ["test"]
"""
N_SETS = 12
COLUMNS = [f"c{number}" for number in range(8)]


def _write(folder, seed, *, size=5, n_objects=100, group=""):
    random = np.random.default_rng([7, seed])
    folder.mkdir()
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["key", "label", "split", "prediction", "object", *COLUMNS])
        for number in range(2 * n_objects):
            label = "ab"[number % 2]
            said = "ab"[(number + (random.random() < 0.25)) % 2]
            values = random.choice(["x", "y", "z"], len(COLUMNS)).tolist()
            for image in range(size):
                row = [f"{number}-{image}", label, "test", said, f"object {number}", *values]
                writer.writerow(row)
    (folder / "weakspot.toml").write_text(SETTINGS.format(group=group))
    return folder


def _n_confirmed(folder):
    record = Project.open(folder).run()
    return sum(entry.verdict is Verdict.CONFIRMED for entry in record.evidence)


def test_run__images_of_one_object_count_once(tmp_path):
    told, untold = (
        [
            _n_confirmed(_write(tmp_path / f"{name}{seed}", seed, group=group)) > 0
            for seed in range(N_SETS)
        ]
        for name, group in (("told", 'group = "object"'), ("untold", 'group = "none"'))
    )
    assert sum(told) <= 1
    assert sum(untold) >= N_SETS // 2


def test_run__a_failure_of_objects_is_found_and_counted_in_objects(tmp_path):
    folder = _write(tmp_path / "world", 0, group='group = "object"')
    with (folder / "manifest.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        for row in rows:
            fails = row["c0"] == "x" and row["label"] == "a"
            writer.writerow(row | ({"prediction": "b"} if fails else {}))
    project = Project.open(folder)
    summary = project.ingest()
    assert (summary.n_groups, summary.n_in_groups, summary.n_groups_across_splits) == (200, 1000, 0)
    record = project.run()
    confirmed = [one for one in record.evidence if one.verdict is Verdict.CONFIRMED]
    assert confirmed
    entry = max(confirmed, key=lambda one: one.gap)
    assert entry.n_inside == 5 * entry.groups_inside
    assert entry.groups_inside >= 5


def test_run__near_identical_images_are_grouped_counted_and_shown(tmp_path):
    """Nobody says what belongs together, but images of one object look the same."""
    random = np.random.default_rng(5)
    n_false = 0
    for seed in range(6):
        folder = _write(tmp_path / f"world{seed}", seed)
        embeddings = random.standard_normal((200, 16)).repeat(5, axis=0)
        embeddings += 0.03 * random.standard_normal(embeddings.shape)
        np.save(folder / "embeddings.npy", embeddings.astype(np.float32))
        with (folder / "weakspot.toml").open("a") as stream:
            stream.write('[embedder]\nname = "given-embeddings"\n')
            stream.write('[embedder.options]\npath = "embeddings.npy"\n')
        record = Project.open(folder).run()
        n_false += any(entry.verdict is Verdict.CONFIRMED for entry in record.evidence)
        (said,) = [stage.summary for stage in record.stages if stage.stage == "groups"]
        assert said.startswith("1000 images form 200 groups of near-identical images")
    assert n_false <= 1


def test_run__what_is_only_suspected_is_said_everywhere_and_can_be_denied(tmp_path):
    folder = _write(tmp_path / "world", 0)
    with (folder / "manifest.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    random = np.random.default_rng(5)
    embeddings = random.standard_normal((200, 16)).repeat(5, axis=0)
    embeddings += 0.6 * random.standard_normal(embeddings.shape)
    np.save(folder / "embeddings.npy", embeddings.astype(np.float32))
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        for number, row in enumerate(rows):
            writer.writerow(row | {"key": f"{row['label']}/{number:05d}.jpg"})
    given = '[embedder]\nname = "given-embeddings"\n[embedder.options]\npath = "embeddings.npy"\n'
    with (folder / "weakspot.toml").open("a") as stream:
        stream.write(given)
    record = Project.open(folder).run()
    (said,) = [stage.summary for stage in record.stages if stage.stage == "groups"]
    assert "of 1,000 evaluation images come in" in said
    assert said in build_document(record).summary
    assert said in whole_run(record)
    settings = SETTINGS.format(group='group = "none"')
    (folder / "weakspot.toml").write_text(f"{settings}{given}")
    denied = Project.open(folder).run()
    assert not [stage for stage in denied.stages if stage.stage == "groups"]
