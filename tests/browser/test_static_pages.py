"""Exported pages, opened from a folder: every page shows its data, nothing is asked of a network, and the console is silent."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.driving import PAGES, PATIENCE, wait_for_image

from weakspot.web.static import ExportRequest, export_static

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def exported(demo_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("static") / "pages"
    return export_static(ExportRequest(project=demo_folder, folder=folder), say=lambda _text: None)


@pytest.fixture
def opened(chromium, exported):
    """A page on the export, and everything that went wrong on it."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(request.url))
    page.on(
        "request",
        lambda request: (
            wrong.append(request.url) if not re.match("file:|data:|blob:", request.url) else None
        ),
    )
    page.goto(exported.index.absolute().as_uri())
    page.get_by_role("heading", level=1, name="Overview").wait_for()
    yield page, exported.index.absolute().as_uri()
    context.close()
    assert wrong == []


@pytest.mark.parametrize(("place", "heading"), PAGES, ids=[heading for _, heading in PAGES])
def test_static_page__opened_from_a_folder__shows_without_network(opened, place, heading):
    page, address = opened
    page.goto(f"{address}#{place}")
    page.get_by_role("heading", level=1, name=heading).wait_for()
    page.wait_for_load_state("networkidle")
    expect(page.get_by_text("Loading")).to_have_count(0)
    alerts = page.get_by_role("alert")
    expect(alerts).to_have_count(1 if place == "/studies" else 0)
    if place == "/studies":
        expect(alerts).to_contain_text("not part of the exported pages")


def test_static_classes__suggested_words_chosen__are_scored_and_split_the_images(opened):
    page, address = opened
    page.goto(f"{address}#/classes/apple")
    page.locator(".suggestions .chip").first.click()
    expect(page.get_by_text("Error Score", exact=True).first).to_be_visible()
    expect(page.get_by_text(re.compile("Typing needs"))).to_be_visible()
    wait_for_image(page.locator("button.tile img").first)


def test_static_slices__one_opened__shows_its_images(opened):
    page, address = opened
    page.goto(f"{address}#/slices")
    page.locator("a[href*='/slices/']").first.click()
    expect(page.locator("img[src^='images/']").first).to_be_visible()
