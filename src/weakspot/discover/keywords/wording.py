"""What is said of a class beside its slices."""

from collections.abc import Mapping, Sequence

from weakspot.discover.keywords.scoring import CaptionContrast, Suggestion

N_TOLD = 3


def nothing_good(suggested: Sequence[Suggestion], n_failed: int) -> str:
    least = min((one.p_value for one in suggested if one.p_value is not None), default=1.0)
    return (
        f"None of {len(suggested)} keywords tells the {n_failed} failures from the other samples "
        f"(smallest p = {least:.2g}, each keyword taken alone)."
    )


def seen_by_captions_only(unseen: Sequence[Suggestion], *, largest_p: float) -> list[str]:
    """Return one sentence for each of the keywords that captions tell and embeddings do not, the clearest first."""
    contrasts = {
        one.keyword: one.captions
        for one in unseen
        if one.captions is not None and one.captions.p_value <= largest_p
    }
    return [
        f"Captions of failures say {_told(keyword, contrast)} more often, but the embeddings do not show it."
        for keyword, contrast in _clearest(contrasts)
    ]


def without_text_side(
    space: str, contrasts: Mapping[str, CaptionContrast], *, largest_p: float
) -> str:
    """Return what captions alone tell, where nothing can be compared with embeddings."""
    why = f"The embeddings called {space!r} have no text side, so keywords cannot become slices."
    told = [
        _told(keyword, contrast)
        for keyword, contrast in _clearest(contrasts)
        if contrast.p_value <= largest_p
    ]
    return f"{why} Captions of failures more often say {', '.join(told)}." if told else why


def _clearest(contrasts: Mapping[str, CaptionContrast]) -> list[tuple[str, CaptionContrast]]:
    return sorted(contrasts.items(), key=lambda item: (item[1].p_value, item[0]))[:N_TOLD]


def _told(keyword: str, contrast: CaptionContrast) -> str:
    return f"{keyword!r} ({contrast.n_failed} failures, {contrast.n_right} others)"
