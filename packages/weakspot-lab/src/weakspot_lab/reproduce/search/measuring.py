"""The steps of the Search protocol: pairs of true and wrong label, clusters, a second generator, sets of failures."""

from collections import Counter
from typing import Any

import numpy as np
from PIL import Image
from pydantic import JsonValue
from scipy.stats import fisher_exact

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Split
from weakspot.generate.search.finding import CaptionSearch, ClassSearch, search_failures
from weakspot.run.settings import SearchSettings
from weakspot_lab.reproduce.protocol import Context, StepResult
from weakspot_lab.reproduce.scenes.networks import with_answers
from weakspot_lab.reproduce.scenes.world import Look
from weakspot_lab.reproduce.search.victims import (
    FIRST,
    SECOND,
    Examined,
    examined,
    fresh_images,
    network_of,
    sampler_of,
    world_of,
)

N_FRESH, N_SECOND, N_SET, MAX_KEPT = 400, 60, 120, 20
N_CLASSES = 5
SURE = 0.05
SETTINGS = SearchSettings(most_baseline=500, most_per_caption=250, budget=2500, smallest_gain=0.05)
SMALL_SETTINGS = SearchSettings(most_baseline=80, most_per_caption=48, budget=300, most_captions=6)


def pairs_of(context: Context) -> list[tuple[str, str]]:
    """Return pairs of a true label and the label that its validation failures are most often taken for, one a true label."""
    world = world_of(context)
    dataset = with_answers(world, network_of(context, FIRST))
    rows = dataset.rows_of(Split.VALIDATION)
    assert dataset.predictions is not None
    found = []
    for code, name in enumerate(dataset.class_names):
        own = rows[dataset.labels[rows] == code]
        wrong = Counter(int(one) for one in dataset.predictions[own] if one != code)
        if wrong:
            found.append(
                (name, dataset.class_names[min(wrong, key=lambda one: (-wrong[one], one))])
            )
    return found[: context.request.pick(len(found), 1)]


def measure_pairs(context: Context) -> StepResult:
    """Search every pair, and measure what is found anew, with both generators."""
    rows: list[JsonValue] = []
    for name, target in pairs_of(context):
        result = _searched(context, FIRST, name, target=target)
        row: dict[str, JsonValue] = {
            "class": name,
            "target": target,
            "n_images": result.n_images,
            "captions": [one.trial.caption for one in result.findings],
            "is_planted": [
                _names_usual(context, one.trial.caption, target) for one in result.findings
            ],
        }
        if result.findings:
            row |= _rates(context, name, target, result)
        rows.append(row)
    return {"rows": rows}


def _searched(
    context: Context, victim: str, name: str, *, target: str | None = None
) -> ClassSearch:
    request = CaptionSearch(
        class_name=name,
        target=target,
        settings=context.request.pick(SETTINGS, SMALL_SETTINGS),
    )
    return search_failures(sampler_of(context, victim), request)


def _names_usual(context: Context, caption: str, target: str) -> bool:
    """Return whether a caption names a background that training ties to the wrong label."""
    return any(value in caption for value in world_of(context).rules.usual[target])


def _rates(context: Context, name: str, target: str, result: ClassSearch) -> dict[str, JsonValue]:
    """Return failure rates of the reference caption and of the best finding, on images that the search has not seen."""
    best = result.findings[0].trial
    network = Examined(name=FIRST, network=network_of(context, FIRST))
    codes = [world_of(context).dataset.class_code(one) for one in (name, target)]
    found: dict[str, JsonValue] = {"caption": best.caption}
    counts = {}
    looks: tuple[tuple[Look, int], ...] = (("first", N_FRESH), ("second", N_SECOND))
    for look, number in looks:
        n_images = context.request.pick(number, 40)
        for words, prompt in (("reference", result.baseline.prompt), ("found", best.prompt)):
            images = fresh_images(context, prompt, n_images, look=look)
            said = network.says(images)
            counts[look, words] = (said != codes[0], said == codes[1])
            found[f"{look} {words}"] = _counted(said, codes)
    found["labels"] = {
        words: _labels(
            context,
            counts["first", words][0],
            result.baseline.prompt if words == "reference" else best.prompt,
        )
        for words in ("reference", "found")
    }
    failed = [counts["second", words][0] for words in ("found", "reference")]
    table = [[int(one.sum()), int((~one).sum())] for one in failed]
    found["second p"] = float(fisher_exact(table, alternative="greater").pvalue)
    return found


