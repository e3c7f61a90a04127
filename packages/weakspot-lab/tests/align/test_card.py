import json

import numpy as np

from weakspot.models.text_side import TextProjection
from weakspot_lab.align.aligning import Card, Figure, settings_of, write_card
from weakspot_lab.align.training import AlignParameters, AlignResult

CARD = Card(
    title="Our text side",
    summary="A small map.",
    figures=[Figure(name="recall at 10", value=0.8125, n_samples=1000, beside="CLIP 0.9")],
    limits=["Counting."],
    data=["Flickr8k."],
    settings={"steps": 5},
)


def test_to_markdown__table_and_lists() -> None:
    text = CARD.to_markdown()

    assert "| recall at 10 | 0.812 | 1,000 | CLIP 0.9 |" in text
    assert "## What it is bad at\n\n- Counting." in text
    assert text.endswith("- steps: 5\n")


def test_write_card__both_forms(tmp_path) -> None:
    markdown, data = write_card(CARD, tmp_path / "card")

    assert markdown.read_text(encoding="utf-8") == CARD.to_markdown()
    assert json.loads(data.read_text(encoding="utf-8"))["figures"][0]["n_samples"] == 1000
    assert sorted(entry.name for entry in (tmp_path / "card").iterdir()) == ["CARD.md", "card.json"]


def test_settings_of__best_recall_of_the_history() -> None:
    empty = np.zeros((1, 0), dtype=np.float32)
    one = np.zeros(1, dtype=np.float32)
    projection = TextProjection(
        image_mean=one,
        text_mean=one,
        linear=np.zeros((1, 1), dtype=np.float32),
        bias=one,
        hidden_in=empty,
        hidden_bias=empty[0],
        hidden_out=empty.T,
    )

    history = ((0, 0.5), (20, 0.75))
    result = AlignResult(
        projection=projection, best_step=20, history=history, parameters=AlignParameters(seed=7)
    )
    settings = settings_of(result)

    assert (settings["best_step"], settings["held_out_recall_at_10"], settings["seed"]) == (
        20,
        0.75,
        7,
    )
