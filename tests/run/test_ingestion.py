import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.build import write_image_folder

from weakspot.core.dataset import RawSample, Split, Task
from weakspot.core.errors import DataError, NotEnoughDataError, StoreError
from weakspot.data.engine.local import LocalEngine
from weakspot.data.engine.processes import ProcessEngine
from weakspot.data.image_folder import ImageFolderSource
from weakspot.data.locations import read_location
from weakspot.data.settings import DataSettings
from weakspot.data.table_source import PredictionsSource
from weakspot.run.ingestion import ingest
from weakspot.run.model_map import FlushPolicy
from weakspot.store.project import ProjectStore

ENGINE = LocalEngine(n_workers=2, queue_depth=4)


class ListSource:
    """Samples from a list, noting from where it was read."""

    kind = "list"
    location = "a list"

    def __init__(self, samples, *, stop_at=None):
        self.samples = samples
        self.stop_at = stop_at
        self.starts = []

    def fingerprint(self):
        return str([sample.key for sample in self.samples])

    def count(self):
        return len(self.samples)

    def read(self, start=0):
        self.starts.append(start)
        for place, sample in enumerate(self.samples[start:], start=start):
            if place == self.stop_at:
                raise ConnectionError("gone")
            yield sample


def encoded(number):
    stream = BytesIO()
    Image.new("RGB", (6, 4), (number, 0, 0)).save(stream, "PNG")
    return stream.getvalue()


def samples(n_samples):
    return [
        RawSample(key=f"row {number}", data=encoded(number), labels=(("a", "b")[number % 2],))
        for number in range(n_samples)
    ]


@pytest.fixture
def project(tmp_path):
    return ProjectStore.create(tmp_path / "project")


def test_ingest__folder_with_broken_files(project, tmp_path):
    write_image_folder(tmp_path / "data", {"cat": 10, "dog": 100}, 4)
    (tmp_path / "data" / "cat" / "empty.jpg").write_bytes(b"")
    (tmp_path / "data" / "dog" / "copy.png").write_bytes(
        (tmp_path / "data" / "cat" / "0.png").read_bytes()
    )
    told = []
    summary = ingest(
        project,
        ImageFolderSource(location=str(tmp_path / "data")),
        engine=ENGINE,
        progress=lambda done, total: told.append((done, total)),
    )
    assert (summary.n_samples, summary.class_names) == (9, ("cat", "dog"))
    assert summary.task is Task.SINGLE_LABEL
    assert (dict(summary.quarantined), summary.n_quarantined) == ({"zero-bytes": 1}, 1)
    assert (summary.n_duplicated, summary.n_conflicting) == (1, 1)
    assert sum(summary.per_split.values()) == 9
    assert (told[0], told[-1]) == ((0, 10), (10, 10))
    dataset = project.dataset()
    assert np.bincount(dataset.labels).tolist() == [4, 5]
    assert all(Path(location).is_file() for location in dataset.locations())
    assert project.current_tables().quarantine().column("reason").to_pylist() == ["zero-bytes"]


def test_ingest__other_settings_read_nothing_either(project):
    source = ListSource(samples(8))
    ingest(project, source, engine=ENGINE)
    summary = ingest(
        project,
        source,
        engine=ENGINE,
        settings=DataSettings(class_names=("b", "a"), test_fraction=0.5),
    )
    assert source.starts == [0]
    assert project.dataset().class_names == ("b", "a")
    assert summary.per_split["test"] == 4


def test_ingest__interrupted_goes_on_where_it_was(project, tmp_path):
    flush = FlushPolicy(n_samples=2, seconds=60)
    broken = ListSource(samples(9), stop_at=7)
    with pytest.raises(ConnectionError):
        ingest(project, broken, engine=LocalEngine(n_workers=1, queue_depth=0), flush=flush)
    mended = ListSource(samples(9))
    ingest(project, mended, engine=ENGINE, flush=flush)
    assert 0 < mended.starts[0] < 7
    other = ProjectStore.create(tmp_path / "other")
    ingest(other, ListSource(samples(9)), engine=ENGINE)
    without = ["sample_id", "key", "split", "label", "width", "height"]
    assert project.dataset().table.select(without).equals(other.dataset().table.select(without))


def test_ingest__changed_source_replaces_the_old_one_only_when_complete(project):
    ingest(project, ListSource(samples(4)), engine=ENGINE)
    with pytest.raises(ConnectionError):
        ingest(project, ListSource(samples(6), stop_at=5), engine=ENGINE)
    dataset = project.dataset()
    assert len(dataset) == 4
    assert read_location(dataset.locations()[3]) == encoded(3)
    ingest(project, ListSource(samples(6)), engine=ENGINE)
    assert len(project.dataset()) == 6
    assert len(list((project.data / "ingest").iterdir())) == 1


def test_ingest__nothing_usable(project):
    bad = [RawSample(key=str(number), data=b"junk", labels=("a",)) for number in range(3)]
    with pytest.raises(
        NotEnoughDataError, match="Not one of 3 samples can be used: 3 not-an-image"
    ):
        ingest(project, ListSource(bad), engine=ENGINE)
    assert project.current_tables() is None


