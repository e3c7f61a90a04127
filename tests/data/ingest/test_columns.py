from weakspot.data.columns import resolve_columns
from weakspot.data.source import Problems
from weakspot.data.tables import TableHeader


def resolved(*names, given=None, **header):
    problems = Problems()
    return resolve_columns(TableHeader(names=names, **header), given or {}, problems), problems


def test_resolve_columns__plain_names_beat_synonyms():
    roles, problems = resolved("filename", "path", "target", "label")
    assert not problems
    assert (roles.image, roles.labels, roles.metadata) == ("path", "label", ("filename", "target"))


def test_resolve_columns__a_image_column_beats_paths_and_bytes_are_no_metadata():
    roles, problems = resolved(
        "image", "file_name", "thumb", images=frozenset({"image"}), binary=frozenset({"thumb"})
    )
    assert not problems
    assert (roles.image, roles.metadata) == ("image", ("file_name",))


def test_resolve_columns__unclear_cases_are_problems():
    assert resolved("label", "labels")[1]
    assert resolved("class", "target")[1]
    assert resolved("path", "bytes")[1]
    assert resolved("prob_a", "probabilities")[1]
    assert resolved("a", "b", given={"label": "a", "labels": "b"})[1]
