"""The terminal app: a viewer of the engine's events and of the store."""
