"""Architectures, their named cuts, cutting, and the checkpoint store."""
