"""Arguments of a constructor that passes all of them on."""

from __future__ import annotations

from typing import Any

__all__ = ["arguments"]


def arguments(names: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``__init__`` among its local names, which `locals` gives."""
    return {name: value for name, value in names.items() if name not in ("self", "__class__")}
