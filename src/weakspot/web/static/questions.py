"""What the pages ask when somebody only reads, page by page: the table of exported routes.

=========================================  =====================================================================
overview                                   /api/overview, /api/runs, /api/runs/{run}/images, /api/discoverers
classes                                    /api/classes, and of every class /samples, /suggestions, /history and
                                           the scores (POST /phrase) of its suggestions and of earlier phrases
slices                                     /api/slices, and of every slice itself and /members of all four kinds
attributes                                 /api/attributes (all, and every class), /edits, /combinations, /samples
map                                        /api/map, /api/map/colourings, /api/map/colours of everything
repair                                     /api/repair/options, /api/repair/results, /api/repair/images
search                                     /api/generation/setup, /counterfactuals, /searches
a sample                                   /api/samples/{row} of samples whose images are exported
=========================================  =====================================================================

Not exported: the session (it is written anew, as a viewer's), running work, studies and people, uploads, downloads, comparisons,
and everything that changes something. Constants below are those of the pages.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from pydantic import JsonValue

from weakspot.web.services.view import INT32, UINT8, unpack
from weakspot.web.static.asker import Question

SLICE_PAGE = 60
SLICE_KINDS = ("members", "extremes", "counter", "outside")
CLASS_PIECE = 200_000
VALUE_PAGE, VALUE_PAGES = 100, 4
LEAST_SUPPORT, WORST_SHOWN, PAIR_CELLS = 10, 60, 2500
MOST_PAIRED = 6
MOST_CLASSES, MOST_SLICES, MOST_VALUES, MOST_COLOURINGS, MOST_PHRASES = 300, 300, 150, 60, 30
FIRST_OF_CLASS = 120

Answer = dict[str, JsonValue]
Chosen = tuple[tuple[str, str], ...]
Ask = Callable[[Question], Answer | None]
Want = Callable[[list[int]], None]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How pages are read through.

    Args:
        ask: returns the answer, and keeps it for the export.
        want: called with the samples that are seen, most important first.
        run_id: the run that is exported; None if there is none.
    """

    ask: Ask
    want: Want
    run_id: str | None

    def all_pages(self) -> None:
        """Ask everything that the pages ask, most important first."""
        for page in (
            self._overview,
            self._slices,
            self._classes,
            self._attributes,
            self._map,
            self._repair,
            self._search,
        ):
            page()

    def _of_run(self, path: str, *query: tuple[str, str]) -> Answer | None:
        """Ask about the run; pages that name none mean the same."""
        if self.run_id is None:
            return self.ask(Question(path=path, query=query))
        return self.ask(Question(path=path, query=(("run", self.run_id), *query), also=(query,)))

    def _overview(self) -> None:
        self._of_run("/api/overview")
        self.ask(Question(path="/api/runs"))
        self.ask(Question(path="/api/discoverers"))
        if self.run_id is not None:
            shown = self.ask(Question(path=f"/api/runs/{self.run_id}/images"))
            self.want(list(_rows(shown)))

    def _slices(self) -> None:
        table = self._of_run("/api/slices")
        for line in _items(table, "slices")[:MOST_SLICES]:
            path = f"/api/slices/{line['slice_id']}"
            self._of_run(path)
            for kind in SLICE_KINDS:
                page = self._of_run(
                    f"{path}/members", ("kind", kind), ("offset", "0"), ("limit", str(SLICE_PAGE))
                )
                self.want(list(_rows(page)))

    def _classes(self) -> None:
        found = self.ask(Question(path="/api/classes"))
        titles = [str(one["title"]) for one in _items(found, "classes")][:MOST_CLASSES]
        for title in titles:
            self._class_samples(title)
        for title in titles:
            self._phrases(title)

    def _class_samples(self, title: str) -> None:
        first = self.ask(Question(path="/api/classes/samples", query=(("title", title),)))
        if first is None:
            return
        rows, failed = unpack(str(first["rows"]), INT32), unpack(str(first["failed"]), UINT8)
        self.want(rows[failed == 1][:FIRST_OF_CLASS].tolist())
        self.want(rows[failed == 0][:FIRST_OF_CLASS].tolist())
        for offset in range(CLASS_PIECE, int(str(first["total"])), CLASS_PIECE):
            self.ask(
                Question(
                    path="/api/classes/samples", query=(("title", title), ("offset", str(offset)))
                )
            )

    def _phrases(self, title: str) -> None:
        asked = (("title", title),)
        suggested = self.ask(Question(path="/api/classes/suggestions", query=asked))
        history = self.ask(Question(path="/api/classes/history", query=asked))
        words = [str(one["words"]) for one in _items(suggested, "words")]
        words += [str(one["phrase"]) for one in _items(history, "phrases")]
        for phrase in list(dict.fromkeys(words))[:MOST_PHRASES]:
            body: Answer = {
                "title": title,
                "phrase": phrase,
                "source": "own",
                "is_submitted": False,
                "offset": 0,
                "limit": CLASS_PIECE,
            }
            self.ask(Question(path="/api/classes/phrase", body=body))

    def _attributes(self) -> None:
        everything = self.ask(Question(path="/api/attributes"))
        self.ask(Question(path="/api/attributes/edits"))
        titles = everything.get("titles") if everything is not None else None
        of_classes: list[Chosen] = [
            (("title", str(title)),) for title in (titles if isinstance(titles, list) else [])
        ]
        for of_class in of_classes[:MOST_CLASSES]:
            self.ask(Question(path="/api/attributes", query=of_class))
        assigned = [
            one for one in _items(everything, "attributes") if one.get("state") == "assigned"
        ]
        names = [str(one["attribute_id"]) for one in assigned]
        for of_class in ((), *of_classes[:MOST_CLASSES]):
            self._combinations((), of_class)
        for chosen in [*[(name,) for name in names], *combinations(names[:MOST_PAIRED], 2)][
            :MOST_VALUES
        ]:
            self._combinations(chosen, ())
        values = [
            (str(one["attribute_id"]), str(value["value_id"]))
            for one in assigned
            for value in _items(one, "values")
        ]
        for attribute, value in values[:MOST_VALUES]:
            self._value_samples(attribute, value)

    def _combinations(self, attributes: tuple[str, ...], of_class: Chosen) -> None:
        limit = PAIR_CELLS if len(attributes) == 2 else WORST_SHOWN  # noqa: PLR2004 - a pair is a table
        chosen = tuple(("attributes", name) for name in attributes)
        query = (*chosen, ("min_support", str(LEAST_SUPPORT)), ("limit", str(limit)), *of_class)
        self.ask(Question(path="/api/attributes/combinations", query=query))

    def _value_samples(self, attribute: str, value: str) -> None:
        for result in ("wrong", "right"):
            for offset in range(0, VALUE_PAGES * VALUE_PAGE, VALUE_PAGE):
                paging = (("result", result), ("offset", str(offset)), ("limit", str(VALUE_PAGE)))
                page = self.ask(
                    Question(
                        path="/api/attributes/samples",
                        query=(("attributes", attribute), ("values", value), *paging),
                    )
                )
                self.want(list(_rows(page)) if offset == 0 else [])
                if page is None or int(str(page["total"])) <= offset + VALUE_PAGE:
                    break

    def _map(self) -> None:
        places = [
            self.ask(Question(path="/api/map", query=(("layout", layout),)))
            for layout in ("pca", "umap")
        ]
        found = self.ask(Question(path="/api/map/colourings"))
        for colouring in _items(found, "colourings")[:MOST_COLOURINGS]:
            self.ask(Question(path="/api/map/colours", query=(("by", str(colouring["by"])),)))
        if places[0] is not None:
            # Numpy shuffles a copy, but takes an empty array as it is, and what was unpacked is read-only.
            rows = unpack(str(places[0]["rows"]), INT32).copy()
            self.want(np.random.default_rng(0).permutation(rows).tolist())

    def _repair(self) -> None:
        self._of_run("/api/repair/options")
        self._of_run("/api/repair/results")
        changed = self._of_run("/api/repair/images")
        self.want(list(_rows(changed)))

    def _search(self) -> None:
        for name in ("setup", "counterfactuals", "searches"):
            self.ask(Question(path=f"/api/generation/{name}"))


