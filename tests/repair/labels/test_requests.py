from dataclasses import replace

import numpy as np
import pytest
from tests.build import slice_of

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.samples import SampleSet
from weakspot.repair.labels import read_labels, write_labelling_list
from weakspot.repair.strategies.pool import (
    BudgetedRepairer,
    CoresetRepairer,
    DeepestRepairer,
    MarginRepairer,
)
from weakspot.testing import material

SPLITS = ["train", "validation", "test", "pool", "pool", "pool", "pool"]
IDS = ["t0", "v0", "s0", "p0", "p1", "p2", "p3"]
IMAGES = ["train/a.png", "val/b.png", "test/c.png", "pool/d.png", "pool/e.png", "pool/=f.png", None]
PROBABILITIES = np.array([[0.6, 0.3, 0.1]] * 4 + [[0.2, 0.7, 0.1]] * 3, dtype=np.float32)
HEADER = "sample_id,image,suggested_class,why,label"


def _dataset(labels=(0, 1, 0, -1, -1, -1, 2), **changes):
    given = {
        "class_names": ["cat", "Dog", "grey owl"],
        "labels": list(labels),
        "splits": SPLITS,
        "sample_ids": IDS,
    }
    return dataset_from_columns(
        **{**given, "locations": IMAGES, "probabilities": PROBABILITIES, **changes}
    )


@pytest.fixture
def multi():
    given = {
        "class_names": ["cat", "dog", "red|blue owl"],
        "splits": SPLITS,
        "sample_ids": IDS,
        "locations": IMAGES,
    }
    return dataset_from_columns(
        **given, label_lists=[[0], [1], [0], None, None, [], [0, 2]], probabilities=PROBABILITIES
    )


@pytest.fixture
def samples():
    return SampleSet(dataset=_dataset(), rows=np.arange(7))


@pytest.fixture
def slices():
    return [slice_of(["p0"], class_name="cat", contrast="wet")]


@pytest.fixture
def write(tmp_path):
    def build(text):
        path = tmp_path / "labels.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return build


def _lines(folder):
    return (folder / "to_label.csv").read_bytes().decode("utf-8-sig").splitlines()


def test_write_labelling_list__table_and_image_list(tmp_path, samples, slices):
    rows = np.array([3, 4, 5, 6])
    request = write_labelling_list(
        tmp_path / "run", rows, samples, slices, roles={3: "pool-margin", 4: "pool-margin"}
    )
    assert _lines(tmp_path / "run") == [
        HEADER,
        "p0,pool/d.png,cat,cat: wet (pool-margin),",
        "p1,pool/e.png,Dog,pool-margin,",
        "p2,pool/=f.png,Dog,,",
        "p3,,Dog,,",
    ]
    assert (tmp_path / "run/to_label.txt").read_text() == "pool/d.png\npool/e.png\npool/=f.png\n"
    assert request.model_dump() == {
        "file": "to_label.csv",
        "image_list": "to_label.txt",
        "n_samples": 4,
        "n_labelled": 0,
    }
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "to_label.csv",
        "to_label.txt",
    ]


def test_write_labelling_list__no_formula_reaches_a_spreadsheet(tmp_path):
    dataset = _dataset(
        class_names=["=1+1", "+x", "-y"],
        locations=["@a", *IMAGES[1:3], "=HYPERLINK(1)", "-d.png", "'q.png", "@SUM(1)"],
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(7))
    write_labelling_list(tmp_path, np.array([3, 4, 5, 6]), samples, [], roles={3: "=cmd"})
    assert _lines(tmp_path)[1:] == [
        "p0,'=HYPERLINK(1),'=1+1,'=cmd,",
        "p1,'-d.png,'+x,,",
        "p2,''q.png,'+x,,",
        "p3,'@SUM(1),'+x,,",
    ]
    path = tmp_path / "to_label.csv"
    path.write_text(
        path.read_text()
        .replace("'=cmd,", "'=cmd,'=1+1")
        .replace("''q.png,'+x,,", "''q.png,'+x,,-y")
    )
    assert read_labels(path, dataset).labels.tolist() == [0, 1, 0, 0, -1, 2, 2]


