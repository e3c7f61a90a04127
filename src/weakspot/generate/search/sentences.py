"""Captions of clusters of failures: sentences of their captions, or of words of the vocabulary where there is no captioner."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, unit_rows
from weakspot.core.errors import ConfigError, ModelError, WeakspotError
from weakspot.core.failures import LabelHierarchy
from weakspot.generate.search.series import Sampler
from weakspot.words.captions import (
    WordedAttribute,
    built_in_attributes,
    built_in_vocabulary,
    content_words,
    counted,
    noun_of,
    with_article,
    words_of_ancestors,
)
from weakspot.words.wordnet import ancestors, lemma

DEFAULT_PROMPT = "a realistic photograph of {a class} ({parent})."
_N_SENSES = 3
_MAX_OTHERS = 200
_PLACEHOLDERS = frozenset({"a class", "class", "parent"})
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_EMPTY_BRACKET = re.compile(r"\s*\(\{parent\}\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[\n;]+|\.(?=[A-Za-z]{2})")
_SPOKEN_TEXT = """insect beetle spider crustacean mollusk worm bird fish shark reptile snake lizard turtle amphibian dinosaur dog
cat feline horse bear monkey ape rodent whale mammal animal fruit vegetable nut mushroom fungus flower tree
shrub herb grass plant beverage bread cheese cake dessert meat sauce soup dish food seafood vehicle aircraft
ship boat vessel bicycle motorcycle train truck bus weapon gun tool knife instrument machine computer telephone
camera clock lamp toy ball furniture chair table bed container bottle bag box basket cup bowl garment clothing
shoe hat jewelry fabric building house bridge fence tower structure room road mountain shore fuel device
equipment appliance disease tumor organ bone person athlete musician sport game sign book symbol mineral rock
metal"""
_SPOKEN_PHRASES = (
    "domestic animal",
    "musical instrument",
    "public transport",
    "celestial body",
    "body part",
)
_RATHER = (("plant", "food"), ("food", "animal"))
SPOKEN_KINDS = frozenset((*_SPOKEN_TEXT.split(), *_SPOKEN_PHRASES))
"""Kinds of things that people name in brackets; WordNet's own parents are often words that nobody says."""

ASSEMBLED: Final = "assembled from words that the embedder ranked"
BACKGROUND, POSITION, PLACE, STATE, LOOK = "background", "position", "place", "state", "look"
_POSITIONS = frozenset({"left", "right", "top", "bottom", "middle", "edge", "corner"})
_BACKGROUND_START, _BACKGROUND_END, _PHOTO = ("on a ", "on an "), " background", " photo"
_SPOKEN: Mapping[str, str] = {
    "size in the image": "it is {value}.",
    "number of objects": "there are {value}.",
    "lighting": "it is {wording}.",
    "weather": "it is {value}.",
    "viewpoint": "it is seen {wording}.",
    BACKGROUND: "the background is {value}.",
}
_SPOKEN_OTHERWISE: Mapping[str, str] = {
    "one": "there is one.",
    "dark": "it is dark.",
    "bright": "it is bright.",
}


def parent_of(
    class_name: str, *, other_classes: Sequence[str] = (), parents: Mapping[str, str] | None = None
) -> str | None:
    """Return what a class is a kind of, in a word that people use; None if that is not known.

    WordNet's nearest ancestor that people say is taken: a fly is an insect before it is a dipterous insect. Of a word with several
    meanings the one is chosen whose ancestors the other classes share most, and the commonest one without other classes (but the
    fruit before the tree, and the animal before its meat).

    Args:
        class_name: the class.
        other_classes: the other classes of the project.
        parents: parents that a person gave; they win.

    >>> parent_of("fly"), parent_of("crane"), parent_of("crane", other_classes=["robin", "heron"]), parent_of("qwertz")
    ('insect', 'device', 'bird', None)
    """
    if parents and class_name in parents:
        return noun_of(parents[class_name])
    own = {lemma(word) for word in content_words(noun_of(class_name))}
    for above in _meant_ancestors(class_name, other_classes):
        for spoken in (above, above.rsplit(" ", 1)[-1]):
            if spoken.lower() in SPOKEN_KINDS and lemma(spoken) not in own:
                return spoken.lower()
    return None


