"""A new user with the README in hand: words alone lead to the planted kind, a slice, a repair, and a file to take home."""

import re

import pytest
from playwright.sync_api import expect
from safetensors.numpy import load
from tests.browser.driving import visiting


@pytest.mark.network
def test_demo__words_accepted_and_repaired__the_head_is_downloaded(chromium, demo_address):
    with visiting(chromium, demo_address) as visit:
        page = visit.page
        page.get_by_role("navigation", name="Pages").get_by_role("link", name="Classes").click()
        page.get_by_role("heading", level=1, name="Classes").wait_for()
        page.get_by_label("The AI is often wrong on images that have").fill("green")
        page.get_by_text("Good words.", exact=True).wait_for()
        page.get_by_role("button", name="Check on held-out images").click()
        page.get_by_text("It holds on held-out images.").wait_for()
        page.get_by_role("button", name="Accept as a slice").click()
        page.get_by_text("Accepted: green apples.").wait_for()
        visit.check()
        page.get_by_role("link", name="Open this slice").click()
        page.get_by_role("heading", level=1, name="green apples").wait_for()
        visit.check()

        page.get_by_role("navigation", name="Pages").get_by_role("link", name="Repair").click()
        page.get_by_role("button", name="Repair", exact=True).click()
        # The demo's own repair is on the page already, and the button waits only once the work is listed.
        expect(page.get_by_role("group", name="Repairing")).to_be_visible()
        expect(page.get_by_role("button", name="Repair", exact=True)).to_be_enabled(timeout=180_000)
        page.get_by_text("Accuracy on “green apples” rose").first.wait_for()
        # As long as the job is listed as under way, the page is made anew, and a click on a link may meet its forerunner.
        expect(
            page.get_by_role("status").filter(has_text=re.compile("under way|waits for other jobs"))
        ).to_have_count(0)
        with page.expect_download(timeout=90_000) as download:
            page.get_by_role("link", name="repaired_head.safetensors").click()
        newest = page.context.request.get(f"{demo_address.split('#')[0]}api/jobs").json()["jobs"][0]
        assert (newest["kind"], newest["state"]) == ("repair", "done")
        head = load(download.value.path().read_bytes())
        assert head["weight"].shape[0] == 2
        assert visit.complaints == []
