import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.expected_files import require_data
from weakspot_lab.reproduce.radiograph_files import CHESTX_RAY14, FINDINGS, read_radiographs

HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],\n"
)


def _row(name, labels, patient, view):
    return f"{name},{labels},0,{patient},58,M,{view},2682,2749,0.143,0.143,\n"


@pytest.fixture
def chest(tmp_path):
    """Forty-one images of 20 patients in the files of the NIH, the images in two of the twelve folders."""
    rows, first, last = [HEADER], [], []
    for place in range(41):
        name = f"{place // 2:08d}_{place % 2:03d}.png"
        labels = "Effusion|Pleural_Thickening" if place % 4 == 1 else "No Finding"
        rows.append(_row(name, labels, place // 2, "AP" if place % 3 == 0 else "PA"))
        (first if place < 32 else last).append(name)
        folder = tmp_path / ("images_001/images" if place < 20 else "images_002")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (tmp_path / "Data_Entry_2017_v2020.csv").write_text("".join(rows))
    (tmp_path / "train_val_list.txt").write_text("\n".join(first) + "\n")
    (tmp_path / "test_list.txt").write_text("\r\n".join(last))
    return tmp_path


def test_read_radiographs__findings_views_and_an_eighth_of_the_patients_for_validation(chest):
    assert require_data(chest, [CHESTX_RAY14], paper="p") is CHESTX_RAY14
    found = read_radiographs(chest, seed=0)
    assert [FINDINGS[code] for code in found.findings[1].nonzero()[0]] == [
        "Effusion",
        "Pleural_Thickening",
    ]
    assert not found.findings[0].any()
    assert found.is_ap[:4].tolist() == [True, False, False, True]
    assert [int((found.splits == one).sum()) for one in ("train", "validation", "test")] == [
        28,
        4,
        9,
    ]
    parts = {}
    for patient, split in zip(found.patients, found.splits.tolist(), strict=True):
        parts.setdefault(patient, set()).add(split)
    assert all(len(one) == 1 for one in parts.values())
    assert all(one.is_file() for one in found.paths)
    assert len(found.only(found.is_ap.nonzero()[0]).paths) == found.is_ap.sum()


def test_read_radiographs__images_of_an_archive_that_was_not_unpacked(chest):
    (chest / "images_002" / "00000020_000.png").unlink()
    with pytest.raises(DataError, match="no folder holds: 1 of 41") as caught:
        read_radiographs(chest, seed=0)
    assert caught.value.given == ["00000020_000.png"]
    assert "all twelve archives" in caught.value.fix


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("View Position", "View", "lacks columns"),
        ("Effusion|", "Rust|", "none of the fourteen"),
        ("00000003_000.png", "00000003_009.png", "the table does not describe: 1 of 41"),
    ],
)
def test_read_radiographs__a_table_of_something_else(chest, old, new, said):
    path = chest / "Data_Entry_2017_v2020.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=said) as caught:
        read_radiographs(chest, seed=0)
    assert caught.value.exit_code == 2
    assert caught.value.given
    assert caught.value.fix
