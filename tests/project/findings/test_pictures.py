"""Findings as HTML and as images."""

from io import BytesIO

from PIL import Image

from weakspot.project.findings import finding_html
from weakspot.report.findings import ShownImage, SliceImages, SliceSentences

ATTACK = "<script>alert(1)</script>"


def jpeg():
    buffer = BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "JPEG")
    return buffer.getvalue()


def test_finding_html__names_from_data__are_escaped():
    shown = SliceImages(
        hard=(ShownImage(sample_id="1", answer=f'"{ATTACK}', has_failed=True),),
        easy=(ShownImage(sample_id="2", answer="pear", has_failed=False),),
    )
    html = finding_html(ATTACK, SliceSentences(sentence=ATTACK), shown, {"1": jpeg()})
    assert "<script" not in html
    assert html.count("<img") == 1
    assert "rest of the class" not in html
