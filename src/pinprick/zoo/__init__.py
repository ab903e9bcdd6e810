"""Where models come from: one file per source."""

from pinprick.zoo.registry import card_of, load_model

__all__ = ["card_of", "load_model"]
