from xml.etree import ElementTree

import pytest

from weakspot.media.charts import bar_groups, heat_map, interval_chart

SVG = "{http://www.w3.org/2000/svg}"


def _texts(drawing):
    return [node.text for node in ElementTree.fromstring(drawing).iter(f"{SVG}text")]


def test_heat_map__every_cell_is_labelled():
    found = _texts(heat_map(["a", "b & c"], [[1.0, 0.25], [0.25, 1.0]], title="Overlap"))
    assert found.count("0.25") == 2
    assert found.count("1.00") == 2
    assert "b & c" in found
    assert "Overlap" in found


def test_interval_chart__the_line_spans_the_interval():
    drawing = ElementTree.fromstring(interval_chart([("one", 0.25, 0.5, 0.75)], title="Rates"))
    (line,) = drawing.iter(f"{SVG}line")
    (dot,) = drawing.iter(f"{SVG}circle")
    start, end = float(line.get("x1")), float(line.get("x2"))
    assert end - start == pytest.approx(180.0, abs=0.2)
    assert float(dot.get("cx")) == pytest.approx((start + end) / 2, abs=0.2)


def test_bar_groups__lengths_follow_values_and_colours_follow_series():
    drawing = ElementTree.fromstring(bar_groups({"rare": {"x": 1.0, "y": 0.5}, "null": {"y": 0.25}}, title="Precision"))
    bars = [node for node in drawing.iter(f"{SVG}rect") if node.get("height") == "12" and node.get("width") != "12"]
    assert [float(bar.get("width")) for bar in bars] == [360.0, 180.0, 90.0]
    assert bars[1].get("fill") == bars[2].get("fill") != bars[0].get("fill")


def test_heat_map__a_long_title_is_not_cut_off():
    short, long = (
        ElementTree.fromstring(heat_map(["a"], [[1.0]], title=title)) for title in ("x", "Shared failures of classifiers")
    )
    assert float(long.get("width")) > 30 * 6.5
    assert float(short.get("width")) < 100
