"""Everything that drives TVM: the engine process, the zygote, the search."""
