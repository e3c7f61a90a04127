from xml.etree import ElementTree

from weakspot.data.charts import heat_map

SVG = "{http://www.w3.org/2000/svg}"


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
