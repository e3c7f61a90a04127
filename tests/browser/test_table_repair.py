"""A table without images in the browser: “Repair” leads to files, not to a dead end."""

import csv
import re

from playwright.sync_api import expect
from tests.browser.driving import serving, visiting
from tests.build import write_captioned_table

from weakspot.project.project import Project
from weakspot.run.settings import Settings

SETTINGS = {"discover": {"methods": ["words"]}, "verify": {"scheme": "cross-fit"}}
WORK_MILLISECONDS = 180_000


def test_repair__table__files_can_be_downloaded(chromium, tmp_path):
    table = write_captioned_table(tmp_path / "table.csv")
    settings = Settings.model_validate(SETTINGS)
    project = Project.create(tmp_path / "t", data=str(table), settings=settings)
    project.run()
    with (
        serving("serve", "-p", str(project.folder)) as address,
        visiting(chromium, address) as visit,
    ):
        page = visit.page
        page.get_by_role("navigation", name="Pages").get_by_role("link", name="Repair").click()
        expect(page.get_by_text("cannot be retrained here")).to_be_visible()
        visit.check()
        page.get_by_role("button", name="Write the files").click()
        link = page.get_by_role("link", name="to_collect.csv")
        expect(link).to_be_visible(timeout=WORK_MILLISECONDS)
        expect(page.get_by_text("“dog: rain” fails on").first).to_be_visible()
        # As long as the job is listed as under way, the page is made anew, and a click on a link may meet its forerunner.
        expect(
            page.get_by_role("status").filter(has_text=re.compile("under way|waits for other jobs"))
        ).to_have_count(0)
        with page.expect_download(timeout=90_000) as download:
            link.click()
        download.value.save_as(tmp_path / "got.csv")
        visit.check()
    with (tmp_path / "got.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert lines
    assert all("rain" in line["column caption"] for line in lines)
