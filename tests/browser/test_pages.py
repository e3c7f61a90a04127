"""Every page, on real photographs and on 50,000 planted images: it shows, it is accessible, and its console is silent."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.driving import PAGES, visiting, wait_until

SENTENCE = "The AI is often wrong on images that have"


@pytest.fixture(scope="module", params=["demo", "large"])
def site(request):
    return request.getfixturevalue(f"{request.param}_address")


@pytest.fixture(scope="module")
def visit(chromium, site):
    with visiting(chromium, site) as visit:
        yield visit


@pytest.mark.parametrize(("place", "heading"), PAGES, ids=[heading for _, heading in PAGES])
def test_page__opened__is_accessible_in_light_and_dark_and_its_console_is_silent(
    visit, place, heading
):
    visit.go(place, heading)
    visit.settle()
    visit.check()


@pytest.mark.parametrize(("place", "heading"), PAGES, ids=[heading for _, heading in PAGES])
def test_page__on_a_tablet__needs_no_sideways_scrolling(chromium, site, place, heading):
    with visiting(chromium, site, width=800, height=1000) as visit:
        visit.go(place, heading)
        visit.settle()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 800


def test_pages__menu_by_keyboard_alone__every_page_is_reached(visit):
    visit.go("/", "Overview")
    for _place, heading in PAGES[1:]:
        link = visit.page.get_by_role("navigation", name="Pages").get_by_role(
            "link", name=heading, exact=True
        )
        link.focus()
        visit.page.keyboard.press("Enter")
        visit.page.get_by_role("heading", level=1, name=heading).first.wait_for()
    assert visit.complaints == []


def test_slices__worst_one_opened__shows_members_evidence_and_curve(visit):
    visit.go("/slices", "Slices")
    visit.page.get_by_role("table").get_by_role("link").first.click()
    visit.settle()
    visit.page.get_by_text("How sure?").click()
    expect(visit.page.get_by_role("heading", name="Evidence")).to_be_visible()
    expect(visit.page.get_by_role("button", name=re.compile("wrong")).first).to_be_visible()
    visit.check()


def test_slice__dismissed_and_restored__says_so(visit):
    visit.go("/slices", "Slices")
    visit.page.get_by_role("table").get_by_role("link").first.click()
    visit.page.get_by_role("button", name="Dismiss").click()
    visit.page.get_by_label("Reason").fill("known already")
    visit.page.get_by_role("dialog").get_by_role("button", name="Dismiss").click()
    expect(visit.page.get_by_text("Dismissed by owner: known already")).to_be_visible()
    visit.page.get_by_role("button", name="Restore").click()
    expect(visit.page.get_by_role("button", name="Dismiss")).to_be_visible()


def test_map__drawn_around__says_what_is_inside(visit):
    visit.go("/map", "Map")
    visit.settle()
    visit.page.get_by_role("button", name="Draw around samples").click()
    box = visit.page.locator("canvas").first.bounding_box()
    corners = ((0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.02))
    for number, (x, y) in enumerate(corners):
        visit.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=6)
        if number == 0:
            visit.page.mouse.down()
    visit.page.mouse.up()
    expect(visit.page.get_by_role("heading", name="Selected samples")).to_be_visible()
    visit.settle()
    assert visit.complaints == []


def test_class_view__threshold_moved__server_is_not_asked(visit):
    title = "disc" if visit.page.title().startswith("shapes") else "apple"
    # Classes are put in order, and words looked for, once: while that goes on, a page asks again.
    root = visit.address.split("#")[0]
    wait_until(lambda: visit.page.request.get(f"{root}api/classes").json()["is_ranked"])
    suggested = f"{root}api/classes/suggestions?title={title}"
    wait_until(lambda: visit.page.request.get(suggested).json()["is_complete"])
    visit.page.reload()
    visit.go(f"/classes/{title}", "Classes")
    visit.page.get_by_label(SENTENCE).fill("green")
    slider = visit.page.get_by_role("slider", name="From here on an image fits the words")
    slider.wait_for()
    visit.settle()
    before = slider.get_attribute("aria-valuetext")
    asked = []
    # Images of the grids are no question, and the line by which others' changes come is opened by itself.
    visit.page.on(
        "request",
        lambda request: (
            asked.append(request.url) if request.resource_type in ("fetch", "xhr") else None
        ),
    )
    slider.focus()
    for _ in range(12):
        visit.page.keyboard.press("Shift+ArrowLeft")
    expect(slider).not_to_have_attribute("aria-valuetext", before)
    assert asked == []
    assert visit.complaints == []