def _meant_ancestors(class_name: str, other_classes: Sequence[str]) -> tuple[str, ...]:
    """Return the ancestors of the meaning that fits the other classes best, nearest first."""
    noun = noun_of(class_name)
    others = [
        set(ancestors(noun_of(name))) for name in other_classes[:_MAX_OTHERS] if name != class_name
    ]
    meanings = _ancestors_by_sense(noun)
    if not meanings:
        return ()
    if not others:
        return next(
            (
                other
                for one, rather in _RATHER
                if one in meanings[0]
                for other in meanings[1:]
                if rather in other
            ),
            meanings[0],
        )
    fits = [
        sum(len(above & set(meaning)) for above in others) / len(meaning) for meaning in meanings
    ]
    return meanings[fits.index(max(fits))]


def _ancestors_by_sense(noun: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    known: set[str] = set()
    for n_senses in range(1, _N_SENSES + 1):
        fresh = tuple(above for above in ancestors(noun, n_senses=n_senses) if above not in known)
        known.update(fresh)
        if fresh:
            found.append(fresh)
    return found


def wordnet_hierarchy(
    class_names: Sequence[str], *, parents: Mapping[str, str] | None = None
) -> LabelHierarchy:
    """Return the label hierarchy that the brackets of the prompts tell: every class under what it is a kind of.

    >>> wordnet_hierarchy(["fly", "bee", "sparrow"]).parents
    {'fly': 'insect', 'bee': 'insect', 'sparrow': 'bird'}
    """
    known = {
        name: parent_of(name, other_classes=class_names, parents=parents) for name in class_names
    }
    return LabelHierarchy(
        parents={
            name: parent for name, parent in known.items() if parent is not None and parent != name
        }
    )


def baseline_prompt(
    class_name: str, *, template: str = DEFAULT_PROMPT, parent: str | None = None
) -> str:
    """Return the prompt of a class without any caption.

    Args:
        class_name: the class.
        template: `{a class}` is the class with its article, `{class}` without, `{parent}` what it is a kind of.
        parent: what it is a kind of; without one, a bracket around it goes too.

    Raises:
        ConfigError: if the template does not name the class, or names something else.

    >>> baseline_prompt("fly", parent="insect"), baseline_prompt("oat milk")
    ('a realistic photograph of a fly (insect).', 'a realistic photograph of oat milk.')
    """
    named = set(_PLACEHOLDER.findall(template))
    if named - _PLACEHOLDERS or not named & {"a class", "class"}:
        raise ConfigError(
            "The prompt must name the class, and nothing else in braces.",
            where="the setting search.prompt",
            given=template,
            fix="Write {a class} or {class}, and {parent} if you like.",
        )
    noun = noun_of(class_name)
    words = {"a class": counted(noun, noun), "class": noun, "parent": parent or ""}
    known = template if parent else _EMPTY_BRACKET.sub("", template)
    return " ".join(_PLACEHOLDER.sub(lambda found: words[found.group(1)], known).split())


def whole_prompt(baseline: str, sentences: Sequence[str]) -> str:
    """Return the baseline prompt followed by sentences.

    >>> whole_prompt("a realistic photograph of a fly (insect).", ["it is on a flower", "the background is green."])
    'a realistic photograph of a fly (insect). it is on a flower. the background is green.'
    """
    return " ".join(
        [baseline if baseline.endswith((".", "!", "?")) else f"{baseline}.", caption_of(sentences)]
    ).strip()


def caption_of(sentences: Sequence[str]) -> str:
    """Return sentences as one text.

    >>> caption_of(["it is on a flower", "it is dark"])
    'it is on a flower. it is dark.'
    """
    return " ".join(f"{sentence.rstrip('.!? ')}." for sentence in sentences)


def sentences_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a text in lower case, without their full stops, each once.

    >>> sentences_of("It is on a flower.  The background is  blurred. it is on a flower.")
    ('it is on a flower', 'the background is blurred')
    """
    pieces = (
        " ".join(piece.lower().split()).strip(" .!?,:-\"'") for piece in _SENTENCE_END.split(text)
    )
    return tuple(dict.fromkeys(piece for piece in pieces if content_words(piece)))


@dataclass(frozen=True, kw_only=True)
class WordSentence:
    """One sentence that can be said of an image, and how the embedder is asked whether it is true.

    Args:
        group: the kind of word; of each kind at most one is said.
        sentence: what is said.
        phrases: wordings for the embedder.
    """

    group: str
    sentence: str
    phrases: tuple[str, ...]


def built_in_sentences(class_name: str) -> tuple[WordSentence, ...]:
    """Return what can be said of images of a class with the built-in vocabulary.

    >>> [one.sentence for one in built_in_sentences("apple") if one.group == "background"][1:3]
    ['the background is striped.', 'the background is checked.']
    """
    noun = noun_of(class_name)
    found: dict[str, WordSentence] = {}
    attributes = (
        one for attribute in built_in_attributes() for one in _of_attribute(attribute, noun)
    )
    for one in (*attributes, *_of_vocabulary(noun)):
        found.setdefault(one.sentence, one)
    return tuple(found.values())


def _of_attribute(attribute: WordedAttribute, noun: str) -> Iterator[WordSentence]:
    for value, wordings in attribute.values.items():
        phrases = tuple(_phrase(attribute.slot, wording, noun) for wording in wordings)
        yield WordSentence(
            group=attribute.name,
            sentence=_speak(attribute, value, wordings[0]),
            phrases=phrases,
        )


def _speak(attribute: WordedAttribute, value: str, wording: str) -> str:
    if value in _SPOKEN_OTHERWISE:
        return _SPOKEN_OTHERWISE[value]
    words = with_article(wording) if attribute.slot == "look" else wording
    return _SPOKEN.get(attribute.name, "it is {wording}.").format(value=value, wording=words)


def _phrase(slot: str, wording: str, noun: str) -> str:
    if slot == "sentence":
        return wording
    if slot == "look":
        return f"{with_article(wording)} of {counted(noun, noun)}"
    if slot == "adjective":
        return f"a photo of {counted(f'{wording} {noun}', noun)}"
    return f"a photo of {counted(noun, noun)} {wording}"


def _of_vocabulary(noun: str) -> Iterator[WordSentence]:
    vocabulary = built_in_vocabulary()
    own = words_of_ancestors(noun, vocabulary.by_ancestor)
    known = {value for attribute in built_in_attributes() for value in attribute.values}
    for adjective in dict.fromkeys(vocabulary.adjectives + own.adjectives):
        if adjective not in known:
            yield WordSentence(
                group=STATE,
                sentence=f"it is {adjective}.",
                phrases=(_phrase("adjective", adjective, noun),),
            )
    for shown, look in vocabulary.looks.items():
        if shown not in known and look.endswith(_PHOTO):
            yield WordSentence(
                group=LOOK,
                sentence=f"the photo is {shown}.",
                phrases=(_phrase("look", look, noun),),
            )
    for place in dict.fromkeys(vocabulary.places + own.places):
        group, sentence = _said_of_place(place)
        yield WordSentence(group=group, sentence=sentence, phrases=(_phrase("place", place, noun),))


def _said_of_place(place: str) -> tuple[str, str]:
    if place.endswith(_BACKGROUND_END) and place.startswith(_BACKGROUND_START):
        return (
            BACKGROUND,
            f"the background is {place.removesuffix(_BACKGROUND_END).split(' ', 2)[2]}.",
        )
    return (POSITION if place.rsplit(maxsplit=1)[-1] in _POSITIONS else PLACE), f"it is {place}."


@dataclass(frozen=True, kw_only=True, eq=False)
class WordSentences:
    """Says in short sentences what sets images apart, from their embeddings alone.

    A word is judged against the other words of its kind: the direction from their mean to the word's own embedding is what it adds.
    Along this direction some images are compared with others of the same class. Of every kind of word the best is said, the
    clearest first. The texts are assembled from words; no captioner saw an image.

    Args:
        embed_texts: phrases to embeddings [m, d] of the images' space.
        class_name: what the images show.
        vocabulary: what can be said; the built-in vocabulary if None.
        most: sentences a text.
        least_contrast: how many standard errors a cluster must differ from the others for a word to be said of it.
        least_share: a word is said only if it stands out at least this much compared with the clearest one.
    """

    embed_texts: Callable[[Sequence[str]], FloatArray]
    class_name: str = "thing"
    vocabulary: tuple[WordSentence, ...] | None = None
    most: int = 5
    least_contrast: float = 3.5
    least_share: float = 0.25
    _prepared: dict[int, tuple[tuple[WordSentence, ...], DoubleArray]] = field(
        default_factory=dict, init=False, repr=False
    )

    def sentences(self, embeddings: FloatArray, others: FloatArray) -> list[str]:
        """Return what sets a cluster apart from other images of its class, the clearest first; nothing if nothing does.

        Args:
            embeddings: of the cluster [n, d].
            others: of other images of the class [m, d].
        """
        inside, outside = _finite_directions(embeddings), _finite_directions(others)
        if not len(inside) or not len(outside):
            return []
        said, directions = self._directions(inside.shape[1])
        near, far = inside @ directions.T, outside @ directions.T
        contrast = near.mean(axis=0) - far.mean(axis=0)
        spread = np.sqrt(_variance(near, far) * (1 / len(near) + 1 / len(far)))
        is_clear = contrast > self.least_contrast * np.maximum(spread, np.finfo(np.float32).eps)
        return self._choose(said, np.where(is_clear, contrast, 0.0))

    def completion(self, embeddings: FloatArray) -> list[str]:
        """Return one text an image: what sets it apart from the mean of all that are given; empty where nothing does.

        Args:
            embeddings: of images of one class [n, d]; rows that are not finite get no words.
        """
        given = np.asarray(embeddings, dtype=np.float64)
        is_known = np.isfinite(given).all(axis=1) if len(given) else np.zeros(0, dtype=np.bool_)
        texts = [""] * len(given)
        if not is_known.any():
            return texts
        said, directions = self._directions(given.shape[1])
        scores = unit_rows(given[is_known]).astype(np.float64) @ directions.T
        # A single image can be compared with nothing but the other words.
        scores = scores - scores.mean(axis=0) if len(scores) > 1 else scores
        for place, row in zip(np.flatnonzero(is_known).tolist(), scores, strict=True):
            texts[place] = " ".join(self._choose(said, row))
        return texts

    def _choose(self, said: Sequence[WordSentence], scores: DoubleArray) -> list[str]:
        best: dict[str, int] = {}
        for place in np.argsort(-scores, kind="stable").tolist():
            best.setdefault(said[place].group, place)
        ranked = [place for place in best.values() if scores[place] > 0]
        floor = self.least_share * scores[ranked[0]] if ranked else 0.0
        kept = [said[place].sentence for place in ranked if scores[place] >= floor]
        return kept[: self.most]

    def _directions(self, dimension: int) -> tuple[tuple[WordSentence, ...], DoubleArray]:
        """Return what can be said and, for each, the unit direction [m, d] from the mean of its kind to it."""
        if dimension not in self._prepared:
            said = (
                built_in_sentences(self.class_name) if self.vocabulary is None else self.vocabulary
            )
            self._prepared[dimension] = _contrasts(said, self._embed(said, dimension))
        return self._prepared[dimension]

    def _embed(self, said: Sequence[WordSentence], dimension: int) -> DoubleArray:
        phrases = [phrase for one in said for phrase in one.phrases]
        texts = np.asarray(self.embed_texts(phrases), dtype=np.float64)
        if texts.shape != (len(phrases), dimension) or not np.isfinite(texts).all():
            raise ModelError(
                "The text side does not fit the image embeddings.",
                given=f"embeddings of shape {texts.shape}",
                fix=f"It must give {dimension} finite numbers a phrase.",
            )
        ends = np.cumsum([len(one.phrases) for one in said])[:-1]
        return np.stack(
            [part.mean(axis=0) for part in np.split(unit_rows(texts).astype(np.float64), ends)]
        )


def _contrasts(
    said: Sequence[WordSentence], texts: DoubleArray
) -> tuple[tuple[WordSentence, ...], DoubleArray]:
    groups = np.array([one.group for one in said])
    added = texts.copy()
    for group in np.unique(groups):
        members = groups == group
        added[members] -= texts[members].mean(axis=0)
    is_said = np.linalg.norm(added, axis=1) > np.finfo(np.float32).eps
    kept = tuple(one for one, keep in zip(said, is_said.tolist(), strict=True) if keep)
    return kept, unit_rows(added[is_said]).astype(np.float64)


def _finite_directions(embeddings: FloatArray) -> DoubleArray:
    given = np.asarray(embeddings, dtype=np.float64)
    return unit_rows(given[np.isfinite(given).all(axis=1)]).astype(np.float64)


def _variance(first: DoubleArray, second: DoubleArray) -> DoubleArray:
    """Return the pooled variance [m] within two sets of scores [n, m]."""
    within = ((first - first.mean(axis=0)) ** 2).sum(axis=0) + (
        (second - second.mean(axis=0)) ** 2
    ).sum(axis=0)
    return np.asarray(within / max(1, len(first) + len(second) - 2))


Plausibility = Callable[[Sequence[str], Sequence[str]], DoubleArray]
"""How well prompts fit images: [n, m] for n keys and m prompts; only differences between images count."""


MAX_IMAGES = 32
"""Most images of a cluster, and as many right ones, that are captioned and scored."""
MAX_CANDIDATES = 24
"""Most sentences whose likelihood is asked for; those are taken that set the cluster apart by their embeddings."""
MIN_FIRST, MIN_FURTHER, MIN_OVERALL = 1.0, 2.0, 1.0
"""How many standard errors the first sentence, and every further one, must fit the cluster better than the right images; and how
many every sentence must fit all failures better."""


ShownImages = tuple[Sequence[str], Sequence[str], Sequence[str]]
"""The images that a caption is judged by: the cluster's, all failures, and right ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionWriter:
    """Captions clusters of failures of one class.

    The paper adds up to K sentences, each the likeliest for the cluster. What is true of every image of the class is then as
    likely as what the failures alone share. Here a sentence counts by how much likelier it is for the cluster than for images
    that the classifier got right, in standard errors, and one that does not set the cluster apart is not added. A cluster was
    formed by looks and so shares some by construction; a sentence must therefore fit all failures better than right images too.

    Args:
        sampler: gives captions, likelihoods and embeddings.
        baseline: the prompt that captions go on from.
        right_keys: images of the baseline that did not fail, to compare with.
        avoided: labels that failures were taken for; a sentence that names one would ask for an image of that label.
        most_sentences: most sentences in a caption.
        most_images: see `MAX_IMAGES`.
        most_candidates: see `MAX_CANDIDATES`.
    """

    sampler: Sampler
    baseline: str
    right_keys: tuple[str, ...]
    avoided: tuple[str, ...] = ()
    most_sentences: int = 4
    most_images: int = MAX_IMAGES
    most_candidates: int = MAX_CANDIDATES

    def caption(
        self, keys: Sequence[str], all_failures: Sequence[str] = ()
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the sentences that set a cluster apart in the order in which they were chosen, and those left out for naming a label.

        Args:
            keys: its images.
            all_failures: all failures that are still to be explained, the cluster's or not.
        """
        most = self.most_images
        every = (keys, all_failures or keys, self.right_keys)
        inside, failed, right = every
        shown = (inside[:most], failed[:most], right[:most])
        said = [sentences_of(text) for text in self.said(shown[0])]
        counts = Counter(sentence for sentences in said for sentence in sentences)
        left_out = tuple(sentence for sentence in counts if _names_any(sentence, self.avoided))
        candidates = sorted(
            counts.keys() - set(left_out), key=lambda sentence: (-counts[sentence], sentence)
        )
        by_embeddings = self._by_embeddings if self._has_texts() else None
        if by_embeddings is not None and len(candidates) > self.most_candidates:
            scores, _ = self._contrasts((), candidates, every, by_embeddings)
            candidates = [candidates[place] for place in np.argsort(-scores, kind="stable")]
        candidates = candidates[: self.most_candidates]
        if self.sampler.likelihoods(keys[:1], [self.baseline]) is not None:
            return self._combine(candidates, shown, self._by_likelihood), left_out
        if by_embeddings is not None:
            return self._combine(candidates, every, by_embeddings), left_out
        return self._combine(candidates, shown, self._by_counts), left_out

    def said(self, keys: Sequence[str]) -> list[str]:
        """Return what the captions of images add to the baseline.

        Captions from words say what sets an image apart from the others that are asked about; right ones are then asked about too.
        """
        others = self.right_keys if self.sampler.caption_source == ASSEMBLED else ()
        return self.sampler.completions([*keys, *others], beginning=self.baseline)[: len(keys)]

    def _combine(
        self, candidates: Sequence[str], images: ShownImages, plausibility: Plausibility
    ) -> tuple[str, ...]:
        """Add sentence by sentence, each time the one that sets the cluster apart most, while one does."""
        chosen: tuple[str, ...] = ()
        left = list(candidates)
        while left and len(chosen) < self.most_sentences:
            scores, overall = self._contrasts(chosen, left, images, plausibility)
            scores = np.where(overall >= MIN_OVERALL, scores, -np.inf)
            best = int(np.argmax(scores))
            if scores[best] < (MIN_FURTHER if chosen else MIN_FIRST):
                break
            chosen = (*chosen, left.pop(best))
        return chosen

    def _contrasts(
        self,
        chosen: tuple[str, ...],
        added: Sequence[str],
        images: ShownImages,
        plausibility: Plausibility,
    ) -> tuple[DoubleArray, DoubleArray]:
        """Return how clearly each added sentence sets the cluster, and all failures, apart from right images [m], [m]."""
        keys = list(dict.fromkeys(key for part in images for key in part))
        rows = {key: row for row, key in enumerate(keys)}
        gains = self._gains(chosen, added, keys, plausibility)
        inside, failed, right = ([rows[key] for key in part] for part in images)
        return contrasts(gains[inside], gains[right]), contrasts(gains[failed], gains[right])

    def _gains(
        self,
        chosen: tuple[str, ...],
        added: Sequence[str],
        keys: list[str],
        plausibility: Plausibility,
    ) -> DoubleArray:
        """Return how much each added sentence changes the plausibility of the caption [n, m]."""
        prompts = [whole_prompt(self.baseline, (*chosen, sentence)) for sentence in added]
        scores = plausibility(keys, [whole_prompt(self.baseline, chosen), *prompts])
        return scores[:, 1:] - scores[:, :1]

    def _has_texts(self) -> bool:
        try:
            self.sampler.embed_texts([self.baseline])
        except WeakspotError:
            return False
        return True

    def _by_likelihood(self, keys: Sequence[str], prompts: Sequence[str]) -> DoubleArray:
        return _finite_scores(self.sampler.likelihoods(keys, prompts))

    def _by_embeddings(self, keys: Sequence[str], prompts: Sequence[str]) -> DoubleArray:
        return _finite_scores(self.sampler.embeddings(keys) @ self.sampler.embed_texts(prompts).T)

    def _by_counts(self, keys: Sequence[str], prompts: Sequence[str]) -> DoubleArray:
        said = [set(sentences_of(text)) for text in self.said(keys)]
        wanted = [set(sentences_of(prompt)) for prompt in prompts]
        return np.array(
            [[len(own & named) for named in wanted] for own in said], dtype=np.float64
        ).reshape(len(said), len(wanted))


def contrasts(inside: DoubleArray, outside: DoubleArray) -> DoubleArray:
    """Return for each column by how many standard errors the rows of one group lie above those of another [m].

    The two groups are taken to vary alike, so that a cluster of one image can be compared too. Without another group the mean of
    the one is returned.

    >>> contrasts(np.array([[1.0], [0.9]]), np.array([[0.0], [0.1]])).round(1).tolist()
    [12.7]
    """
    if not len(inside) or not len(outside):
        return inside.mean(axis=0) if len(inside) else np.zeros(inside.shape[1])
    variance = _variance(inside, outside)
    floor = 1e-6 * max(float(np.abs(inside).max()), float(np.abs(outside).max()), 1e-9)
    errors = np.sqrt(variance * (1 / len(inside) + 1 / len(outside))) + floor
    return np.asarray((inside.mean(axis=0) - outside.mean(axis=0)) / errors)


def _finite_scores(scores: AnyArray | None) -> DoubleArray:
    """Return scores without NaN and infinities: what a captioner cannot say counts as the least likely thing that it said."""
    values = np.asarray(scores, dtype=np.float64)
    known = values[np.isfinite(values)]
    return np.where(np.isfinite(values), values, known.min() if len(known) else 0.0)


def _names_any(sentence: str, labels: Sequence[str]) -> bool:
    said = " ".join(lemma(word) for word in content_words(sentence, with_carriers=True))
    names = (
        " ".join(lemma(word) for word in content_words(noun_of(label), with_carriers=True))
        for label in labels
    )
    return any(name and f" {name} " in f" {said} " for name in names)
