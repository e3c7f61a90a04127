from repair_results.figures import Figures
from repair_results.journal import UnitJournal


def _one(unit):
    return (Figures(unit=unit, part="all", arm="plain", values={"slice after": 0.25}),)


def test_journal__a_later_one_knows_what_was_added(tmp_path):
    UnitJournal(tmp_path / "deep" / "worlds.jsonl", "command").add("world 0", _one("world 0"))
    again = UnitJournal(tmp_path / "deep" / "worlds.jsonl", "command")
    assert again.known("world 0") == _one("world 0")
    assert again.known("world 1") is None


def test_journal__units_without_figures_are_known_too(tmp_path):
    UnitJournal(tmp_path / "worlds.jsonl", "command").add("world 0", ())
    assert UnitJournal(tmp_path / "worlds.jsonl", "command").known("world 0") == ()


def test_journal__another_command_and_cut_off_lines_are_passed_over(tmp_path):
    path = tmp_path / "worlds.jsonl"
    UnitJournal(path, "other").add("world 0", _one("world 0"))
    UnitJournal(path, "command").add("world 1", _one("world 1"))
    path.write_text(path.read_text() + '{"key": "command", "unit": "world 2", "fig')
    found = UnitJournal(path, "command")
    assert [found.known(f"world {number}") is not None for number in range(3)] == [
        False,
        True,
        False,
    ]


def test_finish__nothing_is_left(tmp_path):
    journal = UnitJournal(tmp_path / "worlds.jsonl", "command")
    journal.add("world 0", _one("world 0"))
    journal.finish()
    journal.finish()
    assert list(tmp_path.iterdir()) == []
