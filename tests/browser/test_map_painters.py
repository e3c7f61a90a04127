"""Both ways of drawing the map: by the graphics card, and pixel by pixel where there is none."""

import io

import numpy as np
import pytest
from PIL import Image
from tests.browser.driving import visiting, wait_until

# Chromium says truthfully that its graphics card is imitated. Hiding that makes the page draw with WebGL 2, which
# the imitation does correctly.
HIDE_IMITATION = """
const real = WebGL2RenderingContext.prototype.getParameter;
WebGL2RenderingContext.prototype.getParameter = function (name) {
  const answer = real.call(this, name);
  return typeof answer === "string" && /swiftshader/i.test(answer) ? "a graphics card" : answer;
};
"""


@pytest.mark.parametrize("is_card", [False, True], ids=["pixels", "card"])
def test_map__drawn_either_way__shows_right_and_wrong_points_in_their_colours(
    chromium, large_address, is_card
):
    with visiting(chromium, large_address) as visit:
        if is_card:
            visit.page.add_init_script(HIDE_IMITATION)
            visit.page.reload()
        visit.go("/map", "Map")
        visit.settle()
        canvas = visit.page.locator("canvas").first
        assert canvas.evaluate("canvas => canvas.getContext('webgl2') !== null") is is_card
        wait_until(lambda: _shows_both_colours(canvas))
        assert visit.complaints == []


def _shows_both_colours(canvas):
    pixels = np.asarray(Image.open(io.BytesIO(canvas.screenshot())).convert("RGB")).astype(int)
    red, blue = pixels[..., 0], pixels[..., 2]
    return (red > blue + 60).sum() > 200 and (blue > red + 60).sum() > 1000
