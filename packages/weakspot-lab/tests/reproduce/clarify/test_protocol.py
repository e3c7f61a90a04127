import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.clarify.protocol import PROTOCOL
from weakspot_lab.reproduce.figures import read_figures
from weakspot_lab.reproduce.request import ReproduceRequest

NOT_BUILT = {f"{name} Contrastive Adapter worst" for name in ("Waterbirds", "CelebA")}


@pytest.fixture(scope="module")
def small(small_run):
    return small_run("clarify")


@pytest.fixture
def found(small):
    return small[0]


def test_protocol__killed_before_the_annotators_and_resumed_gives_the_same_tables(small, resumed):
    assert resumed(small, without="annotators-faces") == ["annotators-faces"]


def test_protocol__every_figure_of_the_paper_is_answered(found):
    keys = {one.figure.key for one in found.figures}
    assert keys == {one.key for one in read_figures("clarify").figures}
    unmeasured = {one.figure.key for one in found.figures if one.measured.value is None}
    assert unmeasured == NOT_BUILT


def test_protocol__given_groups_are_the_same_four_for_every_arm(found):
    for name in ("birds-0", "faces-0"):
        groups = {tuple(sorted(arm["groups"])) for arm in found.steps[name].values()}
        assert len(groups) == 1
        assert len(groups.pop()) == 4


def test_protocol__annotators_and_suggestions_have_tables(found):
    people = next(one for one in found.tables if "annotators" in one.title)
    assert sum(int(row[2]) for row in people.rows if row[0] == "CelebA") == 4
    ranking = next(one for one in found.tables if "suggestions" in one.title)
    assert ranking.rows[0] == ("planted", "6")


def test_protocol__an_arm_that_the_paper_finds_worse_claims_nothing(found):
    by_key = {one.figure.key: one for one in found.figures}
    assert by_key["Waterbirds ERM, class-balanced worst"].effect == ""
    assert "in the paper" in by_key["Waterbirds ERM, class-balanced worst"].why
    assert by_key["Waterbirds Group DRO worst"].effect in ("yes", "no", "unclear")


def test_protocol__without_data_it_says_what_it_expects(tmp_path):
    with pytest.raises(DataError, match="no file of a data set of Clarify") as caught:
        PROTOCOL.open(ReproduceRequest(paper="clarify", out=tmp_path, data=tmp_path))
    assert "metadata.csv" in caught.value.fix
