"""Words that a person gives to a slice, with the accuracy of the samples nearest to them."""

import numpy as np

from weakspot.app.browsing.workspace import Workspace
from weakspot.core.errors import ModelError
from weakspot.core.failures import Side
from weakspot.core.slices import SliceName
from weakspot.describe.caption_grammar.class_view import ClassView

PERSON = "person"
N_NEAREST = 50


def spoken_name(workspace: Workspace, class_name: str, side: Side | None, words: str) -> SliceName:
    """Return a person's words as a name; with a text side, also how accurate the classifier is on the samples nearest to them."""
    name = SliceName(phrase=f"an image of {words}", contrast=words, score=0.0, describer=PERSON)
    problem = next((one for one in workspace.problems.values() if (one.class_name, one.side) == (class_name, side)), None)
    if problem is None:
        return name
    try:
        text = workspace.embed_texts([name.phrase])[0]
        known, vectors = workspace.class_vectors(problem.title)
    except ModelError:
        return name
    if not len(vectors):
        return name
    view = ClassView(rows=known.rows, vectors=vectors, failed=known.failed, covariance=np.zeros((0, 0), dtype=np.float32))
    accuracies = view.accuracies_nearest(text)
    nearest = float(accuracies[view.n_near(N_NEAREST) - 1])
    return name.model_copy(update={"accuracy_nearest": nearest, "curve": view.curve(accuracies)})
