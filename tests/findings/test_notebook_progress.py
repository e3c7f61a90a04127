from weakspot.core.run import no_stage_progress
from weakspot.findings.notebook_progress import NotebookProgress, usual_progress


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
    assert len(output.pages) == 4
    assert "embed: 0 of 10" in output.pages[0]
    assert "embed: 2 of 10" in output.pages[1]
    assert 'value="10" max="10"' in output.pages[2]
    assert "&lt;b&gt;: 3" in output.pages[3]


def test_usual_progress__outside_of_a_notebook__says_nothing():
    assert usual_progress() is no_stage_progress
