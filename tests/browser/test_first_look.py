"""What people complained of when they first looked: images below the fold, two names for one thing, words of programmers."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.driving import PAGES, visiting, wait_for_image

UNWANTED = ("Go out", "owner, owner", "Held:", "apple: green", "String should match")
FOLD = 900


@pytest.fixture(scope="module")
def visit(chromium, demo_address):
    with visiting(chromium, demo_address, width=1440, height=FOLD) as visit:
        yield visit


def test_overview__first_image__is_there_without_scrolling(visit):
    visit.go("/", "Overview")
    image = visit.page.get_by_role("button", name=re.compile("wrong")).first.locator("img")
    wait_for_image(image)
    box = image.bounding_box()
    assert box["y"] + box["height"] <= FOLD


@pytest.mark.parametrize("place", ["/slices", "/repair"])
def test_page__of_slices_and_of_repairs__shows_images(visit, place):
    visit.go(place, dict(PAGES)[place])
    image = visit.page.locator("main img").first
    wait_for_image(image)


def test_pages__everywhere__one_title_for_a_slice_and_no_words_of_programmers(visit):
    seen = {}
    for place, heading in PAGES:
        visit.go(place, heading)
        visit.settle()
        seen[place] = visit.page.locator("body").inner_text()
    assert [(place, one) for place, text in seen.items() for one in UNWANTED if one in text] == []
    for place in ("/", "/slices", "/repair"):
        assert "green apples" in seen[place]
    visit.go("/slices", "Slices")
    visit.page.get_by_role("table").get_by_role("link", name="green apples").click()
    expect(visit.page.get_by_role("heading", level=1, name="green apples")).to_be_visible()
    visit.go("/images", "Images")
    choice = visit.page.get_by_role("combobox", name="Slice", exact=True)
    assert any("green apples" in one for one in choice.locator("option").all_inner_texts())


def test_colours__right_wrong_good_and_bad__are_four_in_light_and_dark(visit):
    names = ("--right", "--wrong", "--good", "--bad")
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        found = [
            visit.page.evaluate(
                "name => getComputedStyle(document.documentElement).getPropertyValue(name)", name
            )
            for name in names
        ]
        assert len(set(found)) == len(names), (scheme, found)
    visit.page.emulate_media(color_scheme="light")


def test_slice__threshold_dragged__images_join_and_nothing_is_changed(visit):
    visit.go("/slices", "Slices")
    visit.page.get_by_role("table").get_by_role("link", name="green apples").click()
    visit.page.get_by_text("Try another threshold").click()
    slider = visit.page.get_by_role("slider", name="Members, from the deepest on")
    slider.focus()
    for _ in range(5):
        visit.page.keyboard.press("ArrowRight")
    joining = visit.page.locator(".slice-crossing")
    expect(joining.get_by_text("5 join, those nearest to the line first")).to_be_visible()
    expect(joining.locator("img")).to_have_count(5)
    visit.settle()
    visit.check()


def test_models__none_to_compare_with__says_how_to_get_one(visit):
    visit.go("/compare", "Two classifiers")
    expect(visit.page.get_by_text(re.compile("weakspot serve -p .* --compare"))).to_be_visible()


def test_slices__on_a_tablet__verdicts_are_not_cut(chromium, demo_address):
    with visiting(chromium, demo_address, width=800, height=1000) as visit:
        visit.go("/slices", "Slices")
        verdict = visit.page.get_by_role("table").locator(".badge").first
        verdict.wait_for()
        box = verdict.bounding_box()
        assert box["x"] + box["width"] <= 800


def test_slice__address_of_none__told_in_words(visit):
    visit.page.goto(f"{visit.address.split('#')[0]}#/slices/nonsense")
    alert = visit.page.get_by_role("alert")
    expect(alert).to_contain_text("Open it from the page that lists it")
    assert not re.search(r"[\^\[\]{}$]", alert.inner_text())
    visit.complaints.clear()
