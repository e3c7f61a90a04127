import csv
import dataclasses

import pyarrow as pa
import pytest

import weakspot
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Verdict
from weakspot.core.repairs import GroupKind
from weakspot.core.run import AdviceKind
from weakspot.project.project import Project
from weakspot.repair import bench as repair_bench
from weakspot.repair.export import read_plan
from weakspot.repair.stage import RepairRequest
from weakspot.run.wiring import buildable
from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
from weakspot.testing.planted import plant, rare

SHARES = {Split.TRAIN: 0.35, Split.VALIDATION: 0.3, Split.TEST: 0.2, Split.POOL: 0.15}


@pytest.fixture(scope="module")
def pool_world():
    return plant(rare(0.02), 2000, seed=8, split_shares=SHARES)


@pytest.fixture(scope="module")
def pool_manifest(pool_world, tmp_path_factory):
    return pool_world.write_images(tmp_path_factory.mktemp("pool-world")).manifest


@pytest.fixture(scope="module")
def verified(pool_world, pool_manifest, tmp_path_factory):
    """A project whose run has a confirmed slice."""
    folder = tmp_path_factory.mktemp("verified")
    project = _project(folder, pool_world, pool_manifest)
    project.ingest()
    record = project.verify(project.discover().run_id)
    assert record.published(), (
        "the planted slice must be confirmed for these tests to mean anything"
    )
    return project


@pytest.fixture(scope="module")
def compared(verified, pool_world):
    project = _reopened(verified, pool_world, budget=20, groups="colour")
    return project.repair(request=RepairRequest(is_comparison=True))


def _project(folder, world, manifest, **repair):
    return Project.create(
        folder,
        data=str(manifest),
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
        settings=weakspot.Settings(repair=repair) if repair else weakspot.Settings(),
        overwrite=True,
    )


def _reopened(project, world, **repair):
    settings = project.settings.model_copy(
        update={"repair": project.settings.repair.model_copy(update=repair)}
    )
    return Project(
        project.folder, settings, classifier=planted_classifier(world), embedder=PlantedEmbedder()
    )


