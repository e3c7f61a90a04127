from xml.etree import ElementTree

import pytest

from weakspot_lab.charts import bar_groups, factor_axis, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def _texts(drawing):
    return [node.text for node in ElementTree.fromstring(drawing).iter(f"{SVG}text")]


def test_factor_axis__marks_the_values_themselves():
    axis = factor_axis([4.0, 1.0, 2.0, 2.0], 100.0)
    assert axis.ticks == ((1.0, "1"), (2.0, "2"), (4.0, "4"))
    assert [axis.place(value) for value in (1.0, 2.0, 4.0)] == pytest.approx([0.0, 50.0, 100.0])
    assert factor_axis([3.0], 100.0).place(3.0) == pytest.approx(50.0)


def test_bar_groups__lengths_follow_values_and_colours_follow_series():
    drawing = ElementTree.fromstring(
        bar_groups({"rare": {"x": 1.0, "y": 0.5}, "null": {"y": 0.25}}, title="Precision")
    )
    bars = [
        node
        for node in drawing.iter(f"{SVG}rect")
        if node.get("height") == "12" and node.get("width") != "12"
    ]
    assert [float(bar.get("width")) for bar in bars] == [360.0, 180.0, 90.0]
    assert bars[1].get("fill") == bars[2].get("fill") != bars[0].get("fill")


def test_line_chart__one_line_a_series():
    text = line_chart(
        {"k 1": [(0.0, 0.0), (1.0, 0.5)], "k 2": [(0.0, 1.0)]},
        title="t",
        x_label="weight",
        y_label="share",
    )
    lines = list(ElementTree.fromstring(text).iter(f"{SVG}polyline"))
    start, end = (
        tuple(map(float, corner.split(","))) for corner in lines[0].get("points").split(" ")
    )
    assert end[0] - start[0] == pytest.approx(400.0, abs=0.2)
    assert start[1] - end[1] == pytest.approx(120.0, abs=0.2)
    assert len(lines) == 2
    assert {"k 1", "k 2", "weight", "share"} <= set(_texts(text))


def test_line_chart__equal_factors_are_equal_steps():
    points = [(0.0, 0.5), (0.25, 0.1), (0.5, 0.2), (1.0, 0.3)]
    text = line_chart({"one": points}, title="t", x_label="x", y_label="y", is_log=True)
    (line,) = ElementTree.fromstring(text).iter(f"{SVG}polyline")
    places = [float(corner.split(",")[0]) for corner in line.get("points").split(" ")]
    # Zero has no place on such an axis.
    assert [place - places[0] for place in places] == pytest.approx([0.0, 200.0, 400.0], abs=0.2)
    assert {"0.25", "0.5", "1"} <= set(_texts(text))


def test_line_chart__nothing_to_draw():
    for is_log in (False, True):
        text = line_chart({"empty": []}, title="t", x_label="x", y_label="y", is_log=is_log)
        assert "empty" in _texts(text)
