"""Runs sweeps: the only importer of ray, optuna and hydra, and the only writer of MLflow."""
