import pytest
from starlette.testclient import TestClient

from weakspot.web.server_parts import person_of
from weakspot.web.state.store import Person, Role

NOBODY = "0123456789ab"


@pytest.fixture
def as_role(reader):
    """Ask as somebody of another role, with the owner's browser."""

    def become(role):
        study_id = "s" if role is Role.ANNOTATOR else None
        person = Person(person_id="p", name="Vera", role=role, study_id=study_id)
        reader.app.dependency_overrides[person_of] = lambda: person
        return reader

    yield become
    reader.app.dependency_overrides.clear()


def _rows(page) -> list[int]:
    return [one["row"] for one in page.json()["samples"]]


def _only(owner: TestClient) -> dict:
    (line,) = owner.get("/api/slices").json()["slices"]
    return line


def test_table__of_the_newest_run__has_the_planted_slice(reader, shared_parts):
    table = reader.get("/api/slices").json()
    assert table["run_id"] == shared_parts.workspace.project.store.runs.run_ids()[-1]
    (line,) = table["slices"]
    # Two members on the confirmation half cannot judge words.
    assert line["nearest_words"][0] == "green"
    told = line["title"], line["method"], line["class_title"]
    assert told == ("disc, group 1", "directions", "disc")
    assert reader.get("/api/slices", params={"run": table["run_id"]}).json() == table


@pytest.mark.parametrize(
    "run",
    ["20200101", "../..", "\x00", "x" * 5000, "\ud800".encode("utf-16", "surrogatepass").hex()],
)
def test_table__of_a_run_that_is_not_there__is_refused_without_a_path(reader, shared_parts, run):
    answer = reader.get("/api/slices", params={"run": run})
    assert answer.status_code in (404, 422)
    assert str(shared_parts.workspace.project.folder) not in answer.text


def test_one__with_members_scores_and_columns__agree_on_the_counts(reader):
    slice_id = _only(reader)["slice_id"]
    page = reader.get(f"/api/slices/{slice_id}").json()
    members = reader.get(f"/api/slices/{slice_id}/members").json()
    assert page["line"]["slice_id"] == slice_id
    assert members["total"] == page["looked_at_inside"]["total"]
    assert sum(one["is_failure"] for one in members["samples"]) == page["looked_at_inside"]["count"]
    outside = reader.get(
        f"/api/slices/{slice_id}/members", params={"kind": "outside", "limit": 1}
    ).json()
    scores = reader.get(f"/api/slices/{slice_id}/scores").json()
    assert scores["n_samples"] == members["total"] + outside["total"]
    columns = reader.get(f"/api/slices/{slice_id}/columns").json()["columns"]
    colour = next(column for column in columns if column["column"] == "colour")
    assert sum(colour["inside"]) == members["total"]
    assert colour["inside"][colour["values"].index("green")] > 0


@pytest.mark.parametrize("rest", ["", "/members", "/scores", "/columns"])
def test_one__that_is_not_there__is_not_found(reader, rest):
    assert reader.get(f"/api/slices/{NOBODY}{rest}").status_code == 404


def test_members__with_bad_bounds__are_refused(reader):
    path = f"/api/slices/{_only(reader)['slice_id']}/members"
    for query in ("kind=all", "offset=-1", f"offset={10**30}", "limit=0", "limit=501"):
        assert reader.get(f"{path}?{query}").status_code == 422, query


def test_people__rename_dismiss_and_restore__each_is_written_down(owner):
    slice_id = _only(owner)["slice_id"]
    renamed = owner.post(f"/api/slices/{slice_id}/words", json={"words": "  green discs "})
    assert renamed.status_code == 200, renamed.text
    assert renamed.json()["line"]["title"] == "green discs"
    dismissed = owner.post(f"/api/slices/{slice_id}/dismiss", json={"reason": "too few"}).json()
    assert dismissed["line"]["dismissed"]["reason"] == "too few"
    assert (
        owner.post(f"/api/slices/{slice_id}/dismiss", json={"reason": "again"}).status_code == 422
    )
    assert owner.post(f"/api/slices/{slice_id}/restore").json()["line"]["dismissed"] is None
    page = owner.get(f"/api/slices/{slice_id}").json()
    assert [one["kind"] for one in page["decisions"]] == ["renamed", "dismissed", "restored"]
    assert page["names"][0]["describer"] == "person"
    assert len(page["names"][0]["curve"]) >= 2


