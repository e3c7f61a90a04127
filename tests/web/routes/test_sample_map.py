"""Routes of the map."""

import base64

import numpy as np


def rows_of(answer):
    return np.frombuffer(base64.b64decode(answer["rows"]), dtype="<i4")


def test_map__owner__points_without_the_confirmation_half(owner, parts):
    answer = owner.get("/api/map").json()
    assert answer["n_points"] == len(rows_of(answer))
    assert not np.isin(parts.workspace.confirmation.rows, rows_of(answer)).any()
    assert answer["tables"] == parts.workspace.tables_key
    assert not owner.get("/api/map", params={"layout": "umap"}).json()["is_ready"]


def test_map__what_cannot_be__refused_with_words(owner):
    for by in (
        "none",
        "column:none",
        "slice:\x00",
        "depth:none",
        "label:none",
        "phrase: ",
        "phrase:",
        "attribute:none",
        "x" * 2000,
        "",
    ):
        answer = owner.get("/api/map/colours", params={"by": by})
        assert (answer.status_code, bool(answer.json()["what"])) == (422, True), by
    for layout in ("", "tsne", "\x00"):
        assert owner.get("/api/map", params={"layout": layout}).status_code == 422


def test_samples__shown_and_held_back__words_and_404(owner, parts):
    shown, held_back = (
        int(parts.workspace.discovery.rows[0]),
        int(parts.workspace.confirmation.rows[0]),
    )
    assert owner.get(f"/api/map/samples/{shown}").json()["row"] == shown
    assert owner.get(f"/api/map/samples/{held_back}").status_code == 404
    assert owner.get(f"/api/map/samples/{2**31 - 1}").status_code == 404
    assert owner.get(f"/api/map/samples/{10**30}").status_code == 422


def test_selection__rows_of_a_class__counts_and_words(owner, parts):
    rows = parts.workspace.problem("disc").rows[:20].tolist()
    answer = owner.post("/api/map/selection", json={"rows": rows})
    assert answer.status_code == 200, answer.text
    assert answer.json()["n_selected"] == 20
    assert answer.json()["classes"][0]["inside"]["total"] == 20
    assert answer.json()["words"]


def test_selection__what_cannot_be__refused(owner):
    for rows in ([-1], [2**31], [1.5], ["a"], None, [[0]]):
        assert owner.post("/api/map/selection", json={"rows": rows}).status_code == 422, rows
    for title in ("none", "", "\\ud83d", "\\u0000"):
        content = f'{{"rows": [0], "title": "{title}"}}'
        answer = owner.post(
            "/api/map/selection", content=content, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code in (400, 422), title
