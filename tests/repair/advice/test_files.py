import csv

import numpy as np

from weakspot.repair.advice import files
from weakspot.repair.advice.files import CollectionNeed, PoolChoice


def _wish(world, rows):
    choice = PoolChoice(
        rows=np.array(rows, dtype=np.int64),
        is_labelled=np.zeros(len(rows), np.bool_),
        n_candidates=len(rows),
        n_pool=80,
    )
    return CollectionNeed(kind=world.kind(), choice=choice, n_wanted=7, why_none="nobody tried")


def _read(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_write_label_list__each_image_once_in_order_and_filled_in_labels_stay(
    world, sliced, tmp_path
):
    pool = np.flatnonzero(world.dataset.splits == 3)[:5]
    wishes = (_wish(world, pool[:3]), _wish(sliced, pool[2:5]))
    files.write_label_list(tmp_path, wishes, world.dataset)
    path = tmp_path / "next/to_label.csv"
    lines = _read(path)
    assert [line["sample_id"] for line in lines] == world.dataset.sample_ids(pool)
    assert [line["rank"] for line in lines] == ["1", "2", "3", "2", "3"]
    assert lines[2]["finding"] == "heron"
    path.write_text(
        path.read_text().replace(",,\n", ",,heron\n", 1).replace(",,\r\n", ",,heron\r\n", 1)
    )
    assert _read(path)[0]["label"] == "heron"
    files.write_label_list(tmp_path, (_wish(world, pool[1:2]),), world.dataset)
    kept = _read(path)
    assert [(line["sample_id"], line["label"]) for line in kept] == [
        (world.dataset.sample_ids(pool[1:2])[0], ""),
        (world.dataset.sample_ids(pool[:1])[0], "heron"),
    ]


def test_write_label_list__nothing_to_label_leaves_no_file(world, tmp_path):
    files.write_label_list(tmp_path, (_wish(world, []),), world.dataset)
    assert not (tmp_path / "next").exists()
    pool = np.flatnonzero(world.dataset.splits == 3)[:5]
    files.write_label_list(tmp_path, (_wish(world, pool),), world.dataset)
    files.write_label_list(tmp_path, (), world.dataset)
    assert list((tmp_path / "next").iterdir()) == []


def test_write_collect_page__says_how_many_what_is_missing_and_shows_failures(world, tmp_path):
    wish = _wish(world, [])
    files.write_collect_page(tmp_path, (wish,), world.dataset)
    page = (tmp_path / "next/to_collect.md").read_text()
    assert "## heron" in page
    assert "about 7, of the class “heron”; the gain cannot be predicted: nobody tried." in page
    assert "0 such images, of 60 of the class" in page
    shown = [line.strip(" -`") for line in page.splitlines() if "/photos/" in line]
    failing = set(world.dataset.locations(wish.kind.rows[wish.kind.failed]))
    assert len(shown) == files.N_EXAMPLES
    assert set(shown) <= failing
    files.write_collect_page(tmp_path, (), world.dataset)
    assert not (tmp_path / "next/to_collect.md").exists()


def test_write_suspects__lists_labels_beside_predictions(sliced, tmp_path):
    kind = sliced.kind()
    files.write_suspects(tmp_path, {kind: kind.rows[:2]}, sliced.dataset)
    lines = _read(tmp_path / "next/labels_to_check.csv")
    assert [line["sample_id"] for line in lines] == sliced.dataset.sample_ids(kind.rows[:2])
    assert {line["label"] for line in lines} == {"heron"}
    assert {line["split"] for line in lines} == {"validation"}
    assert lines[0]["prediction"]
    files.write_suspects(tmp_path, {}, sliced.dataset)
    assert not (tmp_path / "next/labels_to_check.csv").exists()
