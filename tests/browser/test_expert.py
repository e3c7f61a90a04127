"""A domain expert's way through the pages, clicks counted: look, point, tell somebody, go back; and what others see of it meanwhile."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect
from tests.browser.driving import Visit, visiting, wait_for_image, wait_until


@pytest.fixture(scope="module")
def visit(chromium, demo_address):
    with visiting(chromium, demo_address, width=1440) as visit:
        yield visit


@dataclass
class Hand:
    """A hand on a mouse, and how often it pressed."""

    clicks: int = 0

    def click(self, place: Locator) -> None:
        place.click()
        self.clicks += 1


def _viewer(visit: Visit) -> Locator:
    return visit.page.get_by_role("dialog")


def _place(visit: Visit) -> Locator:
    return _viewer(visit).get_by_text(re.compile(r"^[\d,]+ of [\d,]+$"))


def _name(visit: Visit) -> str:
    return _viewer(visit).get_by_role("heading", level=2).inner_text()


def test_expert__overview_to_image_to_file_name__one_click_each(visit):
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.go("/", "Overview")
    hand = Hand()
    hand.click(visit.page.get_by_role("button", name=re.compile("wrong")).first)
    image = _viewer(visit).get_by_role("img", name=re.compile("predicted as"))
    wait_for_image(image, wider_than=300)
    assert hand.clicks == 1
    hand.click(_viewer(visit).get_by_role("button", name="Copy file name"))
    wait_until(lambda: visit.page.evaluate("navigator.clipboard.readText()") == _name(visit))
    assert hand.clicks == 2
    visit.page.keyboard.press("Escape")


def test_expert__twenty_images_by_keyboard__three_labels_marked_and_downloaded(visit):
    visit.go("/images?result=wrong&order=loss", "Images")
    hand = Hand()
    hand.click(visit.page.get_by_role("button", name=re.compile("wrong")).first)
    expect(_place(visit)).to_have_text(re.compile("^1 of "))
    marked = []
    for number in range(1, 21):
        if number in (2, 5, 9):
            visit.page.keyboard.press("w")
            expect(_viewer(visit).get_by_label("The right label")).to_be_focused()
            visit.page.keyboard.press("p")
            visit.page.keyboard.press("Enter")
            expect(_viewer(visit).get_by_text("Label is wrong: it is pear")).to_be_visible()
            # Another page may have told of the mark before its own answer closed the form, which takes the arrow keys.
            expect(_viewer(visit).get_by_label("The right label")).to_have_count(0)
            marked.append(_name(visit))
        if number < 20:
            visit.page.keyboard.press("ArrowRight")
            expect(_place(visit)).to_have_text(re.compile(f"^{number + 1} of "))
    assert hand.clicks == 1
    visit.page.keyboard.press("Escape")
    hand.click(visit.page.get_by_role("link", name="Marks", exact=True))
    expect(visit.page.get_by_text("wait to be applied")).to_be_visible()
    with visit.page.expect_download() as loading:
        hand.click(visit.page.get_by_role("link", name="Download the table (CSV)"))
    assert hand.clicks == 3
    lines = list(csv.DictReader(Path(loading.value.path()).read_text().splitlines()))
    assert sorted(line["file"] for line in lines) == sorted(marked)
    assert all(line["right_label"] and line["right_label"] != line["label"] for line in lines)
    visit.settle()
    visit.check()


def test_expert__picked_images__tagged_seen_on_the_map_and_back(visit):
    visit.go("/images?result=wrong&order=loss", "Images")
    tiles = visit.page.get_by_role("button", name=re.compile("predicted as"))
    hand = Hand()
    tiles.nth(0).click(modifiers=["ControlOrMeta"])
    tiles.nth(3).click(modifiers=["Shift"])
    bar = visit.page.get_by_role("group", name="What to do with 4 images")
    expect(bar).to_be_visible()
    visit.settle()
    visit.check()
    hand.click(bar.get_by_role("button", name="Tag"))
    bar.get_by_label("Tag").fill("ask the grower")
    visit.page.keyboard.press("Enter")
    expect(bar.get_by_text("Marked 4 images: tag: ask the grower")).to_be_visible()
    hand.click(bar.get_by_role("button", name="Show on the map"))
    expect(visit.page.get_by_text("Selected are the 4 images of a choice.")).to_be_visible()
    panel = visit.page.get_by_role("group", name="What to do with 4 samples")
    expect(panel).to_be_visible()
    hand.click(panel.get_by_role("button", name="See only these"))
    expect(visit.page.get_by_role("status").filter(has_text="4 of")).to_be_visible()
    assert hand.clicks == 3
    expect(visit.page).to_have_url(re.compile("selection=[0-9a-f]{16}"))
    visit.page.get_by_role("combobox", name="Mark", exact=True).select_option("tag: ask the grower")
    expect(visit.page.get_by_role("status").filter(has_text="4 of")).to_be_visible()


def test_expert__two_slices_compared__three_clicks_from_the_list(visit):
    visit.go("/classes/apple?phrase=in%20a%20supermarket", "Classes")
    hand = Hand()
    hand.click(visit.page.get_by_role("button", name="Accept as a slice"))
    expect(visit.page.get_by_text(re.compile("^Accepted: "))).to_be_visible()
    hand.click(visit.page.get_by_role("link", name="Slices", exact=True))
    boxes = visit.page.get_by_role("table").get_by_role("checkbox")
    expect(boxes.nth(1)).to_be_visible()
    before = hand.clicks
    hand.click(boxes.nth(0))
    hand.click(boxes.nth(1))
    hand.click(visit.page.get_by_role("link", name="Side by side"))
    expect(visit.page.get_by_role("heading", name="Two slices side by side")).to_be_visible()
    for part in ("In the first alone", "In the second alone", "In both"):
        expect(visit.page.get_by_role("heading", name=part)).to_be_visible()
    image = visit.page.get_by_role("button", name=re.compile("predicted as")).first.locator("img")
    wait_for_image(image)
    assert (hand.clicks - before, hand.clicks) == (3, 5)
    visit.settle()
    visit.check()


def _repair(visit: Visit) -> None:
    button = visit.page.get_by_role("button", name="Repair", exact=True)
    button.click()
    expect(visit.page.get_by_role("group", name="Repairing")).to_be_visible()
    expect(button).to_be_enabled(timeout=180_000)


def test_expert__repaired_twice_and_gone_back__undo_brings_the_other(visit):
    visit.go("/repair", "Repair")
    hand = Hand()
    back = visit.page.get_by_role("button", name=re.compile("Use this one"))
    _repair(visit)
    # All that is kept at once: the list may grow by the repair just made between looking and pressing.
    visit.page.reload()
    expect(back.first).to_be_visible()
    chosen = back.first.get_attribute("aria-label")
    chosen_one = visit.page.get_by_role("button", name=chosen, exact=True)
    hand.click(chosen_one)
    expect(chosen_one).to_have_count(0)
    hand.click(visit.page.get_by_role("link", name="Activity"))
    undo = visit.page.get_by_role("button", name=re.compile("Undo: Chose the repair")).first
    hand.click(undo)
    expect(visit.page.get_by_text(re.compile("Undid: Chose the repair")).first).to_be_visible()
    visit.settle()
    visit.check()
    hand.click(visit.page.get_by_role("link", name="Repair", exact=True))
    expect(chosen_one).to_be_visible()
    assert hand.clicks == 4


def test_expert__copied_address_in_a_second_browser__shows_the_same_and_what_is_done_there(
    visit, chromium
):
    visit.go("/images?mark=label", "Images")
    visit.page.get_by_role("button", name=re.compile("marked: label is wrong")).first.click()
    expect(_place(visit)).to_have_text("1 of 3")
    shown = _name(visit)
    with visiting(chromium, visit.address) as other:
        other.page.goto(visit.page.url)
        expect(_viewer(other).get_by_role("heading", level=2, name=shown)).to_be_visible()
        expect(_place(other)).to_have_text("1 of 3")
        # What is said in the one browser is seen in the other, without a reload.
        expect(_viewer(other).get_by_text(re.compile("Label is wrong: it is"))).to_be_visible()
        visit.page.keyboard.press("n")
        expect(_viewer(visit).get_by_label("Note", exact=True)).to_be_focused()
        visit.page.keyboard.type("seen by both")
        visit.page.keyboard.press("Enter")
        expect(_viewer(other).get_by_text("seen by both")).to_be_visible()
        assert other.complaints == []
    visit.page.keyboard.press("Escape")


def test_expert__undo_of_a_mark__one_click_on_the_activity_page(visit):
    visit.go("/activity", "Activity")
    undo = visit.page.get_by_role("button", name=re.compile("Undo: Marked .* note: seen by both"))
    undo.click()
    expect(undo).to_have_count(0)
    visit.go("/images?mark=note", "Images")
    expect(visit.page.get_by_text("No image is like that.")).to_be_visible()
    assert visit.complaints == []


def test_expert__others_renamed_the_slice_meanwhile__told_and_nothing_lost(visit, chromium):
    visit.go("/slices", "Slices")
    visit.page.locator("main").get_by_role(
        "link", name=re.compile("apple", re.IGNORECASE)
    ).first.click()
    page = visit.page
    page.get_by_role("button", name="Edit words").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("my own words")
    with visiting(chromium, visit.address) as other:
        other.page.goto(page.url)
        other.page.get_by_role("button", name="Edit words").click()
        other.page.get_by_role("dialog").get_by_role("textbox").fill("words of another")
        other.page.get_by_role("button", name="Keep these words").click()
        expect(other.page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Keep these words").click()
    expect(page.get_by_role("alert")).to_contain_text("was faster")
    expect(page.get_by_role("alert")).to_contain_text("words of another")
    expect(page.get_by_role("dialog").get_by_role("textbox")).to_have_value("my own words")
    page.get_by_role("button", name="Keep these words").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_contain_text("my own words")
    # Both can be taken back, the last one first.
    for words in ("my own words", "words of another"):
        visit.go("/activity", "Activity")
        page.get_by_role("button", name=re.compile(f"Undo: Renamed .*{words}")).click()
        expect(page.get_by_text(re.compile(f"Undid: Renamed .*{words}"))).to_be_visible()
    refused = [one for one in visit.complaints if "409" in one]
    assert len(refused) == 1
    visit.complaints.clear()
