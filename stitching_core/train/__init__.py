"""Training: base models, and stitches in lock-step blocks."""
