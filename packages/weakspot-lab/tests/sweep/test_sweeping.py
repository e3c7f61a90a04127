import csv
import io
import json
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.evidence import Interval, Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.repairs import ArmMeasurement, GroupChange, GroupKind, RepairArm
from weakspot.core.run import no_progress
from weakspot.core.slices import DataUse
from weakspot.data.settings import DataSettings
from weakspot.generate.generated_folder import generated_samples
from weakspot.repair.strategies.synthetic import class_prompt, slice_prompts
from weakspot.repair.synthetic_samples import with_synthetic
from weakspot.run import loop
from weakspot.run.models import RunModels
from weakspot.run.naming import describe_slices
from weakspot.run.preparation import Preparation
from weakspot.run.settings import Settings
from weakspot.run.stage_clock import StageClock, new_record
from weakspot.store.project import ProjectStore
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator, planted_classifier
from weakspot_lab.sweep.sweeping import (
    SweepPoint,
    SweepTable,
    sweep,
    sweep_files,
    sweep_synthetic,
    trade_off_plots,
)

CRITERION = FailureCriterion()


def _change(kind, before, after, n_samples):
    interval = Interval(low=0.1, high=0.9)
    return GroupChange(
        group="g", kind=kind, n_samples=n_samples, right_before=before, right_after=after, gained=0, lost=0,
        interval_before=interval, interval_after=interval, p_value=1.0,
    )  # fmt: skip


def _arm(resolved_on_test, resolved_held_out):
    halves = (
        ("validation, discovery half", 9),
        ("validation, confirmation half", resolved_held_out),
    )
    return RepairArm(
        arm="synthetic",
        is_baseline=False,
        note="",
        n_trained=100,
        n_synthetic=7,
        changes=(
            _change(GroupKind.OVERALL, 80, 82, 100),
            _change(GroupKind.FORMERLY_WRONG, 0, resolved_on_test, 20),
        ),
        elsewhere=tuple(
            ArmMeasurement(
                measured_on=DataUse(name=name, n_samples=50, digest="d"),
                changes=(
                    _change(GroupKind.OVERALL, 40, 40, 50),
                    _change(GroupKind.FORMERLY_WRONG, 0, resolved, 10),
                ),
            )
            for name, resolved in halves
        ),
    )


def test_sweep__every_weight_with_every_number_of_names():
    asked = []

    def arm_of(weight, n_names):
        asked.append((weight, n_names))
        return _arm(resolved_on_test=2, resolved_held_out=4 + n_names)

    table = sweep(arm_of, debug_weights=(0.1, 1.0), n_names=(1, 3))
    assert asked == [(0.1, 1), (1.0, 1), (0.1, 3), (1.0, 3)]
    first = table.points[0]
    assert (first.debug_weight, first.n_names, first.n_synthetic, first.held_out) == (
        0.1,
        1,
        7,
        "validation, confirmation half",
    )
    assert first.resolved == pytest.approx(0.5)
    assert first.test_accuracy == pytest.approx(0.82)
    assert first.test_wrong.right_after == 2


def test_sweep__chosen_on_the_confirmation_half_not_on_test():
    figures = {0.1: (20, 1), 1.0: (0, 6)}
    table = sweep(
        lambda weight, _names: _arm(*figures[weight]), debug_weights=(0.1, 1.0), n_names=(3,)
    )
    assert table.chosen.debug_weight == 1.0


def test_sweep__numbers_of_names_that_change_nothing_are_left_out():
    table = sweep(
        lambda weight, names: _arm(1, min(names, 2)), debug_weights=(0.1, 1.0), n_names=(1, 2, 3)
    )
    assert [(one.debug_weight, one.n_names) for one in table.points] == [
        (0.1, 1),
        (1.0, 1),
        (0.1, 2),
        (1.0, 2),
    ]
    assert table.notes == ("3 names use the same generated samples as 2, and are left out.",)


def test_sweep__settings_that_cannot_be_tried_become_a_note():
    def arm_of(_weight, n_names):
        if n_names == 1:
            raise NotEnoughDataError("None of 5 generated samples fits.")
        return _arm(1, 1)

    table = sweep(arm_of, debug_weights=(0.1, 1.0), n_names=(1, 2))
    assert [one.n_names for one in table.points] == [2, 2]
    assert table.notes == ("None of 5 generated samples fits.",)
    with pytest.raises(NotEnoughDataError, match="None of 5"):
        sweep(arm_of, n_names=(1,))
    with pytest.raises(NotEnoughDataError, match="no setting"):
        sweep(arm_of, n_names=())


