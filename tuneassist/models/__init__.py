"""Whole models: built-in networks, model files, and the tasks that Relax makes of them."""
