"""Measures of a stitched or an uncut network."""
