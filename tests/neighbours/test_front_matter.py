from huggingface_hub import metadata_load

from weakspot.neighbours.front_matter import front_matter

CONTENT = {
    "name": 'a: "b" # no',
    "empty": [],
    "nested": {"numbers": [1, 2.5, None, True], "deep": [{"a": "é\n-", "b": [{"c": "1"}]}, "x"]},
}


def test_what_is_written_is_read_by_the_hub_library(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(front_matter(CONTENT) + "\n# Card\n")
    assert metadata_load(path) == CONTENT
