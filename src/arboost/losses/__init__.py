"""Losses, the objectives of training; links from scores to predictions; metrics and curves."""

from arboost.losses.base import Loss, Target
from arboost.losses.losses import CLASSIFICATION, REGRESSION, CustomLoss, make

__all__ = ["CLASSIFICATION", "REGRESSION", "CustomLoss", "Loss", "Target", "make"]