def _settings(*rows):
    """Points of weight, names, resolved of 50 held-out failures, right of 100 held-out samples (90 before), and of 100 test samples."""
    return tuple(
        SweepPoint(
            debug_weight=weight,
            n_names=names,
            n_synthetic=10,
            held_out="confirmation half",
            held_out_wrong=_change(GroupKind.FORMERLY_WRONG, 0, resolved, 50),
            held_out_overall=_change(GroupKind.OVERALL, 90, overall, 100),
            test_overall=_change(GroupKind.OVERALL, 90, test, 100),
        )
        for weight, names, resolved, overall, test in rows
    )


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        # most resolved without losing more than one point
        ([(0.5, 3, 10, 90, 90), (1.0, 3, 20, 89, 90), (4.0, 3, 40, 88, 90)], 1),
        # the test split has no say
        ([(0.5, 3, 10, 90, 99), (1.0, 3, 20, 90, 1)], 1),
        # equals go to less
        ([(1.0, 1, 20, 90, 90), (0.5, 3, 20, 90, 90), (0.5, 2, 20, 90, 90)], 2),
        # if all lose, the one that loses least
        ([(1.0, 1, 40, 80, 90), (0.5, 1, 20, 85, 90)], 1),
    ],
)
def test_chosen(rows, place):
    points = _settings(*rows)
    assert SweepTable(points=points).chosen == points[place]


def test_chosen__nothing_held_out_nothing_chosen():
    overall = _change(GroupKind.OVERALL, 90, 95, 100)
    alone = SweepPoint(debug_weight=0.5, n_names=3, n_synthetic=1, test_overall=overall)
    assert SweepTable(points=(alone,)).chosen is None
    assert alone.test_accuracy == pytest.approx(0.95)
    assert alone.resolved != alone.resolved


SVG = "{http://www.w3.org/2000/svg}"


def _point(weight, names, resolved):
    return SweepPoint(
        debug_weight=weight,
        n_names=names,
        n_synthetic=5 * names,
        held_out="validation, <confirmation half>",
        held_out_wrong=_change(GroupKind.FORMERLY_WRONG, 0, resolved, 40),
        held_out_overall=_change(GroupKind.OVERALL, 160, 160, 200),
        test_wrong=_change(GroupKind.FORMERLY_WRONG, 0, 8, 32),
        test_overall=_change(GroupKind.OVERALL, 168, 170, 200),
    )


TABLE = SweepTable(
    points=(_point(0.5, 1, 4), _point(1.0, 1, 10), _point(0.5, 3, 12), _point(1.0, 3, 20)),
    measured_on="test samples",
    notes=("Nothing <fits> five names.",),
)


def test_sweep_files__csv_has_a_row_a_setting():
    rows = list(csv.DictReader(io.StringIO(sweep_files(TABLE)["sweep.csv"].decode())))
    assert [(row["debug_weight"], row["n_names"], row["is_chosen"]) for row in rows] == [
        ("0.5", "1", "false"),
        ("1.0", "1", "false"),
        ("0.5", "3", "false"),
        ("1.0", "3", "true"),
    ]
    # 20 of 40 held-out failures, 8 of 32 test failures, 170 of 200 test samples.
    last = rows[-1]
    assert (last["held_out_failures"], last["held_out_resolved"], last["held_out_accuracy"]) == (
        "40",
        "0.5",
        "0.8",
    )
    assert (last["test_resolved"], last["test_accuracy_before"], last["test_accuracy"]) == (
        "0.25",
        "0.84",
        "0.85",
    )


def test_sweep_files__json_says_what_was_chosen_on_what():
    found = json.loads(sweep_files(TABLE)["sweep.json"])
    assert found["chosen"] == {"debug_weight": 1.0, "n_names": 3}
    assert found["chosen_on"] == "validation, <confirmation half>"
    assert found["measured_on"] == "test samples"
    assert len(found["points"]) == 4


def test_sweep_files__the_page_is_whole_and_escaped():
    page = sweep_files(TABLE)["sweep.html"].decode()
    assert (
        "weight 1 and 3 names a class, resolves 50.0 % of the failures in “validation, &lt;confirmation half&gt;”"
        in page
    )
    assert "the test split (“test samples”) had no say and gives 85.0 % accuracy" in page
    assert "Nothing &lt;fits&gt; five names." in page
    assert page.count("<svg") == 3
    assert page.count('<tr class="chosen">') == 1
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_trade_off_plots__one_point_a_setting_and_a_ring_on_the_chosen():
    drawing = ElementTree.fromstring(trade_off_plots(TABLE)["trade-off"])
    circles = list(drawing.iter(f"{SVG}circle"))
    assert sum(node.get("class") == "ring" for node in circles) == 1
    assert sum(node.get("class") is None for node in circles) == 4
    assert sum(node.get("class") == "bar" for node in drawing.iter(f"{SVG}line")) == 2
    lines = list(ElementTree.fromstring(trade_off_plots(TABLE)["resolved"]).iter(f"{SVG}polyline"))
    assert len(lines) == 2


