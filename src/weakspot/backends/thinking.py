"""What models that think aloud say after they have thought."""

import re

from weakspot.core.errors import ModelError

_NAMES = "think|thinking|thought|reasoning|reflection"
_OPENED = rf"(?:<(?:{_NAMES})>|\[THINK\]|◁think▷)"
_CLOSED = rf"(?:</(?:{_NAMES})>|\[/THINK\]|◁/think▷)"
# Where the chat's own form opens the thought, only its end stands in the answer.
_THOUGHT = re.compile(rf".*{_CLOSED}", re.DOTALL | re.IGNORECASE)
_WITHOUT_END = re.compile(rf"\s*{_OPENED}.*", re.DOTALL | re.IGNORECASE)


def without_thinking(text: str) -> str:
    r"""Return a model's answer without the thoughts before it; empty if it was cut off while it thought.

    >>> without_thinking("<think>Apples are often red. Is it?</think>\n\ngreen")
    'green'
    >>> without_thinking("Is it ripe? I think so.</think>green"), without_thinking("<think>Well, the apple")
    ('green', '')
    >>> without_thinking("a thinking man")
    'a thinking man'
    """
    spoken, n_thoughts = _THOUGHT.subn("", text, count=1)
    spoken = spoken.lstrip() if n_thoughts else spoken
    return "" if _WITHOUT_END.fullmatch(spoken) else spoken


def spoken_answer(text: str, *, where: str) -> str:
    """Return a local model's answer without the thoughts before it.

    Raises:
        ModelError: if there are only thoughts.
    """
    spoken = without_thinking(text)
    if text.strip() and not spoken.strip():
        raise ModelError(
            "The model's answer was cut off while it was still thinking.",
            where=where,
            given=text[-80:],
            fix="Raise max_new_tokens, or choose a model that answers at once.",
        )
    return spoken
