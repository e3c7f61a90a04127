"""All scores in double precision, row by row: what every way of looking must agree with to the last bit."""

import numpy as np


def all_scores(rows, query):
    """Return the cosine of every row with a query; 0 for a row of zeros, NaN for one that is no embedding."""
    exact, wanted = rows.astype(np.float64), query.astype(np.float64)
    length = np.sqrt((wanted * wanted).sum())
    with np.errstate(invalid="ignore", over="ignore"):
        products, squares = (
            np.cumsum(exact * wanted, axis=1)[:, -1],
            np.cumsum(exact * exact, axis=1)[:, -1],
        )
        scores = products / (np.sqrt(np.where(squares > 0, squares, 1.0)) * length)
    scores[squares == 0] = 0.0
    scores[~np.isfinite(squares)] = np.nan
    return scores


def best(rows, query, n_wanted, within=None):
    """Return the numbers and scores of the best rows, among equals the lower number first."""
    scores = all_scores(rows, query)
    chosen = np.flatnonzero(~np.isnan(scores) & (True if within is None else within))
    order = chosen[np.lexsort((chosen, -scores[chosen]))][:n_wanted]
    return order.tolist(), scores[order].tolist()
