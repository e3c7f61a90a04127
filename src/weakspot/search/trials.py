"""Series of pictures as records, corrected together."""

from collections.abc import Sequence
from math import isfinite

from numpy import log

from weakspot.core.evidence import Interval, Share
from weakspot.search.records import CaptionTrial, Contrast, StoppedBecause
from weakspot.search.sequential import contrast_intervals, discoveries, discovery_rates, log_evidence, rate_interval
from weakspot.search.series import PictureSeries


def caption_trials(
    baseline: PictureSeries, captions: Sequence[PictureSeries], *, alpha: float, most: int
) -> tuple[CaptionTrial, ...]:
    """Return the baseline and every caption as records.

    The intervals of proven captions are wider than those of others: of all proven captions, at most a share of `alpha` is missed
    by the lower ends on average, and as many by the upper ones (e-BY). A caption is proven exactly if the lower end of its
    difference is above 0 there.

    Args:
        baseline: the prompt without a caption.
        captions: what was tried.
        alpha: false discovery rate.
        most: how many captions could have been tried.
    """
    drawn = [one for one in captions if one.n_pictures]
    counts = (baseline.failures, baseline.n_pictures)
    logs = {one.prompt: log_evidence(one.failures, one.n_pictures, *counts) for one in drawn}
    rates = dict(zip(logs, discovery_rates(list(logs.values()), most=most), strict=True))
    proven = dict(zip(logs, discoveries(list(logs.values()), alpha=alpha, most=most), strict=True))
    n_proven = sum(proven.values())
    trials = [_record(baseline, level=1.0 - alpha)]
    for one in captions:
        is_proven = bool(proven.get(one.prompt, False))
        record = _record(one, level=1.0 - 2.0 * alpha * n_proven / most if is_proven else 1.0 - alpha, baseline=baseline)
        q_value, log10_e_value = float(rates.get(one.prompt, 1.0)), logs.get(one.prompt, 0.0) / float(log(10.0))
        update = {"log10_e_value": log10_e_value, "q_value": q_value, "is_proven": is_proven}
        trials.append(record.model_copy(update=update))
    return tuple(trials)


def _record(series: PictureSeries, *, level: float, baseline: PictureSeries | None = None) -> CaptionTrial:
    low, high = rate_interval(series.failures, series.n_pictures, level=level)
    value = series.failures / series.n_pictures if series.n_pictures else 0.0
    difference, ratio = _contrasts(series, baseline, level=level)
    return CaptionTrial(
        caption=series.caption,
        prompt=series.prompt,
        step=series.step,
        n_asked=series.n_asked,
        rejected=dict(series.rejected.most_common()),
        rate=Share(count=series.failures, total=series.n_pictures, value=value, interval=Interval(low=low, high=high, level=level)),
        all_failures=sum(one.is_any_failure for one in series.pictures),
        target_failures=series.target_failures,
        difference=difference,
        ratio=ratio,
        stopped_because=series.stopped or StoppedBecause.BUDGET,
        wrong_labels=dict(series.wrong_labels.most_common()),
        note=series.note,
    )


def _contrasts(series: PictureSeries, baseline: PictureSeries | None, *, level: float) -> tuple[Contrast | None, Contrast | None]:
    if baseline is None or not series.n_pictures or not baseline.n_pictures:
        return None, None
    rate, other = series.failures / series.n_pictures, baseline.failures / baseline.n_pictures
    (low, high), (least, largest) = contrast_intervals(
        (series.failures, series.n_pictures), (baseline.failures, baseline.n_pictures), level=level
    )
    return (
        Contrast(value=rate - other, low=low, high=high, level=level),
        Contrast(value=rate / other if other else None, low=least, high=largest if isfinite(largest) else None, level=level),
    )
