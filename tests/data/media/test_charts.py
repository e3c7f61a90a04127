from xml.etree import ElementTree

import pytest

from weakspot.data.charts import (
    ChartPoint,
    heat_map,
    interval_chart,
    scatter,
)

SVG = "{http://www.w3.org/2000/svg}"


def _texts(drawing):
    return [node.text for node in ElementTree.fromstring(drawing).iter(f"{SVG}text")]


def test_interval_chart__the_line_spans_the_interval():
    drawing = ElementTree.fromstring(interval_chart([("one", 0.25, 0.5, 0.75)], title="Rates"))
    (line,) = drawing.iter(f"{SVG}line")
    (dot,) = drawing.iter(f"{SVG}circle")
    start, end = float(line.get("x1")), float(line.get("x2"))
    assert end - start == pytest.approx(180.0, abs=0.2)
    assert float(dot.get("cx")) == pytest.approx((start + end) / 2, abs=0.2)


def _dots(drawing, *, ring=False):
    return [node for node in drawing.iter(f"{SVG}circle") if (node.get("class") == "ring") is ring]


def test_scatter__places_follow_values():
    points = [
        ChartPoint(name="a", across=0.0, up=0.0),
        ChartPoint(name="b & c", across=1.0, up=0.5),
    ]
    text = scatter(points, title="Gain <1>", x_label="overall", y_label="slice")
    drawing = ElementTree.fromstring(text)
    low, high = _dots(drawing)
    # The frame is 400 by 240 pixels, from 0 to 1 and from 0 to 0.5; up is up.
    assert float(high.get("cx")) - float(low.get("cx")) == pytest.approx(400.0, abs=0.2)
    assert float(low.get("cy")) - float(high.get("cy")) == pytest.approx(240.0, abs=0.2)
    assert {"a", "b & c", "overall", "slice", "Gain <1>", "0.0", "1.0"} <= set(_texts(text))
    assert "var(--ink" in text


def test_scatter__bars_span_intervals_and_a_ring_marks():
    points = [
        ChartPoint(
            name="one",
            across=0.5,
            up=0.5,
            across_interval=(0.0, 1.0),
            up_interval=(0.2, 0.7),
            is_marked=True,
        ),
        ChartPoint(name="two", across=0.1, up=0.0),
    ]
    drawing = ElementTree.fromstring(scatter(points, title="t", x_label="x", y_label="y"))
    across, upwards = [node for node in drawing.iter(f"{SVG}line") if node.get("class") == "bar"]
    assert float(across.get("x2")) - float(across.get("x1")) == pytest.approx(400.0, abs=0.2)
    assert across.get("y1") == across.get("y2")
    # The axis goes from 0.0 to 0.8 in 240 pixels.
    assert float(upwards.get("y1")) - float(upwards.get("y2")) == pytest.approx(
        0.5 / 0.8 * 240, abs=0.2
    )
    (ring,) = _dots(drawing, ring=True)
    assert ring.get("cx") == _dots(drawing)[0].get("cx")


def test_scatter__series_share_a_colour_and_have_a_legend():
    points = [
        ChartPoint(name="", across=place, up=place, series=series)
        for place, series in enumerate(("x", "y", "x"))
    ]
    text = scatter(points, title="t", x_label="x", y_label="y")
    colours = [node.get("fill") for node in _dots(ElementTree.fromstring(text))]
    assert colours[0] == colours[2] != colours[1]
    assert _texts(text)[-2:] == ["x", "y"]


def test_scatter__names_do_not_cover_each_other():
    points = [ChartPoint(name=f"name {place}", across=0.001 * place, up=1.0) for place in range(4)]
    points.append(ChartPoint(name="far", across=1.0, up=0.0))
    drawing = ElementTree.fromstring(scatter(points, title="t", x_label="x", y_label="y"))
    places = [
        (float(node.get("x")), float(node.get("y")))
        for node in drawing.iter(f"{SVG}text")
        if (node.text or "").startswith("name")
    ]
    assert len({top for _, top in places}) == 4


@pytest.mark.parametrize(
    "points",
    [
        [],
        [ChartPoint(name="alone", across=0.0, up=0.0)],
        [ChartPoint(name="same", across=7.0, up=7.0), ChartPoint(name="same", across=7.0, up=7.0)],
        [
            ChartPoint(name="unknown", across=float("nan"), up=1.0),
            ChartPoint(name="known", across=0.5, up=1.0),
        ],
        [
            ChartPoint(name="huge", across=1e12, up=-1e12),
            ChartPoint(name="tiny", across=1e-12, up=0.0),
        ],
    ],
)
def test_scatter__odd_points_still_give_a_drawing(points):
    text = scatter(points, title="t", x_label="x", y_label="y")
    drawing = ElementTree.fromstring(text)
    assert len(_dots(drawing)) == sum(point.is_finite for point in points)
    assert "nan" not in text.replace("unknown", "")


def test_heat_map__every_cell_has_its_number_and_its_colour():
    tree = ElementTree.fromstring(
        heat_map(
            ["set & one"],
            [[0.0, 0.5, 1.0]],
            title="Shares <t>",
            columns=["first", "second", "third"],
        )
    )
    texts = [node.text for node in tree.iter(f"{SVG}text")]
    assert texts == ["Shares <t>", "set & one", "first", "second", "third", "0.00", "0.50", "1.00"]
    cells = list(tree.iter(f"{SVG}rect"))
    assert cells[0].get("fill") == "#ffffff"
    assert cells[2].get("fill") == "#174880"
    assert len({cell.get("y") for cell in cells}) == 1
    assert len({cell.get("x") for cell in cells}) == 3


def test_heat_map__long_names_stay_inside():
    tree = ElementTree.fromstring(
        heat_map(
            ["s"], [[0.1, 0.2]], title="t", columns=["a very long name of a classifier indeed", "b"]
        )
    )
    slanted = next(node for node in tree.iter(f"{SVG}text") if node.text.startswith("a very"))
    # The name goes down and to the left at 60 degrees: half its length to the left.
    assert float(slanted.get("x")) - 0.5 * 6.6 * len(slanted.text) > 0
    assert float(tree.get("width")) > float(slanted.get("x"))