def only_exported(answer: JsonValue, run_id: str | None) -> JsonValue:
    """Return an answer that offers nothing that only a server could give: no other run, no words for the map."""
    if not isinstance(answer, dict):
        return answer
    changed = dict(answer)
    if "colourings" in answer and "has_words" in answer:
        changed["has_words"] = False
    if "run_ids" in answer:
        changed["run_ids"] = [run_id] if run_id is not None else []
    if isinstance(runs := answer.get("runs"), list):
        changed["runs"] = [
            one for one in runs if isinstance(one, dict) and one.get("run_id") == run_id
        ]
    return changed


def digests_in(answer: JsonValue) -> Iterator[str]:
    if isinstance(answer, dict):
        if isinstance(digest := answer.get("digest"), str):
            yield digest
        listed = answer.get("digests")
        yield from (
            one for one in (listed if isinstance(listed, list) else []) if isinstance(one, str)
        )
        for name, item in answer.items():
            if name not in ("digest", "digests"):
                yield from digests_in(item)
    elif isinstance(answer, list):
        for item in answer:
            yield from digests_in(item)


def _items(answer: JsonValue | None, name: str) -> list[Answer]:
    found = answer.get(name) if isinstance(answer, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _rows(answer: JsonValue | None) -> Iterator[int]:
    if isinstance(answer, dict):
        if isinstance(row := answer.get("row"), int):
            yield row
        listed = answer.get("rows")
        if isinstance(listed, list):
            yield from (one for one in listed if isinstance(one, int))
        if isinstance(listed, str):
            yield from (int(one) for one in unpack(listed, INT32))
        for item in answer.values():
            if isinstance(item, dict | list):
                yield from _rows(item)
    elif isinstance(answer, list):
        for item in answer:
            if isinstance(item, dict | list):
                yield from _rows(item)
