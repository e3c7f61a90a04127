import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Share
from weakspot.core.generated import GenerationRequest, GenerationResult
from weakspot.generate.adversarial import (
    RECORD_FILE,
    TABLE_FILE,
    AdversarialSet,
    CaptionYield,
    SourceCaption,
    read_record,
    refuse_foreign,
    write_images,
    write_record,
)


def _set(*keys, name="oat / milk"):
    caption = SourceCaption(class_name=name, prompt="p", origins=("a.png", "b.png"))
    brought = CaptionYield(
        caption=caption, first=Share.of(1, 2), kept=keys, predicted=("tea",) * len(keys)
    )
    return AdversarialSet(
        name="set",
        made_for="project",
        criterion="wrong",
        caption_source="a table",
        yields=(brought,),
        is_complete=True,
    )


def _generated(folder, *keys):
    request = GenerationRequest(class_name="oat / milk", prompt="p", seed=1)
    for key in keys:
        (folder / f"{key}.png").write_bytes(key.encode())
    return {
        key: GenerationResult(
            request=request,
            generator_id="g",
            content_hash=key,
            file=f"{key}.png",
            parents=("x", "y"),
        )
        for key in keys
    }


def test_write_images__a_class_that_is_no_folder_name_and_a_image_of_two_parents(tmp_path):
    write_images(tmp_path / "set", _set("k1"), _generated(tmp_path, "k1"), tmp_path)
    header, row = (tmp_path / "set" / TABLE_FILE).read_text().splitlines()
    place = row.split(",")[0]
    assert "/" in place
    assert (tmp_path / "set" / place).read_bytes() == b"k1"
    assert "oat / milk,p,g,1,tea,a.png; b.png,x; y," in row
    assert header.startswith("image,label,")


def test_write_images__one_that_cannot_be_read_leaves_a_set_that_is_not_complete(tmp_path):
    generated = _generated(tmp_path, "k1", "k2")
    (tmp_path / "k2.png").unlink()
    with pytest.raises(ConfigError, match="cannot be written"):
        write_images(tmp_path / "set", _set("k1", "k2"), generated, tmp_path)
    assert not read_record(tmp_path / "set").is_complete
    assert not (tmp_path / "set" / TABLE_FILE).exists()
    refuse_foreign(tmp_path / "set")


def test_write_images__an_earlier_table_cannot_reach_outside(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "set").mkdir()
    write_record(tmp_path / "set", _set())
    (tmp_path / "set" / TABLE_FILE).write_text("image\n../mine.txt\nold.png\n")
    (tmp_path / "set" / "old.png").write_text("old")
    write_images(tmp_path / "set", _set("k1"), _generated(tmp_path, "k1"), tmp_path)
    assert (tmp_path / "mine.txt").exists()
    assert not (tmp_path / "set" / "old.png").exists()


@pytest.mark.parametrize("content", ["{}", "not JSON", '{"kind": "something else"}', "\x00"])
def test_refuse_foreign__a_record_of_something_else(tmp_path, content):
    (tmp_path / RECORD_FILE).write_text(content)
    assert read_record(tmp_path) is None
    with pytest.raises(ConfigError, match="something else"):
        refuse_foreign(tmp_path)
