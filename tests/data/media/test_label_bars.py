from xml.etree import ElementTree

import pytest

from weakspot.data.charts import TARGET_COLOUR, LabelPanel, label_bars

SVG = "{http://www.w3.org/2000/svg}"
BASELINE = LabelPanel(
    title="a photograph of a fly (insect).", n_images=1000, counts={"ant": 10, "bee": 1}
)
DISCOVERED = LabelPanel(
    title="a photograph of a fly (insect). it is on a flower.",
    n_images=200,
    counts={"bee": 100, "ant": 20},
)


def _tree(*panels, **options):
    return ElementTree.fromstring(label_bars(panels, **options))


def _texts(tree):
    return [node.text for node in tree.iter(f"{SVG}text")]


def _bars(tree):
    return {
        (node.find(f"{SVG}title").text, float(node.get("width"))): node
        for node in tree.iter(f"{SVG}rect")
    }


def test_label_bars__all_panels_have_one_scale():
    lengths = [length for _, length in _bars(_tree(BASELINE, DISCOVERED))]
    # 1 %, 0.1 %, 50 % and 10 % of the images: the longest bar is 170 long, the shortest can still be seen.
    assert lengths == pytest.approx([3.4, 1.0, 170.0, 34.0], abs=0.05)


def test_label_bars__rates_are_shares_of_all_images_with_counts():
    texts = _texts(_tree(BASELINE, DISCOVERED))
    assert {"1.0 % (10)", "0.10 % (1)", "50 % (100)", "10 % (20)"} <= set(texts)
    assert "120 of 200 images have a wrong label: 60 %" in texts
    assert "11 of 1000 images have a wrong label: 1.1 %" in texts


def test_label_bars__the_target_is_highlighted_and_never_left_out():
    counts = {f"label {number:02d}": 40 - number for number in range(20)}
    panel = LabelPanel(title="many", n_images=1000, counts={**counts, "bee": 2})
    never = LabelPanel(title="none", n_images=10, counts={})
    tree = _tree(panel, never, target="bee")
    bars = list(tree.iter(f"{SVG}rect"))
    marked = [node for node in bars if node.get("fill") == TARGET_COLOUR]
    assert len(bars) == 15 + 1
    assert [node.find(f"{SVG}title").text for node in marked] == ["bee", "bee"]
    assert float(marked[1].get("width")) == 0.0
    assert "141 of them in 6 rarer labels, not shown" in _texts(tree)


def test_label_bars__a_long_caption_is_wrapped_and_signs_are_escaped():
    long = LabelPanel(title="a <b> & " + "very long caption " * 12, n_images=1, counts={"x & y": 1})
    tree = _tree(long)
    bold = [node for node in tree.iter(f"{SVG}text") if node.get("font-weight") == "600"]
    assert len(bold) > 3
    assert bold[0].text.startswith("a <b> & very")
    assert max(len(node.text) for node in bold) * 6.6 < float(tree.get("width"))
