import csv
import io

from weakspot.web.services import images
from weakspot.web.services.images import ImageQuery, choose_images, image_lines


def _table(workspace, **options):
    text = "".join(image_lines(workspace, ImageQuery(label="disc", result="wrong"), **options))
    return list(csv.DictReader(io.StringIO(text)))


def test_lines__chosen_images__one_line_each_in_order(world_workspace, monkeypatch):
    monkeypatch.setattr(images, "AT_ONCE", 7)
    rows = choose_images(world_workspace, ImageQuery(label="disc", result="wrong")).rows
    lines = _table(world_workspace, with_paths=False)
    assert [line["id"] for line in lines] == world_workspace.samples.dataset.sample_ids(rows)
    assert {line["result"] for line in lines} == {"wrong"}
    assert {line["label"] for line in lines} == {"disc"}
    assert "path" not in lines[0]
    assert "path" in _table(world_workspace, with_paths=True)[0]


def test_lines__name_like_a_formula__is_text(world_workspace, monkeypatch):
    monkeypatch.setattr(images, "files_of", lambda _workspace, rows: ["=1+1"] * len(rows))
    assert _table(world_workspace, with_paths=False)[0]["file"] == "'=1+1"
