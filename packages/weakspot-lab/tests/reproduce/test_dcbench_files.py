import csv

import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.dcbench_files import DCBENCH, read_problems, read_tables
from weakspot_lab.reproduce.expected_files import require_data

INDEX = """,alpha,dataset,n_pred_slices,slice_category,slice_names,target_name
p_1,0.0171,imagenet,5,rare,['cart.n.01'],vehicle.n.01
p_2,0.4,celeba,5,correlation,"['male=0_smiling=1', 'male=1_smiling=0']",male
p_3,0.4,celeba,5,correlation,"['male=0_young=1', 'male=1_young=0']",male
"""


def _write(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])


@pytest.fixture
def dcbench(tmp_path):
    """Two of three problems, with images of ImageNet and of CelebA beside them."""
    (tmp_path / "slice_discovery").mkdir()
    (tmp_path / "slice_discovery" / "problems.csv").write_text(INDEX)
    names = {
        "p_1": ("n02958343_7", "ILSVRC2012_val_00000001", "n02958343_8"),
        "p_2": ("000001.jpg", "000002.jpg", "000003.jpg"),
    }
    for key, (first, second, third) in names.items():
        folder = tmp_path / "slice_discovery/problem/artifacts" / key
        header = ("id", "target", "probs_0", "probs_1")
        _write(folder / "val_predictions.csv", header, [(first, 1, 0.2, 0.8)])
        rows = [(second, 0, 0.6, 0.4), (third, 1.0, 0.7, 0.3)]
        _write(folder / "test_predictions.csv", header, rows)
        if key == "p_1":
            _write(folder / "test_slices.csv", ("id", "slices_0"), [(third, 1), (second, 0)])
        else:
            header = ("id", "slices_0", "slices_1")
            _write(folder / "test_slices.csv", header, [(third, 0, 1), (second, 1, 0)])
    for path in (
        "train/n02958343/n02958343_7.JPEG",
        "train/n02958343/n02958343_8.JPEG",
        "val/n01440764/ILSVRC2012_val_00000001.JPEG",
        "img_align_celeba/000001.jpg",
        "img_align_celeba/000002.jpg",
        "img_align_celeba/000003.jpg",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return tmp_path


def test_read_problems__those_whose_tables_are_there(dcbench):
    assert require_data(dcbench, [DCBENCH], paper="p") is DCBENCH
    first, second = read_problems(dcbench)
    assert (first.key, first.base, first.category) == ("p_1", "imagenet", "rare")
    assert (first.slice_names, first.target) == (("cart.n.01",), "vehicle.n.01")
    assert second.slice_names == ("male=0_smiling=1", "male=1_smiling=0")


def test_read_tables__slices_by_id_after_the_validation_images(dcbench):
    rare, correlation = (read_tables(one, dcbench) for one in read_problems(dcbench))
    assert (rare.n_validation, rare.targets.tolist()) == (1, [1, 0, 1])
    assert rare.inside.tolist() == [[False], [False], [True]]
    assert correlation.inside.tolist() == [[False, False], [True, False], [False, True]]
    assert rare.probabilities[:, 1].tolist() == pytest.approx([0.8, 0.4, 0.3])
    assert all(path.is_file() for path in (*rare.paths, *correlation.paths))
    assert rare.paths[1].parent.name == "n01440764"


def test_require_data__data_panels_and_yaml_are_not_opened(dcbench):
    (dcbench / "slice_discovery/problems.csv").unlink()
    (dcbench / "slice_discovery/problems.yaml").write_text("- !!python/object/apply:os.abort []")
    with pytest.raises(DataError, match="Files of dcbench") as caught:
        require_data(dcbench, [DCBENCH], paper="p")
    assert caught.value.given == ["slice_discovery/problems.csv"]
    assert "not opened" in caught.value.fix
    assert "docs/guide/reproduce.md" in caught.value.fix


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("problems.csv", "slice_names", "names", "lacks columns or lines"),
        ("problems.csv", "['cart.n.01']", "open('x')", "no list of slices"),
        ("problems.csv", "imagenet", "cifar", "another data set"),
        ("problem/artifacts/p_1/test_predictions.csv", "probs_1", "p1", "lacks columns"),
        ("problem/artifacts/p_1/test_predictions.csv", "0.7", "none", "no number"),
        ("problem/artifacts/p_1/test_slices.csv", "n02958343_8", "other", "do not fit"),
        ("problem/artifacts/p_1/val_predictions.csv", "n02958343_7", "n02958343_9", "missing: 1 of 3"),
    ],
)  # fmt: skip
def test_read_tables__what_does_not_belong_together(dcbench, name, old, new, said):
    path = dcbench / "slice_discovery" / name
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=said) as caught:
        read_tables(read_problems(dcbench)[0], dcbench)
    assert caught.value.where
    assert caught.value.fix
    assert caught.value.exit_code == 2


def test_read_problems__an_index_of_other_problems(dcbench):
    path = dcbench / "slice_discovery/problems.csv"
    path.write_text(path.read_text().replace("p_1", "p_8").replace("p_2", "p_9"))
    with pytest.raises(DataError, match="none of the problems") as caught:
        read_problems(dcbench)
    assert caught.value.given == ["p_1", "p_2"]
