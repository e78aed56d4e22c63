"""Losses: what a model is asked to make small. Each knows its gradients and its best constant."""

from __future__ import annotations

from arboost.losses.pointwise import LOSSES, Loss, Target

__all__ = ["LOSSES", "Loss", "Target"]
