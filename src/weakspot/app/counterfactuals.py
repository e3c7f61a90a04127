"""A person's captions, measured at once: the same pictures with one thing changed, and what the classifier says of them."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from PIL import Image

from weakspot.app.drawing_tools import DrawingTools
from weakspot.app.drawn_outcomes import DrawnOutcomes
from weakspot.core.drawn import PictureOrder, rejections
from weakspot.core.errors import ConfigError, RefusedPromptError
from weakspot.core.evidence import Share
from weakspot.core.failures import FailureCriterion, describe_criterion
from weakspot.core.seeding import child_seed
from weakspot.search.counterfactuals import CounterfactualRate, CounterfactualSeries, counterfactual_prompt, paired_rate
from weakspot.store.project import ProjectStore

LOG_FILE = "counterfactuals.jsonl"


@dataclass(frozen=True, kw_only=True)
class CounterfactualRequest:
    """What is asked.

    Args:
        class_name: what the pictures show.
        captions: places ("on grass"), properties ("green"), sentences ("it is dark.") or whole prompts.
        n_each: pictures for every caption.
    """

    class_name: str
    captions: tuple[str, ...]
    n_each: int = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class ShownDraw:
    """One place of a series: the picture, if there is one, and what the classifier says of it; `key` is its content hash."""

    picture: Image.Image | None
    answer: str
    fails: bool | None
    key: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class CounterfactualResult:
    """A series and its pictures by row: the unchanged ones first, then one row a caption."""

    series: CounterfactualSeries
    rows: tuple[tuple[ShownDraw, ...], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class CounterfactualStage:
    """Measures captions.

    Args:
        tools: the project, and who draws.
    """

    tools: DrawingTools

    def run(self, request: CounterfactualRequest) -> CounterfactualResult:
        """Draw, classify and compare; what was drawn before is not drawn again.

        Raises:
            ConfigError: if nothing is asked for.
            DataError: if there is no such class.
            RefusedPromptError: if the generator can draw not one of the captions.
        """
        captions = _checked(request)
        tools, store, seed = self.tools, self.tools.store, self.tools.settings.seed
        tools.prepared.samples.dataset.class_code(request.class_name)
        drawer = tools.drawer()
        prompts = {caption: counterfactual_prompt(request.class_name, caption) for caption in ("", *captions)}
        tools.confirm_cost(drawer, request.n_each * len(prompts))
        with store.writing():
            work = _Work(
                outcomes=tools.outcomes(drawer, progress=tools.progress),
                criterion=tools.criterion,
                class_name=request.class_name,
                seeds=tuple(child_seed(seed, "counterfactual", request.class_name, str(place)) for place in range(request.n_each)),
            )
            rows = work.rows(prompts)
            n_looks = _n_looks(store, drawer.generator_id, request.class_name, captions)
            _write_down(store, drawer.generator_id, request.class_name, captions)
        rates = [_rate(caption, prompts[caption], rows[""], row, n_looks) for caption, row in rows.items()]
        series = CounterfactualSeries(
            class_name=request.class_name,
            criterion=describe_criterion(tools.criterion),
            generator_id=drawer.generator_id,
            classifier_id=tools.prepared.summary.classifier_id,
            seed=seed,
            n_each=request.n_each,
            n_looks=n_looks,
            baseline=rates[0],
            rates=tuple(rates[1:]),
            notes=_notes(rates[0], request.n_each),
        )
        return CounterfactualResult(series=series, rows=tuple(row.shown for row in rows.values()))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Row:
    """The pictures of one prompt, by place of the series."""

    shown: tuple[ShownDraw, ...]
    rejected: dict[str, int] = field(default_factory=dict)
    refusal: str = ""

    @property
    def wrong_labels(self) -> dict[str, int]:
        """Return what failures were taken for, commonest first."""
        return dict(Counter(one.answer for one in self.shown if one.fails).most_common())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Work:
    """Draws and judges the rows of one series."""

    outcomes: DrawnOutcomes
    criterion: FailureCriterion
    class_name: str
    seeds: tuple[int, ...]

    def rows(self, prompts: Mapping[str, str]) -> dict[str, _Row]:
        """Return the pictures of every prompt, by caption; the unchanged ones have the empty caption.

        A place of the series whose unchanged picture did not pass the gate is drawn with no caption either.
        """
        try:
            unchanged = self._row(prompts[""], [True] * len(self.seeds))
            is_usable = [one.fails is not None for one in unchanged.shown]
            rows = {"": unchanged} | {caption: self._row(prompt, is_usable) for caption, prompt in prompts.items() if caption}
        finally:
            self.outcomes.flush()
        _refuse_all(rows)
        return rows

    def _row(self, prompt: str, is_wanted: Sequence[bool]) -> _Row:
        """Return the pictures of a prompt; the same place of every prompt has the same seed, so that only the words differ."""
        seeds = [seed for seed, wanted in zip(self.seeds, is_wanted, strict=True) if wanted]
        nothing = ShownDraw(picture=None, answer="", fails=None)
        try:
            drawn = self.outcomes.draw([PictureOrder(class_name=self.class_name, prompt=prompt, seed=seed) for seed in seeds])
        except RefusedPromptError as error:
            return _Row(shown=(nothing,) * len(self.seeds), refusal=f"{error.what} {error.fix or ''}".strip())
        said = iter(self._said([one.content_hash for one in drawn if one.is_kept]))
        shown = iter([next(said) if one.is_kept else replace(nothing, answer=one.rejected_by) for one in drawn])
        return _Row(shown=tuple(next(shown) if wanted else nothing for wanted in is_wanted), rejected=rejections(drawn))

    def _said(self, keys: Sequence[str]) -> Iterator[ShownDraw]:
        names = self.outcomes.class_names
        probabilities = self.outcomes.probabilities(keys)
        labels = np.full(len(keys), names.index(self.class_name))
        fails = self.criterion.failed_outcomes(probabilities, labels, names).tolist()
        for key, row, has_failed in zip(keys, probabilities, fails, strict=True):
            yield ShownDraw(picture=self.outcomes.picture(key), answer=names[int(row.argmax())], fails=has_failed, key=key)


def _rate(caption: str, prompt: str, unchanged: _Row, row: _Row, n_looks: int) -> CounterfactualRate:
    before, after = [one.fails for one in unchanged.shown], [one.fails for one in row.shown]
    if row.refusal:
        return CounterfactualRate(caption=caption, prompt=prompt, share=Share.of(0, 0), note=row.refusal)
    found = paired_rate(caption, prompt, before, after, n_looks=n_looks)
    return found.model_copy(update={"wrong_labels": row.wrong_labels, "rejected": row.rejected})


def _notes(unchanged: CounterfactualRate, n_asked: int) -> tuple[str, ...]:
    if not unchanged.rejected:
        return ()
    why = ", ".join(f"{number} {gate}" for gate, number in unchanged.rejected.items())
    return (f"Of {n_asked} unchanged pictures {unchanged.share.total} count; the gate rejected the others: {why}.",)


def _checked(request: CounterfactualRequest) -> tuple[str, ...]:
    captions = tuple(dict.fromkeys(caption.strip() for caption in request.captions if caption.strip()))
    if not captions or request.n_each < 1:
        raise ConfigError(
            "There is nothing to measure.",
            given={"captions": list(request.captions), "n_each": request.n_each},
            fix='Name what is changed, for example "on grass" or "it is dark".',
        )
    return captions


def _refuse_all(rows: Mapping[str, _Row]) -> None:
    if rows[""].refusal:
        raise RefusedPromptError(f"Not even the unchanged pictures can be drawn. {rows[''].refusal}")
    refusals = {caption: row.refusal for caption, row in rows.items() if caption}
    if all(refusals.values()):
        raise RefusedPromptError(f"The generator can draw none of the captions. {next(iter(refusals.values()))}", given=[*refusals])


def _n_looks(store: ProjectStore, generator_id: str, class_name: str, captions: Sequence[str]) -> int:
    """Return how many different captions were ever put to this class with this generator, these ones among them."""
    asked = set(captions)
    path = store.root / LOG_FILE
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and (entry.get("generator"), entry.get("class")) == (generator_id, class_name):
            asked.add(str(entry.get("caption")))
    return len(asked)


def _write_down(store: ProjectStore, generator_id: str, class_name: str, captions: Sequence[str]) -> None:
    with (store.root / LOG_FILE).open("a", encoding="utf-8") as stream:
        for caption in captions:
            entry = {"generator": generator_id, "class": class_name, "caption": caption}
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")
