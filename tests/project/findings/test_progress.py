import io
import sys

from weakspot.core.run import no_stage_progress
from weakspot.project.findings import NotebookProgress, TerminalProgress, usual_progress


class Output:
    """What a notebook shows, written down."""

    def __init__(self):
        self.pages = []

    def show(self, page):
        self.pages.append(page._repr_html_())
        return self

    def update(self, page):
        self.pages.append(page._repr_html_())


def test_notebook_progress__one_output_that_is_written_over():
    output, now = Output(), [0.0]
    progress = NotebookProgress(output.show, clock=lambda: now[0])
    progress("nothing to do", 0, 0)
    progress("embed", 0, 10)
    progress("embed", 1, 10)  # too soon to be seen
    now[0] = 1.0
    progress("embed", 2, 10)
    progress("embed", 10, 10)
    progress("<b>", 3, None)
    now[0] = 6.0
    progress("test", 0, 8)
    now[0] = 9.0
    progress("test", 2, 8)
    assert len(output.pages) == 6
    assert "embed: 0 of 10" in output.pages[0]
    assert "embed: 2 of 10" in output.pages[1]
    assert 'value="10" max="10"' in output.pages[2]
    assert "&lt;b&gt;: 3" in output.pages[3]
    assert "test: 2 of 8, 9 s left" in output.pages[5]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminal_progress__a_line_a_stage_with_the_time_left():
    terminal, now = Terminal(), [0.0]
    progress = TerminalProgress(terminal, clock=lambda: now[0])
    progress("nothing to do", 0, 0)
    for now[0], done in ((0.0, 0), (0.1, 1), (4.0, 2), (8.0, 4), (8.0, 4)):
        progress("embed", done, 4)
    progress("test", 1, None)
    lines = terminal.getvalue().split("\n")
    assert [line.split("\r\x1b[K")[1:] for line in lines] == [
        ["embed: 0 of 4", "embed: 2 of 4, 4 s left", "embed: 4 of 4"],
        ["test: 1"],
    ]


def test_usual_progress__outside_of_a_notebook__a_line_on_a_terminal_only(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert usual_progress() is no_stage_progress
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(usual_progress(), TerminalProgress)
