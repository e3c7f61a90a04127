"""A person's words for what goes wrong, put to the test: similarity to the phrase against failure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import FloatArray, generator, unit_rows
from weakspot.core.assistants import NO_ASSISTANTS, Assistants, EmbedTexts
from weakspot.core.bounds import Count, NonNegativeInt, check_bounds
from weakspot.core.discoverers import ClassDiscoverer
from weakspot.core.errors import DataError
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.group_tests import group_p
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule, Rule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet, obstacle, with_embeddings
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.discover.error_score import error_score_null, error_scores, score_at
from weakspot.words.caption_rule import spoken_rule
from weakspot.words.captions import counted, noun_of
from weakspot.words.meanings import noun_forms, wordings

EVERY_CLASS = "*"
BLANK = "{phrase}"
INSIDE = 0.5
MIN_ADDED = 1e-3
ANYTHING = "a thing"
HOW_TO_ASK = (
    "No phrase was given. Complete the sentence `The classifier is often wrong on images that have ... in it`, and give the words "
    "as phrases = {{ {key} = ['...'] }} in [discover.parameters.hypothesis], or ask `weakspot ask --class {key} '...'`."
)
DOES_NOT_SEPARATE = (
    "The phrase {phrase} does not separate failures: wherever the threshold is put, samples that are more similar to it fail "
    "no more often than the others (Error Score 0)."
)


@dataclass(frozen=True, kw_only=True)
class HypothesisDiscoverer(ClassDiscoverer):
    """Makes one slice of every phrase that a person gave for a class: the samples that are similar enough to it.

    A phrase that names values of columns (`colour = red and size = small`) or words of captions (`caption says wet road`) means the
    samples that have them, and needs no embeddings.

    After Lee, Lam, Vasconcelos, Bernstein and Finn, *Clarify: Improving Model Robustness With Natural Language Corrections* (2024).

    Args:
        phrases: class name -> phrases; `*` stands for every class.
        templates: sentences with `{phrase}` in them; the embeddings of several are averaged.
        space: which embeddings are read.
        n_permutations: how often predictions are shuffled to find the chance of such an Error Score; 0 for never.
        min_failures: classes with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.

    >>> from weakspot.testing.examples import ASSISTANTS, CRITERION, discovery_samples
    >>> method = HypothesisDiscoverer(phrases={"disc": ["green"]})
    >>> found = method.discover(discovery_samples(), CRITERION, seed=0, assistants=ASSISTANTS)
    >>> found.slices[0].title, found.slices[0].n_found
    ('disc: green', 15)
    """

    method = "hypothesis"
    phrases: Mapping[str, Sequence[str] | str]
    templates: tuple[str, ...] = (f"an image of {BLANK}",)
    space: str = "clip"
    n_permutations: NonNegativeInt = 1000
    min_failures: Count = 2
    min_right: Count = 2

    def __post_init__(self) -> None:
        blank = (
            []
            if self.templates and all(BLANK in one for one in self.templates)
            else [f"Every template must hold {BLANK}."]
        )
        wrong = [
            f"The phrases of {name!r} must be a list of texts."
            for name, given in self.phrases.items()
            if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given)
        ]
        check_bounds(self, problems=[*blank, *wrong])

    def phrases_for(self, problem: ClassProblem) -> tuple[str, ...]:
        keys = dict.fromkeys((problem.title, problem.class_name, EVERY_CLASS))
        given = [phrase for key in keys for phrase in as_phrases(self.phrases.get(key, ()))]
        return tuple(dict.fromkeys(given))

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        problems = class_problems(samples.dataset, samples.rows, criterion)
        notes = list(self._notes_on_unknown_classes(samples, problems))
        asked = {problem.title: self.phrases_for(problem) for problem in problems}
        embed = assistants.text_side(self.space)
        every = {phrase for phrases in asked.values() for phrase in phrases}
        ruled = _speak(sorted(every), samples, has_text_side=True)[0] if embed else {}
        slices: list[FailureSlice] = []
        use = DataUse.of(samples)
        n_considered = 0
        for problem in problems:
            phrases = asked[problem.title]
            if not phrases:
                how = HOW_TO_ASK.format(key=problem.title)
                notes.append(ClassNote(class_name=problem.title, note=how))
                continue
            rules, said = _speak(phrases, samples, has_text_side=embed is not None)
            found, more = self._by_rules(samples, problem, rules, use)
            worded = [phrase for phrase in phrases if phrase not in ruled]
            known = self.phrase_directions(worded, embed, problem) if embed else {}
            embedded = {phrase: known[phrase] for phrase in worded if phrase in known}
            similar, further = (
                self._test(samples, problem, embedded, use, seed=seed) if embedded else ([], [])
            )
            n_considered += len(phrases)
            slices += [*found, *similar]
            notes += [
                ClassNote(class_name=problem.title, note=note) for note in [*said, *more, *further]
            ]
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=n_considered)

    def phrase_directions(
        self, phrases: Iterable[str], embed: EmbedTexts, problem: ClassProblem
    ) -> dict[str, FloatArray]:
        """Return what every phrase adds to a class, as a unit vector [d].

        All wordings of a phrase are averaged, each without the part that is the class itself or any thing: within a class,
        similarity to the class's own name says how typical a sample is, not whether the phrase is true of it.
        """
        wanted = sorted(phrases)
        noun = class_noun(problem)
        said = {phrase: wordings(phrase, noun) for phrase in wanted}
        plain = [counted(noun, noun), ANYTHING] if noun else [ANYTHING]
        every = dict.fromkeys([*plain, *(one for own in said.values() for one in own)])
        known = self.phrase_embeddings(every, embed)
        basis = np.linalg.qr(np.stack([known[one] for one in plain]).T)[0].astype(np.float32)
        forms = noun_forms(noun)
        found = {}
        for phrase, own in said.items():
            is_class_alone = own[0].lower() in forms
            rows = np.stack([known[one] for one in own])
            if not is_class_alone:
                rest = rows - rows @ basis @ basis.T
                # An encoder to which the words are the class itself has nothing else to go by.
                is_more = np.linalg.norm(rest, axis=1, keepdims=True) > MIN_ADDED
                rows = np.where(is_more, unit_rows(rest), rows)
            found[phrase] = unit_rows(rows.mean(axis=0)[None])[0]
        return found

    def phrase_embeddings(self, phrases: Iterable[str], embed: EmbedTexts) -> dict[str, FloatArray]:
        """Return the unit vector [d] of every phrase, averaged over the templates."""
        wanted = sorted(phrases)
        if not wanted:
            return {}
        # The phrase is put in as it is: braces in it mean nothing.
        prompts = [
            template.replace(BLANK, phrase) for phrase in wanted for template in self.templates
        ]
        embeddings = unit_rows(np.asarray(embed(prompts), dtype=np.float32))
        means = unit_rows(embeddings.reshape(len(wanted), len(self.templates), -1).mean(axis=1))
        return dict(zip(wanted, means, strict=True))

    def _notes_on_unknown_classes(
        self, samples: SampleSet, problems: Sequence[ClassProblem]
    ) -> Iterable[ClassNote]:
        names = samples.dataset.class_names
        known = {EVERY_CLASS, *names, *(problem.title for problem in problems)}
        for name in self.phrases:
            if name not in known:
                yield ClassNote(
                    class_name=name,
                    note=f"There are phrases for it, but no such class: {list(names)}.",
                )

    def _test(
        self,
        samples: SampleSet,
        problem: ClassProblem,
        phrases: Mapping[str, FloatArray],
        use: DataUse,
        *,
        seed: int,
    ) -> tuple[list[FailureSlice], list[str]]:
        known, raw = with_embeddings(samples, problem, self.space)
        n_without = len(problem.rows) - len(known.rows)
        note = obstacle(
            known, min_failures=self.min_failures, min_right=self.min_right, n_without=n_without
        )
        if note:
            return [], [note]
        similarities = np.stack(list(phrases.values())) @ unit_rows(raw).T
        scores = error_scores(similarities, known.failed)
        chances = self._chances(similarities, known, seed=seed)
        slices: list[FailureSlice] = []
        notes: list[str] = []
        seen: dict[bytes, str] = {}
        for place, (phrase, embedding) in enumerate(phrases.items()):
            twin = seen.setdefault(embedding.tobytes(), phrase)
            if twin != phrase:
                notes.append(f"To the encoder the phrase {phrase!r} is the same as {twin!r}.")
            elif not scores.score[place]:
                notes.append(DOES_NOT_SEPARATE.format(phrase=repr(phrase)))
            else:
                rule = self._rule(samples, embedding, float(scores.threshold[place]))
                strength = float(scores.score[place]), chances[place]
                slices.append(self._slice(samples, problem, phrase, rule, strength, use))
        return slices, notes

    def _by_rules(
        self, samples: SampleSet, problem: ClassProblem, rules: Mapping[str, Rule], use: DataUse
    ) -> tuple[list[FailureSlice], list[str]]:
        """Return a slice of every rule that means some samples of a class and not all."""
        note = obstacle(problem, min_failures=self.min_failures, min_right=self.min_right)
        if note and rules:
            return [], [note]
        slices: list[FailureSlice] = []
        notes: list[str] = []
        for phrase, rule in rules.items():
            inside = rule.members(samples, problem.rows)
            if inside.all() or not inside.any():
                which = "all" if inside.any() else "none"
                notes.append(f"The phrase {phrase!r} means {which} of the samples looked at.")
                continue
            strength = score_at(inside.astype(np.float64), problem.failed, INSIDE)
            slices.append(
                FailureSlice(
                    class_name=problem.class_name,
                    side=problem.side,
                    rule=rule,
                    method=self.method,
                    parameters={"phrase": phrase},
                    found_on=use,
                    strength=strength,
                    strength_p=group_p(inside, problem.failed, problem.groups),
                    n_found=int(inside.sum()),
                    names=(
                        SliceName(
                            phrase=phrase, contrast=phrase, score=strength, describer=self.method
                        ),
                    ),
                )
            )
        return slices, notes

    def _rule(self, samples: SampleSet, embedding: FloatArray, threshold: float) -> LinearRule:
        encoder_id = samples.space(self.space).encoder_id
        return LinearRule(
            space=self.space,
            encoder_id=encoder_id,
            direction=tuple(embedding.tolist()),
            threshold=threshold,
        )

    def _slice(
        self,
        samples: SampleSet,
        problem: ClassProblem,
        phrase: str,
        rule: LinearRule,
        strength: tuple[float, float | None],
        use: DataUse,
    ) -> FailureSlice:
        prompts = [template.replace(BLANK, phrase) for template in self.templates]
        return FailureSlice(
            class_name=problem.class_name,
            side=problem.side,
            rule=rule,
            method=self.method,
            parameters={
                "phrase": phrase,
                "prompts": [*prompts],
                "n_permutations": self.n_permutations,
            },
            found_on=use,
            strength=strength[0],
            strength_p=strength[1],
            n_found=int(rule.members(samples, problem.rows).sum()),
            names=(
                SliceName(
                    phrase=prompts[0], contrast=phrase, score=strength[0], describer=self.method
                ),
            ),
        )

    def _chances(
        self, similarities: FloatArray, problem: ClassProblem, *, seed: int
    ) -> list[float | None]:
        if not self.n_permutations:
            return [None] * len(similarities)
        draws = generator(seed, self.method, problem.title)
        chances, _ = error_score_null(
            similarities,
            problem.failed,
            n_permutations=self.n_permutations,
            generator=draws,
            groups=problem.groups,
        )
        return [float(value) for value in chances]


def _speak(
    phrases: Sequence[str], samples: SampleSet, *, has_text_side: bool
) -> tuple[dict[str, Rule], list[str]]:
    """Return the phrases that speak of columns or captions as rules, and what is wrong with others."""
    rules: dict[str, Rule] = {}
    notes: list[str] = []
    for phrase in phrases:
        try:
            rule = spoken_rule(phrase, samples.dataset, has_text_side=has_text_side)
        except DataError as error:
            notes.append(str(error))
            continue
        if rule is not None:
            rules[phrase] = rule
    return rules, notes


def class_noun(problem: ClassProblem) -> str:
    """Return the noun of a class; empty for samples that lack the label, which need not show it."""
    return "" if problem.side is Side.ABSENT else noun_of(problem.class_name)


def as_phrases(given: Sequence[str] | str) -> tuple[str, ...]:
    """Return phrases without blanks around them and without empty ones; a single text is one phrase, not its letters.

    >>> as_phrases("green apples"), as_phrases([" on a shelf ", ""])
    (('green apples',), ('on a shelf',))
    """
    listed = (given,) if isinstance(given, str) else given
    return tuple(phrase.strip() for phrase in listed if phrase.strip())
