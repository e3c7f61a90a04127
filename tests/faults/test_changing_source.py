"""A data set that changes while it is read: nothing is lost, it is said, and the next run mends it."""

import csv
import os
import shutil

import pytest
from tests.aged_files import LONG_AGO, image, put

from weakspot.cli.results import ingest_lines
from weakspot.core.errors import DataError, WeakspotError
from weakspot.data.engine.local import LocalEngine
from weakspot.data.open_source import open_source
from weakspot.run.ingestion import ingest
from weakspot.store.project import ProjectStore

ENGINE = LocalEngine(n_workers=1, queue_depth=0)


@pytest.fixture
def folder(tmp_path):
    for number in range(8):
        put(tmp_path / "set" / ("cat" if number < 4 else "dog") / f"{number}.png", image(number))
    return tmp_path / "set"


@pytest.fixture
def project(tmp_path):
    return ProjectStore.create(tmp_path / "project")


class Disturbed:
    """A real source in the middle of whose reading something happens once."""

    def __init__(self, path, event, *, at=5):
        self.inner = open_source(str(path))
        self.kind, self.location = self.inner.kind, self.inner.location
        self.event, self.at = event, at

    def fingerprint(self):
        return self.inner.fingerprint()

    def count(self):
        return self.inner.count()

    def read(self, start=0):
        for number, sample in enumerate(self.inner.read(start)):
            if number == self.at:
                self.event()
            yield sample


def keys(project):
    return sorted(project.dataset().table.column("key").to_pylist())


@pytest.mark.parametrize("what", ["deleted", "truncated", "replaced", "added"])
def test_folder__what_happens_to_one_image(project, folder, what):
    target = folder / "dog" / "6.png"
    events = {
        "deleted": target.unlink,
        "truncated": lambda: os.truncate(target, 20),
        "replaced": lambda: put(target, image(66), seconds=LONG_AGO + 9),
        "added": lambda: put(folder / "cat" / "00.png", image(70)),
    }
    summary = ingest(project, Disturbed(folder, events[what]), engine=ENGINE)
    assert summary.changed_meanwhile
    assert "changed while it was read" in "\n".join(ingest_lines(summary))
    assert summary.n_samples + summary.n_quarantined == 8
    mended = ingest(project, open_source(str(folder)), engine=ENGINE)
    assert not mended.changed_meanwhile
    assert mended.n_reused >= 6
    expected = {f"{'cat' if number < 4 else 'dog'}/{number}.png" for number in range(8)}
    expected = expected - {"dog/6.png"} if what in ("deleted", "truncated") else expected
    assert keys(project) == sorted(expected | ({"cat/00.png"} if what == "added" else set()))


def test_folder__a_image_that_comes_back_is_not_forgotten(project, folder, tmp_path):
    target = folder / "dog" / "6.png"
    summary = ingest(
        project,
        Disturbed(folder, lambda: shutil.move(target, tmp_path / "away.png")),
        engine=ENGINE,
    )
    assert (summary.n_samples, summary.quarantined) == (7, {"missing-file": 1})
    shutil.move(tmp_path / "away.png", target)
    mended = ingest(project, open_source(str(folder)), engine=ENGINE)
    assert (mended.n_samples, mended.was_cached) == (8, False)
    assert ingest(project, open_source(str(folder)), engine=ENGINE).was_cached


def write(path, names, label):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label"), *((name, label) for name in names)])


@pytest.mark.parametrize("how", ["rewritten", "cut short", "put in its place"])
def test_table__rows_of_two_versions_are_never_mixed(project, folder, how):
    table = folder / "m.csv"
    names = [f"{'cat' if number < 4 else 'dog'}/{number}.png" for number in range(8)]
    write(table, names, "old")
    ingest(project, open_source(str(table)), engine=ENGINE)
    write(table, names[::-1], "middle")

    def event():
        if how == "cut short":
            os.truncate(table, 33)
        elif how == "rewritten":
            write(table, names, "new")
        else:
            write(folder / "other.csv", names, "new")
            os.replace(folder / "other.csv", table)

    with pytest.raises(DataError, match="changed while it was read"):
        ingest(project, Disturbed(table, event), engine=ENGINE)
    assert project.dataset().class_names == ("old",)
    if how == "cut short":
        with pytest.raises(WeakspotError):
            ingest(project, open_source(str(table)), engine=ENGINE)
        write(table, names, "new")
    summary = ingest(project, open_source(str(table)), engine=ENGINE)
    assert (summary.n_samples, summary.class_names, summary.n_read) == (8, ("new",), 0)


def test_table__gone_in_the_middle(project, folder):
    table = folder / "m.csv"
    write(table, ["cat/0.png", "cat/1.png", "dog/5.png", "dog/6.png"], "old")
    with pytest.raises(WeakspotError):
        ingest(project, Disturbed(table, table.unlink, at=2), engine=ENGINE)
    write(table, ["cat/0.png", "cat/1.png", "dog/5.png", "dog/6.png"], "new")
    assert ingest(project, open_source(str(table)), engine=ENGINE).n_samples == 4


def test_folder__gone_in_the_middle(project, folder):
    with pytest.raises(WeakspotError):
        ingest(project, Disturbed(folder, lambda: shutil.rmtree(folder)), engine=ENGINE)