def test_write_labelling_list__labels_that_were_filled_in_are_kept(tmp_path, samples, slices):
    write_labelling_list(tmp_path, np.array([3, 4]), samples, slices, roles={})
    path = tmp_path / "to_label.csv"
    # As a spreadsheet of another country saves it, with a column added and a class that does not exist.
    path.write_text(
        "sample_id;image;suggested_class;why;label;note\n"
        "p0;pool/d.png;cat;cat: wet;catt;blurred\n"
        "p1;pool/e.png;Dog;;;\n"
        "gone;pool/z.png;Dog;;Dog;\n"
    )
    request = write_labelling_list(
        tmp_path, np.array([3, 5]), samples, slices, roles={5: "pool-random"}
    )
    assert _lines(tmp_path) == [
        HEADER + ",note",
        "p0,pool/d.png,cat,cat: wet,catt,blurred",
        "p2,pool/=f.png,Dog,pool-random,,",
        "gone,pool/z.png,Dog,,Dog,",
    ]
    assert (request.n_samples, request.n_labelled) == (2, 1)
    assert (tmp_path / "to_label.txt").read_text() == "pool/d.png\npool/=f.png\n"


def test_write_labelling_list__the_same_list_is_not_written_again(tmp_path, samples):
    write_labelling_list(tmp_path, np.array([3, 4]), samples, [], roles={})
    path = tmp_path / "to_label.csv"
    path.write_text(path.read_text().replace("Dog,,", "Dog,,cat").replace("\r\n", "\n"))
    before = (path.stat().st_ino, path.read_bytes())
    request = write_labelling_list(tmp_path, np.array([3, 4]), samples, [], roles={})
    assert (path.stat().st_ino, path.read_bytes()) == before
    assert (request.n_samples, request.n_labelled) == (2, 1)


@pytest.mark.parametrize(
    "content", ["my notes, not a table\n", HEADER + "\np0,pool/d.png,cat,,cat,surplus\n"]
)
def test_write_labelling_list__never_overwrites_what_it_cannot_read(content, tmp_path, samples):
    path = tmp_path / "to_label.csv"
    path.write_text(content)
    with pytest.raises(DataError):
        write_labelling_list(tmp_path, np.array([3]), samples, [], roles={})
    assert path.read_text() == content


def test_write_labelling_list__without_predictions_nothing_is_suggested(tmp_path):
    samples = SampleSet(dataset=_dataset(probabilities=None), rows=np.arange(7))
    write_labelling_list(tmp_path, np.array([3]), samples, [], roles={})
    assert _lines(tmp_path)[1] == "p0,pool/d.png,,,"
    unknown = SampleSet(
        dataset=samples.dataset.with_predictions(predictions=np.full(7, -1)), rows=np.arange(7)
    )
    write_labelling_list(tmp_path / "b", np.array([3]), unknown, [], roles={})
    assert _lines(tmp_path / "b")[1] == "p0,pool/d.png,,,"


def test_read_labels__by_image_location_or_name(write):
    text = "image;labels\npool/d.png;cat\nC:\\exports\\e.png;dog\n/data/upload/1/=f.png;GREY OWL\n"
    assert read_labels(write(text), _dataset()).labels.tolist() == [0, 1, 0, 0, 1, 2, 2]


def test_read_labels__a_name_in_the_pool_is_meant_before_one_elsewhere(write):
    dataset = _dataset(
        locations=["x/1.png", "y/1.png", "z/1.png", "p/1.png", "p/2.png", "q/2.png", None]
    )
    assert read_labels(write("image,label\n1.png,cat\n"), dataset).labels[3] == 0
    with pytest.raises(
        DataError, match=r"Line 2: 2 samples have an image called '2.png'; add the column sample_id"
    ):
        read_labels(write("image,label\n2.png,cat\n"), dataset)


def test_read_labels__nothing_filled_in_changes_nothing(write):
    dataset = _dataset()
    assert read_labels(write(f"{HEADER}\np0,,,,\nnobody,,,,\n"), dataset) is dataset


