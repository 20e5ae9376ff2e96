"""What leaves the store and what enters it: exports, imports, and putting the best schedule to work."""
