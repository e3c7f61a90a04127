import pytest

from weakspot_lab.reproduce.search.outcome import measured, ratio


def test_measured__ratios_to_the_reference_caption():
    counts = {
        "first reference": {"n_images": 399, "failures": 39, "target": 1},
        "first found": {"n_images": 399, "failures": 197, "target": 149},
        "second reference": {"n_images": 59, "failures": 5, "target": 0},
        "second found": {"n_images": 59, "failures": 2, "target": 0},
    }
    row = {
        "class": "disc",
        "target": "star",
        "n_images": 900,
        "captions": ["it is dark."],
        "is_planted": [True],
        "caption": "it is dark.",
        "labels": {"reference": {"star": 3, "ring": 1}, "found": {"star": 1}},
        "second p": 0.9,
        **counts,
    }
    none = {"class": "ring", "target": "disc", "n_images": 9, "captions": [], "is_planted": []}
    found = measured({"pairs": {"rows": [row, none]}})
    assert ratio(row, "failures") == 5.0
    assert found["total_ratio"].value == 5.0
    assert found["target_ratio_low"].value == pytest.approx(149.5 / 1.5)
    assert found["pairs_found"].value == 50.0
    assert found["main_confusion"].value == 75.0
    assert found["second_generator"].value == 0.0
