import pytest

from weakspot.core.errors import DataError, UnavailableError
from weakspot.data.image_folder import GeneratedFolder


def folder_of(tmp_path, *names, table=None, table_name="metadata.csv"):
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    if table is not None:
        (tmp_path / table_name).write_text(table)
    return GeneratedFolder(location=str(tmp_path))


def facts(source):
    return [
        (
            sample.key,
            sample.labels,
            sample.split,
            sample.metadata["prompt"],
            sample.metadata["generator"],
        )
        for sample in source.read()
    ]


def test_read__class_folders(tmp_path):
    source = folder_of(tmp_path, "cat/1.png", "dog/2.png", "dog/deep/3.png", "4.png", "notes.txt")
    assert facts(source) == [
        ("4.png", (), "synthetic", None, None),
        ("cat/1.png", ("cat",), "synthetic", None, None),
        ("dog/2.png", ("dog",), "synthetic", None, None),
        ("dog/deep/3.png", ("dog",), "synthetic", None, None),
    ]
    assert source.count() == 4


@pytest.mark.parametrize("table_name", ["metadata.csv", "manifest.csv"])
def test_read__the_table_tells_label_prompt_and_generator(tmp_path, table_name):
    table = "image,label,prompt,generator,seed\na/1.png,cat,A photo of a cat,model 1,7\na/2.png,dog,12,model 1,8\n"
    (first, second) = folder_of(
        tmp_path, "a/1.png", "a/2.png", "a/3.png", table=table, table_name=table_name
    ).read()
    assert (first.labels, first.split, first.location) == (
        ("cat",),
        "synthetic",
        str(tmp_path / "a/1.png"),
    )
    assert first.metadata == {"prompt": "A photo of a cat", "generator": "model 1", "seed": 7}
    # A prompt is text, whatever it looks like.
    assert second.metadata["prompt"] == "12"


def test_read__without_a_label_column_the_folder_is_the_label(tmp_path):
    source = folder_of(
        tmp_path, "cat/1.png", "2.png", table="file_name,prompt\ncat/1.png,a cat\n2.png,\n"
    )
    assert facts(source) == [
        ("row 1", ("cat",), "synthetic", "a cat", None),
        ("row 2", (), "synthetic", None, None),
    ]


def test_read__predictions_in_the_table_are_not_believed(tmp_path):
    source = folder_of(
        tmp_path, "cat/1.png", table="image,label,prediction,split\ncat/1.png,cat,dog,train\n"
    )
    (sample,) = source.read()
    assert (sample.predictions, sample.probabilities, sample.split) == (None, None, "synthetic")


def test_read__a_verifying_split_is_kept_so_that_it_is_refused(tmp_path):
    (sample,) = folder_of(
        tmp_path, "cat/1.png", table="image,label,split\ncat/1.png,cat,test\n"
    ).read()
    assert (sample.split, sample.metadata["synthetic"]) == ("test", True)


def test_fingerprint__changes_with_the_images_behind_the_table(tmp_path):
    source = folder_of(tmp_path, "cat/1.png", table="image,label\ncat/1.png,cat\n")
    before = source.fingerprint()
    assert before == GeneratedFolder(location=str(tmp_path)).fingerprint()
    (tmp_path / "cat/1.png").write_bytes(b"another image")
    assert source.fingerprint() != before


def test_read__nothing_there(tmp_path):
    with pytest.raises(UnavailableError, match="no such folder"):
        GeneratedFolder(location=str(tmp_path / "nowhere")).fingerprint()
    with pytest.raises(DataError, match="holds no images"):
        list(GeneratedFolder(location=str(tmp_path)).read())