def _counted(said: IntArray, codes: list[int]) -> dict[str, JsonValue]:
    return {
        "n_images": len(said),
        "failures": int(np.sum(said != codes[0])),
        "target": int(np.sum(said == codes[1])),
    }


def _labels(context: Context, failed: BoolArray, prompt: str) -> dict[str, JsonValue]:
    """Return what failures of a prompt are taken for, most frequent first, as counts."""
    images = fresh_images(context, prompt, len(failed))
    network = Examined(name=FIRST, network=network_of(context, FIRST))
    names = world_of(context).dataset.class_names
    counted = Counter(names[code] for code in network.says(images)[failed])
    return dict(counted.most_common())


def measure_clusters(context: Context) -> StepResult:
    """Search without a target, and see whether failures of one wrong label share what training ties to that label."""
    rows: list[JsonValue] = []
    names = world_of(context).dataset.class_names
    for victim in (FIRST, SECOND):
        for name in names[: context.request.pick(N_CLASSES, 1)]:
            result = _searched(context, victim, name)
            clusters: list[JsonValue] = [
                {
                    "predicted": one.predicted,
                    "size": one.size,
                    "caption": one.caption,
                    "is_planted": bool(one.predicted)
                    and _names_usual(context, one.caption, one.predicted),
                }
                for one in result.clusters
            ]
            rows.append(
                {
                    "victim": victim,
                    "class": name,
                    "clusters": clusters,
                    "captions": [[one.trial.caption, one.trial.prompt] for one in result.findings],
                    "n_images": result.n_images,
                    "baseline": [result.baseline.all_failures, result.baseline.n_images],
                }
            )
    return {"rows": rows}


def measure_transfer(context: Context) -> StepResult:
    """Make a set of failures of either architecture from all captions found, and put both to every network."""
    given: list[dict[str, Any]] = context.results["clusters"]["rows"]
    captions = list(
        dict.fromkeys(
            (str(row["class"]), str(prompt)) for row in given for _, prompt in row["captions"]
        )
    )
    others = examined(context)
    victims = {one.name: one for one in others}
    sets: dict[str, JsonValue] = {}
    for victim in (FIRST, SECOND):
        images, labels = _failures(context, victims[victim], captions)
        rates: dict[str, JsonValue] = {}
        for one in others:
            if len(images):
                rates[one.name] = float(100 * np.mean(one.says(images) != labels))
        sets[victim] = {"n_images": len(images), "rates": rates}
    test = world_of(context)
    rows = test.rows(Split.VALIDATION)
    errors: dict[str, JsonValue] = {
        one.name: float(100 * np.mean(one.codes(test.images[rows]) != test.dataset.labels[rows]))
        for one in others
    }
    return {"sets": sets, "errors": errors, "n_captions": len(captions)}


def _failures(
    context: Context, victim: Examined, captions: list[tuple[str, str]]
) -> tuple[list[Image.Image], IntArray]:
    """Return images that a network gets wrong, a few of every caption, and their true classes."""
    images: list[Image.Image] = []
    labels: list[int] = []
    dataset = world_of(context).dataset
    for name, prompt in captions:
        code = dataset.class_code(name)
        made = fresh_images(context, prompt, context.request.pick(N_SET, 24))
        wrong = np.flatnonzero(victim.says(made) != code)[:MAX_KEPT]
        images += [made[place] for place in wrong]
        labels += [code] * len(wrong)
    return images, np.array(labels, dtype=np.int64)
