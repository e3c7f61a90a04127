import sys

import numpy as np

from weakspot.core import compiled
from weakspot.discover import directions, directions_kernels
from weakspot.project import warm_up


def test_begin_compiling__another_process_of_this_python(monkeypatch):
    asked = []
    monkeypatch.setattr(warm_up, "compile_beside", lambda command, tell: asked.append(command))
    warm_up.begin_compiling()
    assert asked == [[sys.executable, "-m", "weakspot.project.warm_up"]]


def test_compile_loops__runs_a_project_that_loads_the_loops_of_a_run_and_notes_it(monkeypatch):
    noted, shares = [], []
    monkeypatch.setattr(directions_kernels, "chance_shares", lambda *given: shares.append(given))
    judge = directions.best_accuracies
    monkeypatch.setattr(
        directions, "best_accuracies", lambda *on: noted.append("judged") or judge(*on)
    )
    for name in ("note_usual_compiled", "note_compiled"):
        monkeypatch.setattr(warm_up, name, lambda name=name: noted.append(name))
    warm_up.compile_loops(then=lambda: noted.append("gives way"))
    assert noted[0] == "judged"  # among what most runs need
    assert [one for one in noted if one != "judged"] == [
        "note_usual_compiled",
        "gives way",
        "note_compiled",
    ]
    # The one loop that no planted failures need, with the kinds of arrays that a run hands over.
    ((gram, orders, n_rows),) = shares
    assert (gram.dtype, orders.dtype, n_rows) == (np.float32, np.int64, orders.shape[1])
    needed = {"weakspot.core.kernels", "weakspot.discover.error_score_kernels"}
    assert needed <= sys.modules.keys()
    assert compiled.kernels_folder().exists()
