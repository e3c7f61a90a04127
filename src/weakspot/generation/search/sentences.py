"""Writes the caption of a cluster of failures: sentences of its images' captions, combined while they set the cluster apart."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray
from weakspot.core.errors import WeakspotError
from weakspot.generation.search.prompts import sentences_of, whole_prompt
from weakspot.generation.search.sampling import Sampler
from weakspot.generation.search.word_sentences import ASSEMBLED
from weakspot.lexicon.captions import content_words, noun_of
from weakspot.lexicon.wordnet import lemma

Plausibility = Callable[[Sequence[str], Sequence[str]], DoubleArray]
"""How well prompts fit images: [n, m] for n keys and m prompts; only differences between images count."""


@dataclass(frozen=True, kw_only=True)
class CaptionEffort:
    """How much is asked of the captioner for one cluster.

    Args:
        most_sentences: most sentences in a caption.
        most_images: most images of a cluster, and as many right ones, that are captioned and scored.
        most_candidates: most sentences whose likelihood is asked for; those are taken that set the cluster apart by their embeddings.
        least_first: how many standard errors the first sentence must fit the cluster better than the right images.
        least_further: the same for every further sentence.
        least_overall: how many standard errors every sentence must fit all failures better than the right images.
    """

    most_sentences: int = 4
    most_images: int = 32
    most_candidates: int = 24
    least_first: float = 1.0
    least_further: float = 2.0
    least_overall: float = 1.0


@dataclass(frozen=True, kw_only=True)
class ClusterCaption:
    """What a cluster's images share and right images lack.

    Args:
        sentences: in the order in which they were chosen; none if nothing sets the cluster apart.
        left_out: sentences that name a label which failures were taken for.
    """

    sentences: tuple[str, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShownImages:
    """The images that a caption is judged by: the cluster's, all failures, and right ones."""

    inside: tuple[str, ...]
    failed: tuple[str, ...]
    right: tuple[str, ...]


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
        effort: how much is asked of the captioner.
    """

    sampler: Sampler
    baseline: str
    right_keys: tuple[str, ...]
    avoided: tuple[str, ...] = ()
    effort: CaptionEffort = CaptionEffort()

    def caption(self, keys: Sequence[str], all_failures: Sequence[str] = ()) -> ClusterCaption:
        """Return the caption of a cluster.

        Args:
            keys: its images.
            all_failures: all failures that are still to be explained, the cluster's or not.
        """
        most = self.effort.most_images
        shown = ShownImages(
            inside=tuple(keys[:most]),
            failed=tuple(all_failures[:most]) or tuple(keys[:most]),
            right=self.right_keys[:most],
        )
        said = [sentences_of(text) for text in self.said(shown.inside)]
        counts = Counter(sentence for sentences in said for sentence in sentences)
        left_out = tuple(sentence for sentence in counts if _names_any(sentence, self.avoided))
        candidates = sorted(
            counts.keys() - set(left_out), key=lambda sentence: (-counts[sentence], sentence)
        )
        by_embeddings = self._by_embeddings if self._has_texts() else None
        every = ShownImages(
            inside=tuple(keys), failed=tuple(all_failures) or tuple(keys), right=self.right_keys
        )
        if by_embeddings is not None and len(candidates) > self.effort.most_candidates:
            scores, _ = self._contrasts((), candidates, every, by_embeddings)
            candidates = [candidates[place] for place in np.argsort(-scores, kind="stable")]
        candidates = candidates[: self.effort.most_candidates]
        if self.sampler.likelihoods(keys[:1], [self.baseline]) is not None:
            return ClusterCaption(
                sentences=self._combine(candidates, shown, self._by_likelihood), left_out=left_out
            )
        if by_embeddings is not None:
            return ClusterCaption(
                sentences=self._combine(candidates, every, by_embeddings), left_out=left_out
            )
        return ClusterCaption(
            sentences=self._combine(candidates, shown, self._by_counts), left_out=left_out
        )

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
        while left and len(chosen) < self.effort.most_sentences:
            scores, overall = self._contrasts(chosen, left, images, plausibility)
            scores = np.where(overall >= self.effort.least_overall, scores, -np.inf)
            best = int(np.argmax(scores))
            if scores[best] < (self.effort.least_further if chosen else self.effort.least_first):
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
        keys = list(dict.fromkeys((*images.inside, *images.failed, *images.right)))
        rows = {key: row for row, key in enumerate(keys)}
        gains = self._gains(chosen, added, keys, plausibility)
        inside, failed, right = (
            [rows[key] for key in part] for part in (images.inside, images.failed, images.right)
        )
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
        return _finite(self.sampler.likelihoods(keys, prompts))

    def _by_embeddings(self, keys: Sequence[str], prompts: Sequence[str]) -> DoubleArray:
        return _finite(self.sampler.embeddings(keys) @ self.sampler.embed_texts(prompts).T)

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
    squares = ((inside - inside.mean(axis=0)) ** 2).sum(axis=0) + (
        (outside - outside.mean(axis=0)) ** 2
    ).sum(axis=0)
    variance = squares / max(len(inside) + len(outside) - 2, 1)
    floor = 1e-6 * max(float(np.abs(inside).max()), float(np.abs(outside).max()), 1e-9)
    errors = np.sqrt(variance * (1 / len(inside) + 1 / len(outside))) + floor
    return np.asarray((inside.mean(axis=0) - outside.mean(axis=0)) / errors)


def _finite(scores: AnyArray | None) -> DoubleArray:
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
