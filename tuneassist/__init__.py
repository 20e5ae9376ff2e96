"""A terminal tuning assistant for tensor programs."""

__version__ = "0.1.0"
