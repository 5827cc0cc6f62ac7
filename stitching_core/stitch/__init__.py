"""Stitch layers and how two shapes are brought together."""
