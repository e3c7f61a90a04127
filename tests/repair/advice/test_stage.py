import csv
import dataclasses

import pytest

from weakspot.core.dataset import Split
from weakspot.core.run import AdviceKind, CheckState, PreflightCheck
from weakspot.repair.advice.stage import ADVICE_NOTE, Advisor
from weakspot.repair.labels import read_labels
from weakspot.run.halves import split_in_halves


def _advise(world, criterion, folder, **changes):
    record = world.record.model_copy(update=changes)
    return Advisor(record, world.bench, folder).run()


def _of(record, kind):
    return next((one for one in record.advice if one.kind is kind), None)


def _read(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_run__no_such_training_image_says_label_and_lists_which(world, criterion, tmp_path):
    record = _advise(world, criterion, tmp_path)
    best = record.advice[0]
    assert best.kind is AdviceKind.LABEL
    assert best.n_known == 0
    assert 5 <= best.n_wanted <= 14
    assert best.gain_interval.low > 0.1
    begin = f"heron: retraining cannot help: 0 such training images. Label about {best.n_wanted}: next/to_label.csv (first 40 chosen)"
    assert best.sentence.startswith(begin)
    assert "points on these images" in best.sentence
    lines = _read(tmp_path / "next/to_label.csv")
    assert len(lines) == 40
    assert {line["finding"] for line in lines} == {"heron"}
    assert best.files[0] == "next/to_label.csv"
    assert "--method pool-labelled" in best.command


def test_run__the_list_comes_back_as_labels(world, criterion, tmp_path):
    _advise(world, criterion, tmp_path)
    path = tmp_path / "next/to_label.csv"
    lines = _read(path)
    for line in lines[:3]:
        line["label"] = "heron"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    labelled = read_labels(path, world.dataset)
    assert labelled.is_labelled[labelled.rows_of(Split.POOL)].sum() == 3
    _advise(world, criterion, tmp_path)
    assert [line["label"] for line in _read(path)[:4]] == ["heron"] * 3 + [""]


def test_run__no_pool_says_collect_and_writes_a_page(plant, criterion, tmp_path):
    bare = plant(n_pool=0)
    record = _advise(bare, criterion, tmp_path)
    found = record.advice[0]
    assert found.kind is AdviceKind.COLLECT
    assert "0 such training images; no pool: collect about" in found.sentence
    assert not (tmp_path / "next/to_label.csv").exists()
    page = (tmp_path / "next/to_collect.md").read_text()
    assert "“standing in reeds”" in page
    assert "training has images that show: flying" in page
    assert "/photos/" in page
    assert _of(record, AdviceKind.GENERATE).command.endswith(
        "--class heron 'standing in reeds' --to generated"
    )


def test_run__the_page_shows_images_of_the_discovery_half_only(world, criterion, tmp_path):
    _advise(world, criterion, tmp_path)
    (discovery, _), *_ = split_in_halves(world.samples, world.settings, criterion)
    allowed = {f"`{place}`" for place in world.dataset.locations(discovery.rows)}
    page = (tmp_path / "next/to_collect.md").read_text()
    shown = {line.strip(" -") for line in page.splitlines() if "/photos/" in line}
    assert shown
    assert shown <= allowed


def test_run__what_only_moves_errors_says_accept(plant, criterion, tmp_path):
    record = _advise(plant(is_learnable=False), criterion, tmp_path)
    assert _of(record, AdviceKind.LABEL) is None
    told = _of(record, AdviceKind.ACCEPT).sentence
    assert "retraining cannot help: 0 such training images" in told
    assert "would mostly move errors" in told
    assert '[class_accuracy] per_class = { "heron" = 0.0' in told


def test_run__without_features_no_gain_is_told(plant, criterion, tmp_path):
    found = _of(_advise(plant(with_features=False), criterion, tmp_path), AdviceKind.LABEL)
    assert found.gain is None
    assert found.n_wanted == 60
    assert (
        "the gain cannot be predicted: the features of the last layer are not known"
        in found.sentence
    )


def test_run__too_few_evaluation_images_to_try_it_out(plant, criterion, tmp_path):
    found = _of(_advise(plant(n_evaluated=8), criterion, tmp_path), AdviceKind.LABEL)
    assert found.gain is None
    assert "too few such evaluation images to try it out" in found.sentence


def test_run__retraining_that_was_not_measured_is_predicted(plant, criterion, tmp_path):
    rare = plant(form="slice", n_known=3, with_test=False)
    found = _of(_advise(rare, criterion, tmp_path), AdviceKind.RETRAIN)
    assert not found.is_measured
    assert found.gain > 0.2
    assert found.gain_interval.low > 0
    assert "not measured yet" in found.sentence


def test_run__problems_of_the_set_up_come_first(world, criterion, tmp_path):
    fix = "Write class_names."
    problem = PreflightCheck(
        check="class order", state=CheckState.PROBLEM, sentence="Classes are shifted.", fix=fix
    )
    notice = problem.model_copy(update={"state": CheckState.NOTICE, "check": "files"})
    record = _advise(world, criterion, tmp_path, checks=(notice, problem))
    assert record.advice[0].kind is AdviceKind.MEND_SETUP
    assert record.advice[0].sentence == "Classes are shifted. Write class_names."
    assert record.advice[1].kind is AdviceKind.LABEL


def test_run__a_list_that_cannot_be_read_is_left_alone_with_a_note(world, criterion, tmp_path):
    path = tmp_path / "next/to_label.csv"
    path.parent.mkdir()
    path.write_text("my own notes\n")
    record = _advise(world, criterion, tmp_path)
    assert path.read_text() == "my own notes\n"
    (note,) = [one for one in record.notes if one.class_name == ADVICE_NOTE]
    assert "Not all files could be written to next" in note.note
    again = _advise(dataclasses.replace(world, record=record), criterion, tmp_path)
    assert len(again.notes) == 1


def test_run__nothing_found_is_nothing_to_do(world, criterion, tmp_path):
    record = _advise(world, criterion, tmp_path, class_findings=())
    assert record.advice == ()
    assert not (tmp_path / "next").exists()


@pytest.mark.parametrize("form", ["class", "slice"])
def test_run__a_labelled_pool_can_be_added_at_once(plant, criterion, tmp_path, form):
    ready = plant(form=form, are_pool_labels_known=True)
    found = _of(_advise(ready, criterion, tmp_path), AdviceKind.LABEL)
    assert ". Add about " in found.sentence
    assert "(first 20 chosen, labelled already)" in found.sentence
    assert found.command == "" or "--method pool-deepest" in found.command
    assert {line["known_label"] for line in _read(tmp_path / "next/to_label.csv")} == {"heron"}
