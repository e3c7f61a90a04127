import base64

import numpy as np

from weakspot.web.static import Question, Reading, digests_in, only_exported


def _packed(values, kind):
    return base64.b64encode(np.array(values, dtype=kind).tobytes()).decode()


ANSWERS = {
    "/api/runs/r1/images": {"slices": {"s": [{"row": 7}]}},
    "/api/slices?run=r1": {"slices": [{"slice_id": "s"}]},
    "/api/slices/s/members?kind=members&limit=60&offset=0&run=r1": {"rows": [5, 6]},
    "/api/classes": {"classes": [{"title": "a b"}]},
    "/api/classes/samples?title=a b": {
        "rows": _packed([1, 2, 3], "<i4"), "failed": _packed([0, 1, 0], "u1"), "total": 3,
    },
    "/api/classes/suggestions?title=a b": {"words": [{"words": "green"}]},
    "/api/classes/history?title=a b": {"phrases": [{"phrase": "green"}, {"phrase": "dark"}]},
    "/api/map?layout=pca": {"rows": _packed([9], "<i4")},
    "/api/map/colourings": {"colourings": [{"by": "result"}]},
}  # fmt: skip


def _read(run_id="r1"):
    asked: list[str] = []
    wanted: list[int] = []

    def ask(question: Question):
        asked.extend(question.keys)
        return next((ANSWERS[key] for key in question.keys if key in ANSWERS), None)

    Reading(ask=ask, want=wanted.extend, run_id=run_id).all_pages()
    return asked, wanted


def test_reading__asks_what_pages_ask_with_and_without_the_run():
    asked, _ = _read()
    for key in (
        "/api/overview",
        "/api/overview?run=r1",
        "/api/slices/s",
        "/api/slices/s/members?kind=extremes&limit=60&offset=0",
        "/api/map?layout=umap",
        "/api/map/colours?by=result",
        "/api/repair/results",
        "/api/generation/searches",
    ):
        assert key in asked, key


def test_reading__phrases_of_suggestions_and_history_once_each():
    asked, _ = _read()
    said = [key for key in asked if key.startswith("POST /api/classes/phrase")]
    assert len(said) == 2
    assert all('"title":"a b"' in key for key in said)


def test_reading__wants_images_most_important_first():
    _, wanted = _read()
    assert wanted == [7, 5, 6, 2, 1, 3, 9]


def test_reading__no_run__asks_without_one():
    asked, wanted = _read(None)
    assert "/api/overview" in asked
    assert not any("run=" in key for key in asked)
    assert 7 not in wanted


def test_only_exported__others_are_not_offered():
    assert only_exported({"run_ids": ["a", "b"], "x": 1}, "b") == {"run_ids": ["b"], "x": 1}
    assert only_exported({"runs": [{"run_id": "a"}, {"run_id": "b"}]}, "b") == {
        "runs": [{"run_id": "b"}]
    }
    assert only_exported({"colourings": [], "has_words": True}, "b") == {
        "colourings": [],
        "has_words": False,
    }
    assert only_exported(None, "b") is None


def test_digests_in__wherever_they_are():
    answer = {"results": [{"images": [{"digest": "d1"}], "digests": ["d2", "d3"]}]}
    assert sorted(digests_in(answer)) == ["d1", "d2", "d3"]
