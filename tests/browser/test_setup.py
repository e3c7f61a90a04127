"""A person who has a folder and a table, and no project: the pages ask for what is needed."""

import csv

import pytest
from PIL import Image
from playwright.sync_api import expect
from tests.browser.driving import PATIENCE, Visit, serving


@pytest.fixture
def answers(tmp_path):
    """A table of 24 images whose columns have names of their own."""
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "truth", "said"])
        for number in range(24):
            place = tmp_path / "photos" / f"{number}.png"
            place.parent.mkdir(exist_ok=True)
            Image.new("RGB", (40, 40), (10 * number, 90, 40)).save(place)
            writer.writerow([f"photos/{number}.png", ("cat", "dog")[number % 2], "cat"])
    return tmp_path / "answers.csv"


def test_set_up__table_with_own_names__asked_checked_and_ready_to_begin(
    chromium, answers, monkeypatch
):
    monkeypatch.chdir(answers.parent)
    with serving("serve", "answers.csv") as address:
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        visit = Visit(page=page, address=address)
        visit.listen()
        page.goto(address)
        page.get_by_role("heading", name="Set up a project").wait_for()
        page.get_by_role("alert").filter(has_text="No sample has a label").wait_for()
        page.get_by_role("combobox", name="What is true").select_option("truth")
        page.get_by_role("combobox", name="What was predicted").select_option("said")
        page.get_by_text("24 labelled samples of 2 classes, with predictions").wait_for()
        expect(page.get_by_role("img", name="dog").first).to_be_visible()
        page.get_by_role("button", name="Choose …").first.click()
        page.get_by_role("dialog").get_by_role("button", name="photos/").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Keep and check").click()
        expect(page.get_by_role("button", name="Begin")).to_be_enabled()
        page.get_by_text("classes", exact=False).first.wait_for()
        visit.check()
        assert (answers.parent / "answers-weakspot" / "weakspot.toml").exists()
        context.close()