def test_read_labels__every_bad_line_is_named(write):
    text = (
        "sample_id,image,label,note\n"
        "p0,pool/d.png,catt,\n"
        "nobody,,cat,\n"
        "v0,,cat,\n"
        "s0,,Dog,\n"
        "t0,,Dog,\n"
        "p3,,cat,\n"
        "p1,pool/d.png,cat,\n"
        ",,cat,\n"
        "p2,,cat,\n"
        "p2,,Dog,\n"
        "p0,,zebra,\n"
        "p0,,cat,fine,surplus\n"
        "p1,,Dog,\n"
    )
    with pytest.raises(DataError) as caught:
        read_labels(write(text), _dataset())
    assert caught.value.what.strip().splitlines() == [
        "Some labels cannot be used:",
        "  1. Line 2: there is no class 'catt' (did you mean 'cat'?).",
        "  2. Line 3: there is no sample 'nobody'.",
        "  3. Line 4: the sample 'v0' is in the validation split, and only pool samples are labelled here.",
        "  4. Line 5: the sample 's0' is in the test split, and only pool samples are labelled here.",
        "  5. Line 6: the sample 't0' is in the train split, and only pool samples are labelled here.",
        "  6. Line 7: the sample 'p3' is labelled 'grey owl' already.",
        "  7. Line 8: the sample 'p1' has another image than 'pool/d.png'.",
        "  8. Line 9: it names no sample.",
        "  9. Line 11: line 10 gives the same sample another label.",
        "  10. Line 12: there is no class 'zebra'.",
        "  11. Line 13: it has 5 fields where the header has 4.",
    ]


def test_read_labels__very_many_bad_lines_are_counted(write):
    text = "sample_id,label\n" + "".join(f"x{number},cat\n" for number in range(250))
    with pytest.raises(DataError, match="And 50 more lines") as caught:
        read_labels(write(text), _dataset())
    assert "x199" in str(caught.value)
    assert "x200" not in str(caught.value)


def test_read_labels__several_labels(write, multi):
    text = 'sample_id,label\np0,"cat; red|blue owl"\np1,none\n'
    with pytest.raises(DataError, match="no class 'red' and there is no class 'blue owl'"):
        read_labels(write(text), multi)
    found = read_labels(write("sample_id,label\np0,cat|dog\np1,red|blue owl\np2,none\n"), multi)
    assert found.label_matrix[3:5].tolist() == [[True, True, False], [False, False, True]]
    assert found.is_labelled.tolist() == [True] * 6 + [True]
    listed = read_labels(write('sample_id\tlabel\np0\t"[""dog"", ""red|blue owl""]"\n'), multi)
    assert listed.label_matrix[3].tolist() == [False, True, True]
    with pytest.raises(DataError, match=r"Line 2: the label '; \|' names no class"):
        read_labels(write("sample_id,label\np0,; |\n"), multi)


def test_read_labels__several_labels_that_contradict(write, multi):
    with pytest.raises(DataError, match=r"'p3' is labelled 'cat' and 'red\|blue owl' already"):
        read_labels(write("sample_id,label\np3,cat\n"), multi)
    with pytest.raises(DataError, match="'p2' is labelled none already"):
        read_labels(write("sample_id,label\np2,cat\n"), multi)


def test_read_labels__a_broken_json_list_is_an_unknown_class(write, multi):
    with pytest.raises(DataError, match="there is no class"):
        read_labels(write('sample_id,label\np0,"[cat"\n'), multi)


@pytest.mark.parametrize(
    "repairer", [DeepestRepairer(), BudgetedRepairer(), CoresetRepairer(), MarginRepairer()]
)
def test_read_labels__the_repair_goes_on_with_the_same_samples(repairer, tmp_path):
    truth = material.full().training.dataset
    waiting = material.full(change=material.with_unlabelled_pool)
    slices = material.repair_slices(waiting.training)
    first = repairer.select(slices, waiting)
    rows = first.rows[~waiting.training.dataset.is_labelled[first.rows]]
    write_labelling_list(tmp_path, rows, waiting.training, slices, roles={})
    path = tmp_path / "to_label.csv"
    header, *lines = path.read_text().splitlines()
    names = [truth.class_names[code] for code in truth.labels[rows]]
    path.write_text(
        "\n".join([header, *(line + name for line, name in zip(lines, names, strict=True))])
    )
    labelled = read_labels(path, waiting.training.dataset)
    known = replace(
        waiting, training=replace(waiting.training, dataset=labelled), pool=replace(waiting.pool, dataset=labelled)
    )  # fmt: skip
    second = repairer.select(slices, known)
    assert len(rows) == material.BUDGET
    assert second.rows.tolist() == first.rows.tolist()
    assert known.training.dataset.is_labelled[second.rows].all()
    assert labelled.labels[rows].tolist() == truth.labels[rows].tolist()
