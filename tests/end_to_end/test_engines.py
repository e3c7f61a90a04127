"""The whole loop on every engine gives the same, bit for bit; also when a machine of the cluster is lost in the middle."""

import sys
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.build import SEED, planted_settings

from weakspot.project.project import Project
from weakspot.run.settings import EngineSettings
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import plant, rare

N_SAMPLES = 480
SAME = ("criterion", "classifier", "slices", "evidence", "repairs", "notes", "inputs")


@dataclass(frozen=True, kw_only=True)
class UnhurriedEmbedder(PlantedEmbedder):
    """Takes long enough for a machine to be lost meanwhile."""

    pause_seconds: float = 0.0

    def embed_prepared(self, prepared):
        time.sleep(self.pause_seconds)
        return super().embed_prepared(prepared)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    plant(rare(0.01), N_SAMPLES, seed=SEED).write_images(folder)
    return folder / "manifest.csv"


def ran(
    folder, images, *, engine, embedder=None, progress=lambda stage, done, total: None, **options
):
    """Return the project after a whole run, and its record."""
    folder.mkdir()
    settings = planted_settings(N_SAMPLES).replace("manifest.csv", str(images))
    (folder / "weakspot.toml").write_text(settings)
    project = Project.open(
        folder, engine=engine, embedder=embedder or UnhurriedEmbedder(), progress=progress
    )
    project.settings = project.settings.model_copy(
        update={"engine": EngineSettings(name=engine, options=options)}
    )
    return project, project.run()


@pytest.fixture(scope="module")
def here(tmp_path_factory, images):
    return ran(tmp_path_factory.mktemp("local") / "project", images, engine="local")


def assert_same(found, wanted):
    (project, record), (other, expected) = found, wanted
    for name in SAME:
        assert getattr(record, name) == getattr(expected, name), name
    assert record.evidence
    for name, space in other.prepared().samples.spaces.items():
        np.testing.assert_array_equal(
            np.asarray(project.prepared().samples.spaces[name].embeddings),
            np.asarray(space.embeddings),
        )
    one, two = (each.prepared().samples.dataset for each in (project, other))
    assert one.table.equals(two.table)


def test_run__in_other_processes(tmp_path, images, here):
    found = ran(tmp_path / "project", images, engine="processes", n_workers=2)
    assert found[1].settings["engine"]["name"] == "processes"
    assert_same(found, here)


@dataclass
class LosingMachine:
    """Takes a machine away from a cluster when a third of the images is read."""

    cluster: object
    machine: object
    lost_at: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, stage, done, total):
        if stage == "ingest" and not self.lost_at and done * 3 >= total:
            self.lost_at.append((done, total))
            self.cluster.remove_node(self.machine, allow_graceful=False)


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
        from ray.cluster_utils import Cluster

        machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        second = machines.add_node(num_cpus=1)
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        yield machines, second
        ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
        ray.shutdown()
        machines.shutdown()


def test_run__on_a_cluster_that_loses_a_machine(tmp_path, images, here, cluster):
    machines, second = cluster
    losing = LosingMachine(machines, second)
    embedder = UnhurriedEmbedder(pause_seconds=0.1)
    options = {"address": machines.address, "cpus_per_worker": 1}
    found = ran(
        tmp_path / "project", images, engine="ray", embedder=embedder, progress=losing, **options
    )
    ((done, total),) = losing.lost_at
    assert done < total
    assert_same(found, here)
