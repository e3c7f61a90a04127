import pytest

from weakspot.web.problems import RefusedError
from weakspot.web.roles import Role
from weakspot.web.state.invites import invites_of, make_invite, revoke_invite
from weakspot.web.token_hash import token_hash


def test_make_invite__kept__is_only_the_hash(state, study, somebody):
    owner = somebody("Owner", Role.OWNER)
    made = make_invite(state, owner, study.study_id, role=Role.ANNOTATOR, uses=2, days=1)
    [kept] = invites_of(state, owner, study.study_id)
    assert kept.token_hash == token_hash(made.token)
    assert (kept.uses, kept.uses_left, (kept.expires - kept.created).days) == (2, 2, 1)


def test_revoke_invite__of_another_study__is_not_found(state, study, somebody):
    owner = somebody("Owner", Role.OWNER)
    made = make_invite(state, owner, study.study_id, role=Role.VIEWER, uses=1, days=1)
    with pytest.raises(RefusedError):
        revoke_invite(state, "another", made.row.invite_id)
    assert invites_of(state, owner, study.study_id)[0].uses_left == 1
    assert revoke_invite(state, study.study_id, made.row.invite_id).uses_left == 0
