"""Looking closely on real photographs: two slices side by side, and where the classifier looks."""

import json
import re

import pytest
from playwright.sync_api import expect
from tests.browser.driving import visiting


@pytest.fixture
def two_slices(chromium, demo_address):
    """The owner's window on the demo, with a second slice."""
    with visiting(chromium, demo_address) as visit:
        root, request = demo_address.split("#")[0], visit.page.request
        token = request.get(f"{root}api/session").json()["csrf_token"]
        headers = {"X-CSRF-Token": token, "Origin": root.rstrip("/")}
        body = json.dumps({"title": "apple", "phrase": "in a crate"})
        headers["Content-Type"] = "application/json"
        assert request.post(f"{root}api/classes/accept", headers=headers, data=body).ok
        yield visit


@pytest.mark.network
def test_slices__two_picked__side_by_side_under_an_address(two_slices):
    page = two_slices.page
    two_slices.go("/slices", "Slices")
    two_slices.settle()
    for box in page.get_by_role("table").get_by_role("checkbox").all()[:2]:
        box.check()
    page.get_by_role("link", name="Side by side").click()
    page.get_by_role("heading", level=1, name="Two slices side by side").wait_for()
    page.get_by_role("heading", name="In the first alone").wait_for()
    expect(page).to_have_url(re.compile("/beside/"))
    two_slices.settle()
    two_slices.check()


@pytest.mark.network
def test_viewer__heat_map__says_what_it_is_and_goes_on_to_the_next(two_slices):
    page = two_slices.page
    two_slices.go("/images?result=wrong", "Images")
    page.get_by_role("button", name="predicted as").first.click()
    page.get_by_role("button", name="Heat map").click()
    page.get_by_text("It does not prove what it uses").wait_for()
    two_slices.check()
    page.keyboard.press("ArrowRight")
    page.get_by_text("It does not prove what it uses").wait_for()
    page.keyboard.press("h")
    expect(page.get_by_text("It does not prove what it uses")).to_have_count(0)
    page.get_by_text("With repairs").first.wait_for()
    assert two_slices.complaints == []
