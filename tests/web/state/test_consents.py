"""Who agreed to what."""

import pytest

from weakspot.web.auth.login import add_person
from weakspot.web.problems import RefusedError
from weakspot.web.state.store import Role
from weakspot.web.state.studies import (
    StudyOptions,
    agree,
    answer_attention,
    consent_of,
    consents_of,
    create_study,
)


@pytest.fixture
def asked(state):
    """A study with an attention check, and somebody in it."""
    options = StudyOptions(consent="We keep it.", attention_question="Which colour is grass?")
    about = {"title": "x", "classes": ["a"], "instructions": "", "options": options}
    study = create_study(state, **about, attention="green")
    with state.writing() as rows:
        ada = add_person(
            rows, person_id="p", name="Ada", role=Role.ANNOTATOR, study_id=study.study_id
        )
    return study, ada


def test_agree__twice__the_first_time_stays(state, asked):
    study, ada = asked
    assert consent_of(state, ada, study.study_id) == ("", None)
    first = agree(state, ada, study.study_id)
    assert agree(state, ada, study.study_id) == first
    assert consents_of(state, study.study_id) == {"p": first}


@pytest.mark.parametrize(("answer", "passed"), [("Green!", True), ("blue", False)])
def test_answer_attention__first_answer_counts(state, asked, answer, passed):
    study, ada = asked
    with pytest.raises(RefusedError):
        answer_attention(state, ada, study.study_id, answer)
    agree(state, ada, study.study_id)
    assert answer_attention(state, ada, study.study_id, answer)[1] is passed
    assert answer_attention(state, ada, study.study_id, "green")[1] is passed
