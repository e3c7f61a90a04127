from weakspot.web.services import repair


def test_plain__a_link_is_not_handed_out(tmp_path):
    own, secret = tmp_path / "plan.json", tmp_path / "secret"
    secret.write_text("mine")
    assert repair._plain(own) is None
    own.symlink_to(secret)
    assert repair._plain(own) is None
    own.unlink()
    own.write_text("{}")
    assert repair._plain(own) == own
