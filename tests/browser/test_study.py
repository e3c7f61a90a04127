"""Two people, two browsers: the owner invites, the other describes what goes wrong, and the owner sees it."""

import re

from playwright.sync_api import expect
from tests.browser.driving import visiting


def test_study__invited_person_says_a_phrase__owner_sees_it(chromium, large_address):
    with visiting(chromium, large_address) as visit:
        page = visit.page
        visit.go("/studies", "Studies")
        page.get_by_role("button", name="New study").click()
        page.get_by_role("dialog").get_by_label("Title").fill("What goes wrong?")
        page.get_by_role("dialog").get_by_role("button", name="Begin the study").click()
        page.get_by_role("button", name="Make a link").click()
        link = page.get_by_label("Invitation link").input_value()
        visit.check()
        _describe(chromium, link)
        page.reload()
        expect(page.get_by_text("green").first).to_be_visible(timeout=30_000)
        visit.check()


def _describe(chromium, link):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Name", exact=False).first.fill("Ada")
    page.get_by_role("button", name=re.compile("Come in|Join|Begin", re.IGNORECASE)).first.click()
    page.get_by_role("heading", level=1).first.wait_for()
    page.screenshot(path="/tmp/study.png", full_page=True)
    context.close()
