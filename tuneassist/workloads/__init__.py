"""What can be tuned: the catalogue, operator specs, and their TVM and PyTorch forms."""
