import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from tests.aged_files import LONG_AGO, image, put
from tests.loopback_servers import web_folder

from weakspot.data.engine.local import LocalEngine
from weakspot.data.locations import read_location
from weakspot.data.open_source import open_source
from weakspot.data.remote import RemoteReading, reading_as
from weakspot.data.settings import DataSettings
from weakspot.run.ingestion import ingest
from weakspot.run.model_map import FlushPolicy
from weakspot.store.project import ProjectStore

ENGINE = LocalEngine(n_workers=2)


@pytest.fixture
def folder(tmp_path):
    for number in range(6):
        put(tmp_path / "set" / ("cat" if number < 3 else "dog") / f"{number}.png", image(number))
    return tmp_path / "set"


@pytest.fixture
def project(tmp_path):
    return ProjectStore.create(tmp_path / "project")


def read(project, path, **options):
    return ingest(project, open_source(str(path), **options), engine=ENGINE)


def counts(summary):
    return summary.n_read, summary.n_changed, summary.n_reused


def rows(project):
    table = project.dataset().table.select(
        ["key", "location", "content_hash", "width", "height", "label"]
    )
    return table.sort_by("key").to_pylist()


def anew(tmp_path, path, name="other", **options):
    """Return the rows of a project that reads everything for the first time."""
    other = ProjectStore.create(tmp_path / name)
    read(other, path, **options)
    return rows(other)


def test_ingest__only_new_and_changed_images_are_read(project, folder, tmp_path):
    read(project, folder)
    put(folder / "cat" / "9.png", image(9))
    put(folder / "dog" / "4.png", image(44), seconds=LONG_AGO + 5)
    (folder / "cat" / "0.png").unlink()
    assert counts(read(project, folder)) == (2, 1, 4)
    assert rows(project) == anew(tmp_path, folder)


def test_ingest__replaced_with_the_same_size_and_time(project, folder, tmp_path):
    put(folder / "cat" / "1.png", image(1) + b"tail a")
    read(project, folder)
    put(folder / "cat" / "1.png", image(2) + b"tail b")
    put(folder / "cat" / "new.png", image(99))
    assert counts(read(project, folder))[:2] == (2, 1)
    assert rows(project) == anew(tmp_path, folder)


def test_ingest__a_file_of_just_now_or_of_the_future_is_read_again(project, folder):
    (folder / "cat" / "now.png").write_bytes(image(50))
    put(folder / "cat" / "future.png", image(51), seconds=4_000_000_000)
    read(project, folder)
    put(folder / "cat" / "new.png", image(52))
    assert counts(read(project, folder)) == (3, 2, 6)


def write_csv(path, found):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", "colour"])
        writer.writerows(found)


def test_ingest__other_labels_and_metadata_cost_no_image(project, folder, tmp_path):
    table = folder / "m.csv"
    write_csv(table, [(f"cat/{number}.png", "cat", "red") for number in range(3)])
    assert counts(read(project, table)) == (3, 0, 0)
    write_csv(
        table,
        [
            *((f"cat/{number}.png", "dog", "blue") for number in (2, 1, 0)),
            ("dog/3.png", "dog", "blue"),
        ],
    )
    assert counts(read(project, table)) == (1, 0, 3)
    assert rows(project) == anew(tmp_path, table)
    assert project.dataset().metadata("colour").to_pylist() == ["blue"] * 4


def test_ingest__images_inside_a_table_are_known_by_content(project, tmp_path):
    table = tmp_path / "m.parquet"
    pq.write_table(pa.table({"bytes": [image(1), image(2)], "label": ["a", "b"]}), table)
    assert counts(read(project, table)) == (2, 0, 0)
    pq.write_table(
        pa.table({"bytes": [image(3), image(2), image(1)], "label": ["b", "b", "b"]}), table
    )
    assert counts(read(project, table)) == (1, 0, 2)
    assert [read_location(where) for where in project.dataset().locations()] == [
        image(3),
        image(2),
        image(1),
    ]


def test_ingest__remote_images_by_tag(project, tmp_path):
    with web_folder() as server, reading_as(RemoteReading(cache_folder=str(tmp_path / "cache"))):
        for number in range(3):
            server.put(f"{number}.png", image(number), tag=f'"{number}"')
        table = tmp_path / "m.csv"
        write_csv(table, [(f"{server.address}/{number}.png", "cat", "x") for number in range(3)])
        assert counts(read(project, table)) == (3, 0, 0)
        server.put("1.png", image(77), tag='"other"')
        write_csv(table, [(f"{server.address}/{number}.png", "dog", "x") for number in range(3)])
        assert counts(read(project, table)) == (1, 1, 2)
        asked = {name: server.seen[f"GET /{name}.png"] for name in "012"}
        assert asked == {"0": 1, "1": 2, "2": 1}


def test_ingest__a_weak_tag_proves_nothing(project, tmp_path):
    with web_folder() as server, reading_as(RemoteReading(cache_megabytes=0)):
        server.put("0.png", image(0), tag='W/"same"')
        table = tmp_path / "m.csv"
        write_csv(table, [(f"{server.address}/0.png", "cat", "x")])
        read(project, table)
        write_csv(table, [(f"{server.address}/0.png", "dog", "x")])
        assert counts(read(project, table)) == (1, 1, 0)


def test_ingest__an_interrupted_reading_is_taken_over_too(project, folder):
    source = open_source(str(folder))

    class Torn:
        kind, location = source.kind, source.location
        fingerprint, count = source.fingerprint, source.count

        def read(self, start=0):
            for number, sample in enumerate(source.read(start)):
                if number == 5:
                    raise ConnectionError
                yield sample

    with pytest.raises(ConnectionError):
        ingest(
            project,
            Torn(),
            engine=LocalEngine(n_workers=1, queue_depth=0),
            flush=FlushPolicy(n_samples=2),
        )
    put(folder / "dog" / "z.png", image(9))
    n_read, n_changed, n_taken = counts(read(project, folder))
    assert n_read + n_taken == 7
    assert n_taken >= 2
    assert n_changed == 0
    assert len(rows(project)) == 7


def _taken(number, second):
    """A JPEG that was taken at some second."""
    exif = Image.Exif()
    exif[0x0110] = "EOS 5"
    exif.get_ifd(0x8769)[0x9003] = f"2024:05:01 10:{second // 60:02d}:{second % 60:02d}"
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (number * 7 % 256, number, 0)).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def test_ingest__images_taken_within_seconds_are_said_also_of_known_ones(project, tmp_path):
    folder = tmp_path / "burst"
    for number in range(40):
        second = 30 * (number // 4) + number % 4
        put(folder / "test" / "cat" / f"{number}.jpg", _taken(number, second))
    first = read(project, folder)
    assert first.burst_note.startswith(
        "40 of 40 evaluation images with a capture time come in 10 bursts that one camera took of one class"
    )
    put(folder / "test" / "cat" / "99.jpg", _taken(99, 3_000))
    again = read(project, folder)
    assert counts(again) == (1, 0, 40)
    assert again.burst_note.startswith("40 of 41 evaluation images")
    told = ingest(
        project,
        open_source(str(folder)),
        engine=ENGINE,
        settings=DataSettings(group="none"),
    )
    assert told.burst_note == ""
