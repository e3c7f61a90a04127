"""Names by a caption grammar: "a photo of a {adjective} {noun} {place}", scored against the slice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import JsonValue

from weakspot.core.assistants import MIN_TRUST, NO_ASSISTANTS, Assistants, Propose, TrustPhrases
from weakspot.core.bounds import Bounds, Count, NonNegative, check_bounds
from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, SliceName, matches
from weakspot.words.caption_judging import (
    Best,
    Claim,
    ClassView,
    Judge,
    Judged,
    Ranking,
    SliceView,
    TextSide,
    Witnesses,
)
from weakspot.words.caption_rule import words_in_sentences
from weakspot.words.captions import (
    Caption,
    ClassWords,
    all_combinations,
    built_in_vocabulary,
    content_words,
    noun_of,
    pairs_of,
    plain_caption,
    reference_phrase,
    single_additions,
    words_of_ancestors,
)
from weakspot.words.meanings import same_contrast, title_of
from weakspot.words.wordnet import hyponyms, lemma

Words = ClassWords | Mapping[str, Sequence[str]]
LONGEST = {"adjectives": 3, "places": 7}
_KINDS_OF_WORDS = ("adjectives", "nouns", "places")


def known_words(words: ClassWords, trust: TrustPhrases | None) -> ClassWords:
    """Return the words that the text side knows; all of them if it cannot say."""
    every = [*words.adjectives, *words.nouns, *words.places]
    found = None if trust is None or not every else trust(every)
    if found is None:
        return words
    known = {word for word, one in zip(every, found, strict=True) if one >= MIN_TRUST}
    return ClassWords(
        adjectives=tuple(word for word in words.adjectives if word in known),
        nouns=tuple(word for word in words.nouns if word in known),
        places=tuple(word for word in words.places if word in known),
    )


def sayable_words(words: ClassWords, says: TrustPhrases | None) -> frozenset[str] | None:
    """Return the words that were seen to be told well on other images; None if nobody can say."""
    every = [*words.adjectives, *words.nouns, *words.places, *built_in_vocabulary().looks]
    found = None if says is None else says(every)
    if found is None:
        return None
    return frozenset(word for word, one in zip(every, found, strict=True) if one >= MIN_TRUST)


def without_own_words(words: ClassWords, noun: str) -> ClassWords:
    """Return words without those that only repeat the noun: no orange orange."""
    own = {lemma(word) for word in content_words(noun)}
    return ClassWords(
        adjectives=tuple(word for word in words.adjectives if lemma(word) not in own),
        nouns=tuple(word for word in words.nouns if noun_of(word) != noun),
        places=words.places,
    )


def proposed_words(noun: str, propose: Propose, most: int) -> ClassWords:
    """Return what a language model proposes for a noun; nothing if it cannot be asked or answers something else."""
    listed: JsonValue = {"type": "array", "items": {"type": "string"}, "maxItems": most}
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"adjectives": listed, "places": listed},
        "required": ["adjectives", "places"],
    }
    prompt = (
        f"Photos of the class {noun!r} differ. Give up to {most} adjectives that can stand before the noun, such as 'green', "
        f"and up to {most} places or circumstances that can follow it, with their preposition, such as 'on a table'. "
        "Prefer what an image can show: colours, materials, states, poses, backgrounds, light, company."
    )
    try:
        answer = propose(prompt, schema)
    except (ModelError, UnavailableError):
        return ClassWords()
    if not isinstance(answer, dict):
        return ClassWords()
    return ClassWords(
        **{kind: _usable(answer.get(kind), longest, most) for kind, longest in LONGEST.items()}
    )


def _usable(answer: JsonValue, longest: int, most: int) -> tuple[str, ...]:
    if not isinstance(answer, list):
        return ()
    phrases = (
        " ".join(item.lower().strip(" .,;").split()) for item in answer if isinstance(item, str)
    )
    return tuple(dict.fromkeys(phrase for phrase in phrases if _is_phrase(phrase, longest)))[:most]


def _is_phrase(phrase: str, longest: int) -> bool:
    letters = phrase.replace(" ", "").replace("-", "").replace("'", "")
    return letters.isalpha() and len(phrase.split()) <= longest and bool(content_words(phrase))


def _as_class_words(given: Words, class_name: str) -> ClassWords:
    if isinstance(given, ClassWords):
        return given
    unknown = sorted(set(given) - set(_KINDS_OF_WORDS))
    if unknown:
        raise ConfigError(
            f"Unknown kinds of words: {unknown}.",
            where=f"class_words of {class_name!r}",
            fix="Use adjectives, nouns or places.",
        )
    return ClassWords(**{kind: tuple(words) for kind, words in given.items()})


DESCRIBER = "caption-grammar"
BACKGROUND = "background"


@dataclass(frozen=True, kw_only=True)
class CaptionGrammarDescriber:
    """Names slices by captions; without a text side it returns them as they are.

    After Jain, Lawrence, Moitra and Madry, *Distilling Model Failures as Directions in Latent Space* (2023).

    Args:
        space: the embeddings that are shared with text.
        adjectives: instead of the built-in ones.
        places: instead of the built-in ones.
        class_words: words for single classes, or for all classes that are kinds of something, beside the others: adjectives, nouns,
            places.
        n_kinds: kinds of the class, out of WordNet, that are tried in place of its name.
        n_proposed: adjectives and places that a language model is asked for, if there is one.
        n_caption_words: adjectives, kinds and places taken from captions, if there are any.
        ranking: what ranks captions. `data`: how what the caption adds goes with the slice's scores over the class's samples;
            `direction`: the paper's alignment with the slice's direction; `both`: the mean of the two, each in units of its
            spread over the captions tried.
        combinations: which captions add more than one thing. `best`: pairs of the best single additions; `all`: the whole grammar,
            as in the paper.
        n_names: names kept for the slice.
        n_sayable: names kept of words that were seen to be told well on other images, beside those.
        n_easy_names: names kept for the other end.
        n_combined: best single additions that are also tried in pairs.
        longer_gain: how much better, relatively, a name must be for every further content word it has.
        n_nearest: samples nearest to a caption whose accuracy is measured; at most a quarter of the class.
        n_captioned: samples of a class whose captions are read for a slice, half of them inside.
        n_asked: samples of a class that a question is asked about, half of them inside.
        n_questioned: names of a slice that questions are asked about.
        max_samples: of larger classes, as many samples at even steps are looked at.
        chunk_size: captions embedded at a time.

    >>> from weakspot.testing.examples import ASSISTANTS, CRITERION, discovery_samples, example_slices
    >>> describer = CaptionGrammarDescriber()
    >>> named = describer.describe(example_slices(), discovery_samples(), CRITERION, ASSISTANTS)
    >>> named[0].title
    'green discs'
    """

    space: str = "clip"
    adjectives: tuple[str, ...] | None = None
    places: tuple[str, ...] | None = None
    class_words: Mapping[str, Words] = field(default_factory=dict)
    n_kinds: int = 40
    n_proposed: int = 30
    n_caption_words: int = 30
    ranking: Ranking = "both"
    combinations: Literal["best", "all"] = "best"
    n_names: Count = 5
    n_sayable: int = 3
    n_easy_names: int = 3
    n_combined: int = 6
    longer_gain: NonNegative = 0.35
    n_nearest: Count = 20
    n_captioned: int = 200
    n_asked: int = 40
    n_questioned: int = 2
    max_samples: Annotated[int, Bounds(ge=2)] = 20_000
    chunk_size: Count = 1_024

    def __post_init__(self) -> None:
        check_bounds(self)

    def describe(
        self,
        slices: Sequence[FailureSlice],
        samples: SampleSet,
        criterion: FailureCriterion,
        assistants: Assistants,
    ) -> tuple[FailureSlice, ...]:
        """Return the same slices, in the same order, with names; as they are where there is no text side or no sample."""
        has_text = self.space in samples.spaces and samples.space(self.space).has_text
        if assistants.embed_texts is None or not slices or not has_text:
            return tuple(slices)
        texts = TextSide(assistants.embed_texts, samples.space(self.space).embeddings.shape[1])
        named = list(slices)
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            places = [place for place, found in enumerate(slices) if matches(found, problem)]
            if places:
                described = self._class_described(
                    [slices[place] for place in places], samples, problem, assistants, texts
                )
                for place, found in zip(places, described, strict=True):
                    named[place] = found
        return tuple(named)

    def words_for(
        self, class_name: str, side: Side | None, assistants: Assistants = NO_ASSISTANTS
    ) -> ClassWords:
        """Return the words that are tried for a class; of samples that lack it nothing is known but what is said of all images.

        Built-in words that the text side does not know are left out; what people give and a language model proposes stays.
        """
        built_in, trust = built_in_vocabulary(), assistants.trust
        noun = noun_of(class_name)
        general = ClassWords(adjectives=built_in.adjectives, places=built_in.places)
        if side is Side.ABSENT:
            return self._replace(known_words(general, trust)).joined(self._given(class_name))
        found = ClassWords(nouns=hyponyms(noun, most=self.n_kinds, commonest_first=True))
        kinds = known_words(found, trust)
        of_kind = general.joined(words_of_ancestors(noun, built_in.by_ancestor))
        built = self._replace(known_words(of_kind, trust))
        proposed = (
            proposed_words(noun, assistants.propose, self.n_proposed)
            if assistants.propose is not None and self.n_proposed
            else ClassWords()
        )
        return without_own_words(built.joined(self._given(class_name), kinds, proposed), noun)

    def _replace(self, words: ClassWords) -> ClassWords:
        return ClassWords(
            adjectives=words.adjectives if self.adjectives is None else self.adjectives,
            nouns=words.nouns,
            places=words.places if self.places is None else self.places,
        )

    def _given(self, class_name: str) -> ClassWords:
        given = {name: _as_class_words(words, name) for name, words in self.class_words.items()}
        noun = noun_of(class_name)
        above = {lemma(name): words for name, words in given.items() if name != class_name}
        return given.get(class_name, ClassWords()).joined(words_of_ancestors(noun, above))

    def _class_described(
        self,
        slices: Sequence[FailureSlice],
        samples: SampleSet,
        problem: ClassProblem,
        assistants: Assistants,
        texts: TextSide,
    ) -> Iterable[FailureSlice]:
        view = ClassView.of(samples, problem, self.space, max_samples=self.max_samples)
        words = self.words_for(problem.class_name, problem.side, assistants)
        sayable = sayable_words(words, assistants.says)
        for found in slices:
            seen = SliceView.of(found.rule, samples, view, self.space) if len(view.rows) else None
            if seen is None:
                yield found
                continue
            witnesses = Witnesses(
                rule=found.rule,
                samples=samples,
                seen=seen,
                assistants=assistants,
                n_captioned=self.n_captioned,
                n_asked=self.n_asked,
            )
            yield self._describe(found, words, seen, witnesses, texts, sayable)

    def _describe(
        self,
        found: FailureSlice,
        words: ClassWords,
        seen: SliceView,
        witnesses: Witnesses,
        texts: TextSide,
        sayable: frozenset[str] | None,
    ) -> FailureSlice:
        plain = plain_caption(found.class_name, is_absent=found.side is Side.ABSENT)
        if witnesses.captions and self.n_caption_words:
            said = words_in_sentences(
                witnesses.captions, found.class_name, most=self.n_caption_words
            )
            words = without_own_words(words.joined(said), noun_of(found.class_name))
        hard, easy = self._best(
            plain, words, Judge(seen, texts, plain, self.ranking, self.chunk_size), sayable
        )
        naming = _Naming(
            class_name=found.class_name,
            plain=plain,
            seen=seen,
            witnesses=witnesses,
            texts=texts,
            n_nearest=self.n_nearest,
        )
        given = [
            naming.given(name, may_question=place < self.n_questioned)
            for place, name in enumerate(found.names)
        ]
        new = [
            one
            for one in hard
            if not any(_say_the_same(one.caption.contrast, name.contrast) for name in given)
        ]
        names = given + [
            naming.name(one, may_question=place < self.n_questioned - len(given))
            for place, one in enumerate(new)
        ]
        names = [name for name in names if not name.is_untrue]
        easy_names = found.easy_names or tuple(
            naming.name(one, is_easy=True, may_question=False) for one in easy
        )
        return found.model_copy(update={"names": tuple(names), "easy_names": easy_names})

    def _best(
        self, plain: Caption, words: ClassWords, judge: Judge, sayable: frozenset[str] | None
    ) -> tuple[list[Judged], list[Judged]]:
        """Return the best captions of both ends, without those that only add to a better one.

        Of the slice's own end, the best of words that were seen to be told well are kept too.
        """
        built_in = built_in_vocabulary()
        hard = Best(sign=1, most=self.n_names, longer_gain=self.longer_gain)
        easy = Best(sign=-1, most=self.n_easy_names, longer_gain=self.longer_gain)
        combined = [Best(sign=sign, most=self.n_combined) for sign in (1, -1)]
        told = Best(
            sign=1,
            most=0 if sayable is None else self.n_sayable,
            longer_gain=self.longer_gain,
            allowed=sayable,
        )
        judge.run(single_additions(plain, words, built_in), [hard, easy, told, *combined])
        if self.combinations == "all":
            longer: Iterable[Caption] = all_combinations(plain, words, built_in)
        else:
            longer = (
                pair for end in combined for pair in pairs_of([one.caption for one in end.kept])
            )
        judge.run(longer, [hard, easy, told])
        both = {one.caption.phrase: one for one in (*hard.kept, *told.kept)}
        ranked = sorted(both.values(), key=lambda one: (-hard.rank(one), one.position))
        return ranked, easy.kept


def _say_the_same(contrast: str, other: str) -> bool:
    """Return whether two contrasts mean the same; the colour of a background is not the colour of the thing."""
    return same_contrast(contrast, other) and (BACKGROUND in contrast) == (BACKGROUND in other)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Naming:
    """Makes names of captions, and completes those that a method gave itself."""

    class_name: str
    plain: Caption
    seen: SliceView
    witnesses: Witnesses
    texts: TextSide
    n_nearest: int

    def name(self, judged: Judged, *, is_easy: bool = False, may_question: bool) -> SliceName:
        caption, view = judged.caption, self.seen.view
        accuracies = view.accuracies_nearest(self.texts.embeddings([caption.phrase])[0])
        accuracy = float(accuracies[view.n_near(self.n_nearest) - 1])
        sign = -1 if is_easy else 1
        # One sample more or less on the wrong side is no disagreement.
        is_as_expected = sign * (view.accuracy - accuracy) >= -1 / view.n_near(self.n_nearest)
        claim = Claim(
            phrase=caption.phrase,
            parts=tuple(words for _, words in caption.added),
            plain_phrase=reference_phrase(self.plain, caption),
            is_easy=is_easy,
        )
        said = self.witnesses.ask(claim, may_question=may_question)
        n_true, n_told = (None, 0) if is_easy else self.witnesses.said_of(claim.parts)
        return SliceName(
            phrase=caption.phrase,
            contrast=caption.contrast,
            score=round(sign * judged.score, 6),
            describer=DESCRIBER,
            accuracy_nearest=accuracy,
            curve=view.curve(accuracies),
            witness=said.witness,
            witness_score=said.score,
            is_doubtful=judged.data * judged.direction < 0 or not is_as_expected or said.disagrees,
            n_true=n_true,
            n_told=n_told,
            title=title_of(caption, self.class_name),
        )

    def given(self, name: SliceName, *, may_question: bool) -> SliceName:
        view = self.seen.view
        accuracies = view.accuracies_nearest(self.texts.embeddings([name.phrase])[0])
        update: dict[str, object] = {}
        if name.accuracy_nearest is None:
            update["accuracy_nearest"] = float(accuracies[view.n_near(self.n_nearest) - 1])
        if not name.curve:
            update["curve"] = view.curve(accuracies)
        if not name.witness:
            claim = Claim(
                phrase=name.phrase,
                parts=tuple(name.contrast.split(", ")),
                plain_phrase=self.plain.phrase,
            )
            said = self.witnesses.ask(claim, may_question=may_question)
            update |= {
                "witness": said.witness,
                "witness_score": said.score,
                "is_doubtful": name.is_doubtful or said.disagrees,
            }
        return name.model_copy(update=update)
