"""Screens, one a module; each is imported when it is first opened."""
