MERGE = {
    "kind": "merge values",
    "attribute": "colour",
    "values": ["red", "orange"],
    "title": "warm",
}


def _view(client, **query):
    answer = client.get("/api/attributes", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _values(client, attribute, **query):
    (found,) = [
        one for one in _view(client, **query)["attributes"] if one["attribute_id"] == attribute
    ]
    return {value["title"]: value["failures"]["total"] for value in found["values"]}


def test_attributes__whole_way__histograms_edit_combinations_samples_proof(owner):
    view = _view(owner, title="disc")
    assert (view["is_assigned"], view["version"], view["title"]) == (False, 0, "disc")
    before = _values(owner, "colour")
    edited = owner.post("/api/attributes/edits", json={"version": 0, **MERGE})
    assert (edited.status_code, edited.json()["version"]) == (200, 1)
    assert _values(owner, "colour")["warm"] == before["red"] + before["orange"]

    query = {"attributes": ["colour", "size"], "min_support": 5}
    combined = owner.get("/api/attributes/combinations", params=query).json()
    first = combined["combinations"][0]
    chosen = {
        "attributes": [one["attribute_id"] for one in first["values"]],
        "values": [one["value_id"] for one in first["values"]],
    }
    page = owner.get("/api/attributes/samples", params={**chosen, "limit": 2}).json()
    assert page["total"] == first["failures"]["total"]
    assert len(page["samples"]) == 2

    asked = {"title": "disc", "values": {"colour": "green"}}
    proof = owner.post("/api/attributes/proofs", json=asked)
    assert proof.status_code == 200, proof.text
    assert proof.json()["line"]["verdict"] in (
        "confirmed",
        "not confirmed",
        "too few samples",
        "same as another slice",
    )


def test_edits__old_version__409_and_nothing_changes(owner):
    assert owner.post("/api/attributes/edits", json={"version": 0, **MERGE}).status_code == 200
    refused = owner.post(
        "/api/attributes/edits",
        json={"version": 0, "kind": "delete attribute", "attribute": "size"},
    )
    assert refused.status_code == 409
    assert "owner has edited the attributes since" in refused.json()["what"]
    history = owner.get("/api/attributes/edits").json()
    assert [one["number"] for one in history["edits"]] == [1]
    assert "size" in {one["attribute_id"] for one in _view(owner)["attributes"]}


def test_proposals__built_in_name__values_with_phrases(owner):
    found = owner.post("/api/attributes/proposals", json={"name": "weather"})
    assert {"sunny", "rainy"} <= {value["title"] for value in found.json()["values"]}
    assert all(len(value["phrases"]) >= 2 for value in found.json()["values"])
    refused = owner.post("/api/attributes/proposals", json={"name": "shoe brand"})
    assert refused.status_code == 424
    assert "Give the values yourself" in refused.json()["fix"]


ODD = ("", "no such", "\x00", "\u202e", "x" * 4000, "'; drop", "../../etc")
SENSELESS = (
    {"attributes": ["colour"], "values": []},
    {"attributes": ["colour"] * 2, "values": ["red"] * 2},
    {"attributes": ["colour"], "values": ["red"], "offset": -1},
    {"attributes": ["colour"], "values": ["red"], "offset": 10**30},
    {"attributes": ["colour"], "values": ["red"], "limit": 10**6},
    {"attributes": ["colour"], "values": ["red"], "result": "maybe"},
    {},
)


def test_attributes__odd_texts__never_an_error_of_the_server(owner):
    for odd in ODD:
        edits = (
            {"kind": "rename attribute", "attribute": odd, "title": odd},
            {"kind": "add attribute", "title": odd, "given": [{"title": odd}]},
            {"kind": "move value", "attribute": "colour", "to": odd},
        )
        answers = [
            owner.get("/api/attributes", params={"title": odd}),
            owner.get(
                "/api/attributes/combinations", params={"attributes": [odd], "title": "disc"}
            ),
            owner.get("/api/attributes/samples", params={"attributes": [odd], "values": [odd]}),
            owner.post("/api/attributes/proofs", json={"title": odd, "values": {odd: odd}}),
            owner.post("/api/attributes/proposals", json={"name": odd}),
            *[owner.post("/api/attributes/edits", json={"version": 0, **edit}) for edit in edits],
        ]
        assert all(400 <= answer.status_code < 500 for answer in answers), (
            odd,
            [answer.status_code for answer in answers],
        )


def test_samples__senseless_query__422(owner):
    for query in SENSELESS:
        assert owner.get("/api/attributes/samples", params=query).status_code == 422, query


def test_edits__lone_surrogate__refused_and_nothing_written(owner):
    body = b'{"version": 0, "kind": "rename attribute", "attribute": "colour", "title": "\\ud800"}'
    answer = owner.post(
        "/api/attributes/edits", content=body, headers={"content-type": "application/json"}
    )
    assert 400 <= answer.status_code < 500
    assert owner.get("/api/attributes/edits").json()["edits"] == []
