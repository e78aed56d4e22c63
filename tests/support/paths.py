"""Folders of the checkout."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
DOCS = ROOT / "docs"
MODELS = TESTS / "models"
