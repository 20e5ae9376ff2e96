"""Cost models as research: the data set, training on it, and how models are judged."""