def test_people__pick_narrow_and_merge__new_slices_take_the_place_of_old_ones(owner):
    first = _only(owner)["slice_id"]
    rows = _rows(owner.get(f"/api/slices/{first}/members"))
    outside = _rows(owner.get(f"/api/slices/{first}/members", params={"kind": "outside"}))
    body = {"title": "disc", "rows": [*rows, *outside[:8]], "words": "odd ones"}
    picked = owner.post("/api/slices/from-rows", json=body)
    assert picked.status_code == 200, picked.text
    assert set(picked.json()["agreement"]) == {"precision", "recall"}
    asked = {"column": "size", "values": ["small"], "is_kept": False}
    narrowed = owner.post(f"/api/slices/{first}/values", json=asked)
    assert narrowed.status_code == 200, narrowed.text
    new = [one.json()["line"]["slice_id"] for one in (narrowed, picked)]
    merging = {"first": new[0], "second": new[1], "how": "either", "words": "both kinds"}
    merged = owner.post("/api/slices/merge", json=merging)
    assert merged.status_code == 200, merged.text
    lines = {line["slice_id"]: line for line in owner.get("/api/slices").json()["slices"]}
    assert len(lines) == 4
    assert [line["words"] for line in lines.values() if line["dismissed"] is None] == ["both kinds"]
    moved = owner.post(f"/api/slices/{first}/threshold", json={"threshold": 0.9})
    assert moved.status_code == 200, moved.text


BAD_TEXTS = ["", "   ", "a\nb", "a\x00b", "x" * 501, None, 5, ["a"]]


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_people__say_nothing_that_can_be_read__are_refused(reader, text):
    slice_id = _only(reader)["slice_id"]
    assert reader.post(f"/api/slices/{slice_id}/words", json={"words": text}).status_code == 422
    assert reader.post(f"/api/slices/{slice_id}/dismiss", json={"reason": text}).status_code == 422
    rows = {"title": "disc", "rows": [1, 2, 3], "words": text}
    assert reader.post("/api/slices/from-rows", json=rows).status_code == 422


@pytest.mark.parametrize(
    "raw",
    ['{"words": "\\ud800"}', '{"words": "a", "more": 1}', "[1]", "{", '{"words": "a\\u202eb"}'],
)
def test_people__send_what_is_no_text__are_refused(reader, raw):
    headers = {"Content-Type": "application/json"}
    answer = reader.post(
        f"/api/slices/{_only(reader)['slice_id']}/words", content=raw, headers=headers
    )
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize("threshold", ["NaN", "Infinity", "1e400", "-1e12", "null", '"a"'])
def test_threshold__that_is_no_score__is_refused(reader, threshold):
    content, headers = f'{{"threshold": {threshold}}}', {"Content-Type": "application/json"}
    answer = reader.post(
        f"/api/slices/{_only(reader)['slice_id']}/threshold", content=content, headers=headers
    )
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    ("title", "rows", "status"),
    [
        ("disc", [], 422),
        ("disc", [-1], 422),
        ("disc", [10**30], 422),
        ("disc", [0] * 20_001, 422),
        ("disc", [1], 409),
        ("no such class \x00", [1], 422),
    ],
    ids=["none", "negative", "huge", "too many", "too few", "no class"],
)
def test_from_rows__with_bad_rows__is_refused(reader, title, rows, status):
    body = {"title": title, "rows": rows, "words": "a"}
    assert reader.post("/api/slices/from-rows", json=body).status_code == status


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("words", {"words": "a"}),
        ("dismiss", {"reason": "a"}),
        ("restore", None),
        ("threshold", {"threshold": 0.5}),
        ("values", {"column": "size", "values": ["small"], "is_kept": True}),
    ],
)
def test_changes__are_for_owners_only(as_role, reader, path, body):
    slice_id = _only(reader)["slice_id"]
    for role in (Role.VIEWER, Role.ANNOTATOR):
        assert as_role(role).post(f"/api/slices/{slice_id}/{path}", json=body).status_code == 403
    assert as_role(Role.OWNER).post(f"/api/slices/{NOBODY}/{path}", json=body).status_code == 404


def test_reading__is_for_viewers_too_but_not_for_annotators(as_role, reader):
    slice_id = _only(reader)["slice_id"]
    rest = ("", "/members", "/scores", "/columns")
    for path in ("", *[f"/{slice_id}{one}" for one in rest]):
        assert as_role(Role.VIEWER).get(f"/api/slices{path}").status_code == 200
        assert as_role(Role.ANNOTATOR).get(f"/api/slices{path}").status_code == 403
    assert as_role(Role.ANNOTATOR).get("/api/comparisons").status_code == 403


def test_comparisons__of_a_project_served_alone__are_none(reader):
    assert reader.get("/api/comparisons").json()["others"] == []
    answer = reader.get(
        f"/api/slices/{_only(reader)['slice_id']}/comparison", params={"other": "../secret"}
    )
    assert answer.status_code == 422


def test_beside__two_slices__in_one_answer_and_unknown_ones_404(owner):
    ids = [line["slice_id"] for line in owner.get("/api/slices").json()["slices"]][:2]
    answer = owner.get(f"/api/slices/{ids[0]}/beside/{ids[-1]}")
    assert answer.status_code == 200
    assert [part["which"] for part in answer.json()["parts"]] == ["both", "first", "second"]
    assert owner.get(f"/api/slices/{ids[0]}/beside/{'0' * 12}").status_code == 404
    assert owner.get("/api/comparisons/models?other=nothing").status_code == 422
