"""Conformance checks: what every part of a role must hold, whoever wrote it.

Each takes a factory, a callable that builds a new part, never a part. `checks_for(role)` gives them one by one, for
parametrised tests; `checks_of(package)` all of everything that a package has registered; `check_discoverer(factory)` and its
siblings run all of a role.
"""

from weakspot.testing.checks.catalogue import (
    check_captioner,
    check_classifier,
    check_describer,
    check_discoverer,
    check_embedder,
    check_engine,
    check_image_generator,
    check_question_answerer,
    check_repairer,
    check_rule,
    check_segmenter,
    check_text_generator,
    check_verifier,
    checks_for,
    checks_of,
    needed_arguments,
)
from weakspot.testing.checks.expectation import Check, ConformanceError, Factory

__all__ = [
    "Check",
    "ConformanceError",
    "Factory",
    "check_captioner",
    "check_classifier",
    "check_describer",
    "check_discoverer",
    "check_embedder",
    "check_engine",
    "check_image_generator",
    "check_question_answerer",
    "check_repairer",
    "check_rule",
    "check_segmenter",
    "check_text_generator",
    "check_verifier",
    "checks_for",
    "checks_of",
    "needed_arguments",
]