def _read(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def _written(path, rows):
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_repair__stands_beside_its_baselines(verified, pool_world):
    result = _reopened(verified, pool_world).repair().repairs[0]
    assert [(arm.arm, arm.is_baseline) for arm in result.arms] == [
        ("slice-balanced", False), ("plain", True), ("random", True), ("confidence", True), ("class-name", True),
    ]  # fmt: skip
    gains = {arm.arm: arm.change_of(GroupKind.SLICE).change for arm in result.arms}
    assert gains["slice-balanced"] > max(gains["plain"], gains["random"], gains["class-name"])
    assert result.measured_on.name.startswith("test samples")


def test_repair__looks_again(verified, pool_world):
    result = _reopened(verified, pool_world).repair().repairs[0]
    first = result.aftermath.slices[0]
    assert first.slice_id == result.plan.slice_ids[0]
    assert first.failures_after < first.failures_before
    assert _reopened(verified, pool_world, look_again=False).repair().repairs[0].aftermath is None


def test_repair__again__is_free_and_with_other_settings_is_counted(verified, pool_world):
    first, again = (_reopened(verified, pool_world).repair().repairs[0] for _ in range(2))
    assert (again.arms, again.notes[-1]) == (first.arms, first.notes[-1])
    counted = [change for change in first.repaired.changes if change.q_value is not None]
    assert {change.kind for change in counted} >= {GroupKind.SLICE, GroupKind.CLASS}
    assert all(change.q_value >= min(1.0, change.p_value / 0.8) for change in counted)
    other = _reopened(verified, pool_world, l2=0.5).repair().repairs[0]
    assert "batches of questions" in other.notes[-1] != first.notes[-1]


def test_repair__compare_runs_every_strategy_that_can_work(compared):
    methods = [result.plan.repairer for result in compared.repairs]
    wanted = set(
        buildable(
            "repairers",
            {name: {"column": "colour"} for name in ("dfr-subsample", "dfr-upsample", "group-dro")},
        )
    )
    assert methods[0] == "slice-balanced"
    assert wanted - set(methods) == {"plain", "synthetic"}
    assert len(set(methods)) == len(methods)
    assert any(note.startswith("synthetic:") for note in compared.repairs[0].notes)
    references = [arm.arm for arm in compared.repairs[0].arms if arm.arm.startswith("zero-shot")]
    assert references == ["zero-shot-classes", "zero-shot-groups"]
    assert [arm.arm for arm in compared.repairs[0].arms if arm.is_reference] == references


def test_repair__pool_strategies_add_within_the_budget(compared):
    added = {result.plan.repairer: result.repaired.n_added for result in compared.repairs}
    assert all(0 < added[name] <= 20 for name in added if name.startswith("pool-"))
    assert all(added[name] == 0 for name in added if not name.startswith("pool-"))


def test_repair__interrupted_comparison_goes_on(verified, pool_world, compared, monkeypatch):
    project = _reopened(verified, pool_world, budget=20, groups="colour")
    trained = []
    honest = repair_bench.RepairBench.fitted
    monkeypatch.setattr(
        repair_bench.RepairBench,
        "fitted",
        lambda self, chosen: trained.append(chosen) or honest(self, chosen),
    )
    again = project.repair(request=RepairRequest(is_comparison=True))
    assert again.repairs == compared.repairs
    assert len(trained) == 5, "only the chosen strategy and its baselines are trained again"


def test_repair__plan_carried_out_again_gives_the_same(verified, pool_world, tmp_path):
    project = _reopened(verified, pool_world)
    first = project.repair(request=RepairRequest(write_to=tmp_path / "out"))
    plan = read_plan(tmp_path / "out" / "plan.json")
    second = project.repair(request=RepairRequest(plan=plan))
    assert second.run_id != first.run_id
    assert second.repairs[0].repaired.changes == first.repairs[0].repaired.changes


def test_repair__unlabelled_pool_waits_for_labels_and_goes_on(pool_world, pool_manifest, tmp_path):
    rows = _read(pool_manifest)
    truth = {row["path"]: row["label"] for row in rows}
    for row in rows:
        row["path"] = str(pool_manifest.parent / row["path"])
        row["label"] = "" if row["split"] == "pool" else row["label"]
    manifest = _written(tmp_path / "manifest.csv", rows)
    project = _project(tmp_path / "project", pool_world, manifest, method="pool-deepest", budget=12)
    record = project.run()
    result = record.repairs[0]
    assert result.arms == ()
    assert 0 < result.labelling.n_samples <= 12
    asked = project.store.runs.run_folder(record.run_id) / result.labelling.file
    answers = _read(asked)
    for row in answers:
        row["label"] = next(label for path, label in truth.items() if row["image"].endswith(path))
    filled = _written(tmp_path / "labelled.csv", answers)
    result = project.repair(request=RepairRequest(labels=filled)).repairs[0]
    assert result.repaired.n_added == len(answers)
    assert any("have no label" in note for note in result.notes), (
        "controls whose samples are unlabelled are left out and named"
    )
    listed = project.folder / "next/to_label.csv"
    answers = _read(listed)
    for row in answers:
        row["label"] = next(label for path, label in truth.items() if row["image"].endswith(path))
    first = project.run_record(record.run_id).advice[0]
    assert (first.kind, first.is_measured) == (AdviceKind.RETRAIN, True), "the repair is told now"
    wish = next(one for one in record.advice if one.kind is AdviceKind.LABEL)
    assert wish.command.endswith(
        f"--method pool-labelled --budget {len(answers)} --labels {listed}"
    )
    adding = _reopened(project, pool_world, method="pool-labelled", budget=len(answers))
    repaired = adding.repair(request=RepairRequest(labels=_written(listed, answers))).repairs[0]
    change = repaired.repaired.change_of(GroupKind.SLICE)
    assert repaired.repaired.n_added == len(answers)
    assert wish.gain_interval.low <= change.change <= wish.gain_interval.high


def test_repair__pool_image_that_is_tested_on_is_refused(verified, pool_world):
    project = _reopened(verified, pool_world, budget=5)
    prepared = project.prepared()
    dataset = prepared.samples.dataset
    test_row, pool_row = dataset.rows_of(Split.TEST)[0], dataset.rows_of(Split.POOL)[0]
    hashes = dataset.content_hashes()
    hashes[pool_row] = hashes[test_row]
    table = dataset.table.set_column(
        dataset.table.column_names.index("content_hash"), "content_hash", pa.array(hashes)
    )
    changed = dataclasses.replace(dataset, table=table)
    project._made = {
        key: dataclasses.replace(made, samples=dataclasses.replace(made.samples, dataset=changed))
        for key, made in project._made.items()
    }
    with pytest.raises(
        DataError, match="pool samples are also in the validation or test split"
    ) as caught:
        project.repair()
    assert dataset.table.column("key")[int(pool_row)].as_py() in str(caught.value)


def test_repair__without_pool_says_what_is_missing(verified, pool_world):
    with pytest.raises(NotEnoughDataError, match="budget"):
        _reopened(verified, pool_world, method="pool-deepest", budget=0).repair()


def test_repair__tuned_plans_say_so(verified, pool_world):
    result = _reopened(verified, pool_world, tune=True, look_again=False).repair().repairs[0]
    assert result.plan.is_tuned
    assert result.repaired.change_of(GroupKind.SLICE).change > 0


def _without_slices(verified, world, findings, **repair):
    """Return the project with a run of its own that has class findings and no slice."""
    project = _reopened(verified, world, **repair)
    record = verified.run_record()
    bare = record.model_copy(
        update={"run_id": "20990101T000000.000000-bare00", "slices": (), "evidence": ()}
    )
    project.store.runs.save(bare.model_copy(update={"class_findings": findings, "trees": ()}))
    return project, bare.run_id


def _fails(name, verdict=Verdict.CONFIRMED):
    return ClassFinding(
        kind=ClassFindingKind.WHOLE, class_name=name, verdict=verdict, sentence="it fails"
    )


def test_repair__no_slice__the_class_that_fails_is_repaired(verified, pool_world):
    project, run_id = _without_slices(verified, pool_world, (_fails("disc"),))
    (result,) = project.repair(run_id).repairs
    assert result.plan.repairer == "worst-class"
    assert result.notes[0].startswith("No slice was confirmed, so the classes that fail as a whole")
    disc = next(one for one in result.arms[0].changes if one.kind is GroupKind.SLICE)
    own = next(
        one for one in result.arms[0].changes if one.kind is GroupKind.CLASS and one.group == "disc"
    )
    assert (disc.group, disc.n_samples) == ("disc: as a whole", own.n_samples)


def test_repair__neither_slice_nor_class__worst_class_works_when_asked_for(verified, pool_world):
    doubted = (_fails("disc", Verdict.NOT_CONFIRMED),)
    project, run_id = _without_slices(verified, pool_world, doubted, method="worst-class")
    (result,) = project.repair(run_id).repairs
    assert result.plan.slice_ids == ()
    assert result.arms[0].arm == "worst-class"
    asked = project.repair(run_id, RepairRequest(is_required=False))
    assert asked.repairs == ()


def test_repair__neither_slice_nor_class__says_what_to_do(verified, pool_world):
    project, run_id = _without_slices(verified, pool_world, ())
    record = project.repair(run_id)
    assert record.repairs == ()
    assert record.notes[-1].note.endswith("weakspot repair --method worst-class")


DOUBTED = "20990101T000001.000000-doubt0"


def test_repair__an_unconfirmed_slice_is_exploratory_and_given_groups_are_measured(
    verified, pool_world
):
    # The last test here: its run, in which nothing was confirmed, is the newest one from now on.
    project = _reopened(verified, pool_world, groups="colour")
    record = next(one for one in verified.store.runs.records() if one.published())
    wanted = record.published()[0][0]
    doubted = tuple(
        one.model_copy(update={"verdict": Verdict.NOT_CONFIRMED}) for one in record.evidence
    )
    with project.store.writing():
        project.store.runs.save(
            record.model_copy(update={"run_id": DOUBTED, "evidence": doubted, "repairs": ()})
        )
    with pytest.raises(ConfigError, match="no confirmed slice"):
        project.repair(DOUBTED, RepairRequest(slice_ids=(wanted.slice_id,)))
    request = RepairRequest(slice_ids=(wanted.slice_id,), is_exploratory=True)
    (result,) = project.repair(DOUBTED, request).repairs
    assert result.plan.is_exploratory
    given = [arm.given for arm in result.arms]
    assert {one.column for one in given} == {"colour"}
    assert len({(one.overall_before, one.spread.worst_before, one.n_small) for one in given}) == 1
