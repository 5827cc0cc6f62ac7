"""Arrays of frozen dataclasses that nobody can change by mistake."""

from __future__ import annotations

import numpy as np


def read_only(instance: object, *names: str) -> None:
    """Replaces attributes of a (frozen) dataclass by read-only views of what was given; nothing is copied."""
    for name in names:
        view = np.asarray(getattr(instance, name)).view()
        view.setflags(write=False)
        object.__setattr__(instance, name, view)