def test_sweep_files__without_held_out_samples_nothing_is_marked():
    bare = SweepTable(points=(SweepPoint(debug_weight=0.5, n_names=1, n_synthetic=3),))
    files = sweep_files(bare)
    assert "the test split must not choose" in files["sweep.html"].decode()
    assert json.loads(files["sweep.json"])["chosen"] is None
    assert files["sweep.csv"].decode().splitlines()[1] == "0.5,1,3,,,,,,,,,,,,false"


@pytest.fixture(scope="module")
def repairable(world, manifest, tmp_path_factory):
    """A project in which green discs are rare and fail, its run, and generated images of them."""
    folder = tmp_path_factory.mktemp("sweep")
    settings = Settings(data=DataSettings(source=str(manifest)))
    store = ProjectStore.create(folder / "project")
    loop.ingest_samples(store, loop.open_data(settings.data, store.root), settings, no_progress)
    prepared = Preparation(
        store=store,
        models=RunModels(
            settings=settings,
            folder=store.root,
            ready_classifier=planted_classifier(world),
            ready_embedder=PlantedEmbedder(),
        ),
        clock=StageClock(),
    ).run()
    record = new_record(settings, inputs={}, criterion="wrong")
    record = loop.discover_slices(
        record, prepared.samples, settings, CRITERION, prepared.assistants
    )
    record = describe_slices(record, prepared.samples, settings, CRITERION, prepared.assistants)
    record = loop.verify_slices(record, prepared.samples, settings, CRITERION)
    # So small a world confirms nothing; what is swept here is the slice that is known to be there.
    discs = {found.slice_id for found in record.slices if found.class_name == "disc"}
    confirmed = [
        one.model_copy(update={"verdict": Verdict.CONFIRMED})
        for one in record.evidence
        if one.slice_id in discs
    ]
    # And in so small a world no word is sure.
    slices = tuple(
        found.model_copy(
            update={
                "names": tuple(name.model_copy(update={"is_unsure": False}) for name in found.names)
            }
        )
        for found in record.slices
    )
    record = record.model_copy(update={"evidence": tuple(confirmed), "slices": slices})
    wanted = slice_prompts(
        [found for found, _ in record.published()], {one.slice_id: one for one in confirmed}
    )
    prompts = {name: (*own, class_prompt(name)) for name, own in wanted.items()}
    images = generated_samples(
        PlantedImageGenerator(), prompts, folder / "generated", n_each=8, seed=1
    )
    return (
        record,
        prepared,
        with_synthetic(prepared, images, settings=settings, store=store),
        settings,
    )


def _project(record, prepared, settings):
    return SimpleNamespace(
        repairable=lambda _run_id: (record, prepared),
        progress_of=lambda _stage: no_progress,
        settings=settings,
        criterion=CRITERION,
    )


def test_sweep_synthetic__more_weight_resolves_more(repairable, tmp_path):
    record, _, prepared, settings = repairable
    files = sweep_synthetic(_project(record, prepared, settings), tmp_path / "out")
    assert [path.name for path in files] == ["sweep.html", "sweep.json", "sweep.csv"]
    found = json.loads(files[1].read_text())
    table = SweepTable.model_validate(
        {name: found[name] for name in ("points", "measured_on", "notes")}
    )
    # Words that are true of fewer than half of the members are not among its names.
    assert {point.n_names for point in table.points} == {1, 2}
    assert len(table.points) == 12
    assert table.notes == tuple(
        f"{number} names use the same generated samples as 2, and are left out."
        for number in (3, 5)
    )
    one_name = {point.debug_weight: point for point in table.points if point.n_names == 1}
    # The first name is the planted one: the more its images count, the more held-out failures are resolved.
    assert one_name[4.0].resolved > one_name[0.1].resolved
    assert one_name[4.0].resolved > 0.3
    assert {point.n_synthetic for point in one_name.values()} == {8}
    assert found["chosen_on"] == "validation, confirmation half"
    assert table.measured_on.startswith("test samples")
    with pytest.raises(ConfigError, match="earlier sweep"):
        sweep_synthetic(_project(record, prepared, settings), tmp_path / "out")


def test_sweep_synthetic__nothing_to_sweep(repairable, tmp_path):
    record, before, prepared, settings = repairable
    with pytest.raises(NotEnoughDataError, match="no generated samples"):
        sweep_synthetic(_project(record, before, settings), tmp_path / "none")
    unconfirmed = record.model_copy(update={"evidence": ()})
    with pytest.raises(NotEnoughDataError, match="No slice was confirmed"):
        sweep_synthetic(_project(unconfirmed, prepared, settings), tmp_path / "none")
    assert not (tmp_path / "none").exists()