def test_ingest__bad_labels_can_be_mended_in_the_settings(project):
    source = ListSource([*samples(2), RawSample(key="c", data=encoded(9), labels=("7",))])
    with pytest.raises(DataError, match="mixed types"):
        ingest(project, source, engine=ENGINE)
    assert (
        ingest(
            project, source, engine=ENGINE, settings=DataSettings(class_names=("7", "a", "b"))
        ).n_samples
        == 3
    )
    assert source.starts == [0]


def test_ingest__second_writer_is_refused(project):
    with (
        ProjectStore.open(project.root).writing(),
        pytest.raises(StoreError, match="being written by process"),
    ):
        ingest(project, ListSource(samples(2)), engine=ENGINE)


def test_ingest__damaged_facts(project):
    source = ListSource(samples(2))
    ingest(project, source, engine=ENGINE)
    (project.current_tables().folder / "dataset.json").write_text("{}")
    with pytest.raises(StoreError, match="damaged"):
        ingest(project, source, engine=ENGINE)


def test_ingest__predictions_only(project):
    given = [
        RawSample(
            key=str(number), labels=("a",), probabilities={"a": 0.25, "b": 0.75}, predictions=("b",)
        )
        for number in range(3)
    ]
    summary = ingest(
        project, ListSource(given), engine=ENGINE, settings=DataSettings(class_names=("a", "b"))
    )
    dataset = project.dataset()
    assert summary.has_predictions
    assert not dataset.has_images
    assert dataset.predictions.tolist() == [1, 1, 1]
    assert dataset.probabilities[2].tolist() == [0.25, 0.75]


def test_ingest__generated_samples_are_counted_apart(project):
    marked = [
        RawSample(
            key=f"made {number}",
            data=encoded(50 + number),
            labels=("a",),
            split=split,
            metadata={"generator": "a model"},
        )
        for number, split in enumerate((None, "train", "synthetic"))
    ]
    summary = ingest(project, ListSource([*samples(8), *marked]), engine=ENGINE)
    assert summary.per_split["synthetic"] == 3
    assert sum(summary.per_split.values()) == 11
    assert summary.n_renamed == 1
    dataset = project.dataset()
    assert dataset.rows_of(Split.SYNTHETIC).tolist() == [8, 9, 10]
    assert not set(dataset.rows_of(Split.TRAIN, Split.VALIDATION, Split.TEST).tolist()) & {8, 9, 10}
    bad = RawSample(
        key="made 9", data=encoded(70), labels=("a",), split="test", metadata={"synthetic": True}
    )
    with pytest.raises(DataError, match="1 generated samples.*: made 9"):
        ingest(project, ListSource([*samples(8), bad]), engine=ENGINE)


class Deadly(str):
    """A location that ends the process which unpacks it."""

    __slots__ = ()

    def __reduce__(self):
        return os._exit, (9,)


def test_ingest__a_sample_that_kills_its_worker_is_quarantined(project):
    given = samples(6)
    given[3] = RawSample(key="row 3", location=Deadly("deadly.png"), labels=("b",))
    found = ingest(project, ListSource(given), engine=ProcessEngine(n_workers=1, queue_depth=2))
    assert (found.n_samples, found.quarantined) == (5, {"worker-lost": 1})


class RowByRow:
    """A source that hides that it can give columns."""

    def __init__(self, source):
        self._source = source
        self.kind, self.location = source.kind, source.location

    def fingerprint(self):
        return self._source.fingerprint()

    def count(self):
        return self._source.count()

    def read(self, start=0):
        return self._source.read(start)


def write_rows(path, n_rows):
    lines = [f"s{n},{'ab'[n % 2]},{'ab'[n % 3 == 0]},{n % 7},{n / 8}" for n in range(n_rows)]
    path.write_text("\n".join(["key,label,prediction,kind,weight", *lines]))
    return PredictionsSource(location=str(path))


def test_ingest__a_table_without_images__columns_and_rows_give_the_same_data_set(tmp_path):
    source = write_rows(tmp_path / "table.csv", 9_000)
    found = []
    for name, one in (("columns", source), ("rows", RowByRow(source))):
        store = ProjectStore.create(tmp_path / name)
        summary = ingest(store, one, engine=ENGINE)
        found.append((summary, store.dataset()))
    assert found[0][0] == found[1][0]
    assert found[0][1].table.equals(found[1][1].table)
    np.testing.assert_array_equal(found[0][1].predictions, found[1][1].predictions)


def test_ingest__a_table_without_images__goes_on_where_it_was(project, tmp_path):
    source = write_rows(tmp_path / "table.csv", 9_000)
    steps = []

    def give_up(done, total):
        steps.append((done, total))
        if done > 4_096:
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        ingest(
            project,
            source,
            engine=ENGINE,
            progress=give_up,
            flush=FlushPolicy(n_samples=1, seconds=60.0),
        )
    assert steps[0] == (0, 9_000)
    later = []
    ingest(project, source, engine=ENGINE, progress=lambda done, _: later.append(done))
    assert later[0] == 8_192
    assert project.dataset().table.column("key").to_pylist() == [f"s{n}" for n in range(9_000)]
