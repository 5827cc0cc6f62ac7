"""YAML only: what to run. The folder is a package so that an installed copy finds its files."""
