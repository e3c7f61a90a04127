"""Looking at images as a domain expert: in full, one after the other, with their file names, and by addresses that can be passed on."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.driving import visiting, wait_for_image, wait_until


@pytest.fixture(scope="module")
def visit(chromium, demo_address):
    with visiting(chromium, demo_address) as visit:
        yield visit


def _line(visit):
    return (re.search(r"phrase=green&line=([^&]+)", visit.page.url) or ["", None])[1]


def _place(visit):
    return visit.page.get_by_role("dialog").get_by_text(re.compile(r"^[\d,]+ of [\d,]+$"))


def test_viewer__one_click_from_the_overview__full_image_with_file_name(visit):
    visit.go("/", "Overview")
    visit.page.get_by_role("button", name=re.compile("wrong")).first.click()
    image = visit.page.get_by_role("dialog").get_by_role("img", name=re.compile("predicted as"))
    expect(image).to_be_visible()
    wait_for_image(image, wider_than=300)
    expect(visit.page.get_by_role("heading", level=2, name=re.compile(r"\.jpg$"))).to_be_visible()
    expect(visit.page.get_by_role("heading", name="Most similar, wrong")).to_be_visible()
    visit.settle()
    visit.check()
    visit.page.keyboard.press("Escape")
    expect(visit.page.get_by_role("dialog")).to_have_count(0)
    expect(visit.page.get_by_role("heading", level=1, name="Overview")).to_be_visible()


def test_viewer__twenty_images_by_keyboard__then_the_address_shows_the_same_elsewhere(
    visit, chromium
):
    visit.go("/images?result=wrong&order=loss", "Images")
    visit.page.get_by_role("button", name=re.compile("wrong")).first.click()
    expect(_place(visit)).to_have_text("1 of 24")
    names = []
    for number in range(2, 22):
        names.append(visit.page.get_by_role("dialog").get_by_role("heading").first.inner_text())
        visit.page.keyboard.press("ArrowRight")
        expect(_place(visit)).to_have_text(f"{number} of 24")
    assert len(set(names)) == 20
    visit.page.keyboard.press("ArrowLeft")
    expect(_place(visit)).to_have_text("20 of 24")
    expect(visit.page.get_by_role("heading", level=2, name=names[-1])).to_be_visible()
    with visiting(chromium, visit.address) as other:
        other.page.goto(visit.page.url)
        expect(other.page.get_by_role("heading", level=2, name=names[-1])).to_be_visible()
        expect(_place(other)).to_have_text("20 of 24")
        other.page.get_by_role("button", name="Close").click()
        expect(other.page.get_by_role("dialog")).to_have_count(0)
    visit.page.keyboard.press("Escape")
    expect(visit.page.get_by_role("heading", level=1, name="Images")).to_be_visible()
    assert visit.complaints == []


def test_viewer__image_leaves_the_filter_when_it_is_marked__none_is_left_out(visit):
    visit.go("/images?mark=none&result=wrong", "Images")
    tiles = visit.page.get_by_role("button", name=re.compile("predicted as"))
    names = [tiles.nth(place).get_attribute("title") for place in range(3)]
    tiles.first.click()
    for place in (0, 1):
        expect(visit.page.get_by_role("heading", level=2, name=names[place])).to_be_visible()
        visit.page.keyboard.press("t")
        field = visit.page.get_by_role("dialog").get_by_label("Tag", exact=True)
        expect(field).to_be_focused()
        visit.page.keyboard.type("seen")
        visit.page.keyboard.press("Enter")
        expect(visit.page.get_by_role("button", name="Take back: Tag: seen")).to_be_visible()
        expect(field).to_have_count(0)
        visit.page.keyboard.press("ArrowRight")
    expect(visit.page.get_by_role("heading", level=2, name=names[2])).to_be_visible()
    visit.go("/activity", "Activity")
    undo = visit.page.get_by_role("button", name=re.compile("Undo: Marked .* tag: seen"))
    for left in (1, 0):
        undo.first.click()
        expect(undo).to_have_count(left)


def test_viewer__wheel_keys_and_drag__zoom_and_move(visit):
    visit.go("/images", "Images")
    visit.page.get_by_role("button", name=re.compile("predicted as")).first.click()
    stage = visit.page.locator(".viewer-stage")
    expect(stage).not_to_have_attribute("data-scale", "1.000")
    whole = float(stage.get_attribute("data-scale"))
    stage.hover()
    for _ in range(6):
        visit.page.mouse.wheel(0, -400)
    # All six turns: one that comes later would move the image away again.
    visit.page.wait_for_function(
        f"Number(document.querySelector('.viewer-stage').dataset.scale) > {4 * whole}"
    )
    image = visit.page.get_by_role("dialog").get_by_role("img", name=re.compile("predicted as"))
    before = image.bounding_box()
    box = stage.bounding_box()
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + box["width"] / 2 + 40, box["y"] + box["height"] / 2 + 30)
    visit.page.mouse.up()
    wait_until(lambda: image.bounding_box()["x"] > before["x"])
    visit.page.keyboard.press("0")
    expect(stage).to_have_attribute("data-scale", f"{whole:.3f}")
    visit.page.keyboard.press("Escape")


def test_images__filters__are_in_the_address_and_survive_reload_and_back(visit):
    visit.go("/images", "Images")
    visit.page.get_by_role("combobox", name="Class", exact=True).select_option("apple")
    visit.page.get_by_role("combobox", name="Result", exact=True).select_option("wrong")
    visit.page.get_by_label("Most like the words").fill("green apples")
    visit.page.keyboard.press("Enter")
    expect(visit.page).to_have_url(re.compile("words=green"))
    status = visit.page.get_by_role("status").filter(has_text="images")
    expect(status).to_have_text(re.compile("^22 of 268"))
    visit.page.reload()
    expect(status).to_have_text(re.compile("^22 of 268"))
    expect(visit.page.get_by_label("Most like the words")).to_have_value("green apples")
    visit.page.go_back()
    visit.page.go_back()
    expect(visit.page.get_by_role("combobox", name="Result", exact=True)).to_have_value("")
    expect(visit.page.get_by_role("combobox", name="Class", exact=True)).to_have_value("apple")


def test_overview__confusion_cell__opens_its_images(visit):
    visit.go("/", "Overview")
    visit.page.get_by_role("link", name=re.compile("apple predicted as pear")).click()
    expect(visit.page.get_by_role("combobox", name="Predicted as", exact=True)).to_have_value(
        "pear"
    )
    expect(visit.page.get_by_role("button", name=re.compile("wrong")).first).to_be_visible()


def test_class_view__words_and_line__survive_a_reload(visit):
    visit.go("/classes/apple", "Classes")
    visit.page.get_by_label("The AI is often wrong on images that have").fill("green")
    slider = visit.page.get_by_role("slider", name="From here on an image fits the words")
    slider.wait_for()
    slider.focus()
    for _ in range(5):
        visit.page.keyboard.press("Shift+ArrowRight")
    said = slider.get_attribute("aria-valuetext")
    # The address follows a moment after the hand rests; the line of an earlier press is no answer.
    wait_until(lambda: _line(visit) == slider.get_attribute("data-line"))
    visit.page.reload()
    expect(visit.page.get_by_label("The AI is often wrong on images that have")).to_have_value(
        "green"
    )
    expect(slider).to_have_attribute("aria-valuetext", said)
