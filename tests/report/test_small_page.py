from PIL import Image

from weakspot.core.evidence import Share
from weakspot.report.document import figure, paragraph, share_cell, small_page, table, text_cell


def test_small_page__plain_text_is_escaped_and_empty_parts_are_left_out():
    page = small_page("<apple>", [paragraph("a < b"), "", paragraph("")])
    assert "<h1>&lt;apple&gt;</h1>" in page
    assert "<p>a &lt; b</p>" in page
    assert page.count("<p>") == 1
    assert page.endswith("</html>")


def test_table__names_rows_and_columns():
    found = table(["caption", "fail"], [("<b>", text_cell("3 & 4", "quiet"))], caption="x > y")
    assert "<th scope='row'>&lt;b&gt;</th><td>3 &amp; 4<br><small>quiet</small></td>" in found
    assert "<caption>x &gt; y</caption>" in found


def test_share_cell__says_counts_and_interval_or_nothing():
    assert "3 of 10" in share_cell(Share.of(3, 10))
    assert "11–60 %" in share_cell(Share.of(3, 10))
    assert share_cell(Share.of(0, 0)) == "<td>–</td>"


def test_figure__is_inside_the_page():
    assert "src='data:image/jpeg;base64,/9j/" in figure(
        Image.new("RGBA", (4, 4)), alt="it's a 'image'"
    )
    assert "it&#x27;s a &#x27;image&#x27;" in figure(Image.new("L", (4, 4)), alt="it's a 'image'")
