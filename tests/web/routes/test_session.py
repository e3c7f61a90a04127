def test_session__owner_comes_in__is_known(owner):
    answer = owner.get("/api/session")
    assert answer.status_code == 200
    assert answer.json()["person"] == {"name": "owner", "role": "owner", "study_id": None}
