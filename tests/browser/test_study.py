"""Two people, two browsers: the owner invites, the other learns and describes what goes wrong, and the owner sees it."""

import csv

from playwright.sync_api import expect
from tests.browser.driving import visiting

SENTENCE = "The AI is often wrong on images that have"


def test_study__invited_person_says_a_phrase__owner_sees_it_in_the_table(chromium, large_address):
    with visiting(chromium, large_address) as visit:
        page = visit.page
        visit.go("/studies", "Studies")
        page.get_by_role("button", name="New study").click()
        page.get_by_label("Title, seen by everybody").fill("What goes wrong?")
        page.get_by_role("dialog").get_by_role("checkbox", name="disc").wait_for()
        for box in page.get_by_role("dialog").get_by_role("checkbox").all():
            box.set_checked(False)
        page.get_by_role("dialog").get_by_role("checkbox", name="disc").set_checked(True)
        page.get_by_text("Consent, attention check, given groups").click()
        page.get_by_label("Consent: what people agree to first").fill("We keep your words.")
        page.get_by_label("Attention check: a question").fill("Which colour is grass?")
        page.get_by_label("Its answer").fill("green")
        page.get_by_role("button", name="Begin the study").click()
        page.get_by_role("button", name="Make a link").click()
        link = page.get_by_label("Invitation link").input_value()
        visit.check()
        with visiting(chromium, link, arrives=_logs_in) as guest:
            _describes(guest)
        page.reload()
        expect(page.get_by_role("cell", name="green").first).to_be_visible(timeout=30_000)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download as CSV").click()
        rows = list(
            csv.DictReader(download.value.path().read_text(encoding="utf-8-sig").splitlines())
        )
        assert [(row["person"], row["class_title"], row["phrase"]) for row in rows] == [
            ("Ada", "disc", "green")
        ]
        assert float(rows[0]["confirmed_score"]) > 0.3
        assert (rows[0]["source"], rows[0]["attention"]) == ("own", "yes")
        visit.check()


def _logs_in(page):
    page.get_by_label("Your name, as others will see it").fill("Ada")
    page.get_by_role("button", name="Begin").click()


def _describes(guest):
    page = guest.page
    page.get_by_text("We keep your words.").wait_for()
    page.get_by_role("button", name="I agree and take part").click()
    page.get_by_role("heading", level=1, name="Learn it in two minutes").wait_for()
    guest.check()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("textbox").first.fill("red")
    page.get_by_role("button", name="Skip").click()
    page.get_by_label("Which colour is grass?").fill("Green")
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Begin").click()
    page.get_by_label(SENTENCE).wait_for()
    expect(page.get_by_text("Or try")).to_have_count(0)
    page.get_by_label(SENTENCE).fill("green")
    page.get_by_role("button", name="Check on held-out images").click()
    page.get_by_text("It holds on held-out images.").wait_for()
    guest.check()
    page.goto(f"{guest.address.split('#')[0]}#/slices")
    page.get_by_role("heading", level=1, name="There is no such page").wait_for()
