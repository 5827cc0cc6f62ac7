"""The science of model stitching, in pure torch: data, networks and their cuts, stitches, training, measures.

Nothing here imports ray, mlflow, optuna, hydra or polars, and nothing prints. This file stays empty of imports so that
``stitching_core.record`` can be read without torch.
"""
