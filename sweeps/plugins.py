"""A user's own architectures and data sources: plain Python files that fill the registries.

The text of a plugin travels to the workers, so that a cluster needs no copy of the file. It is part of every id that it
may have an effect on: when a plugin is edited, the sweep's cells are computed anew.
Modules of yours that a plugin imports neither travel nor count: keep it in one file, or raise Architecture.version.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sys
import types
from dataclasses import dataclass
from pathlib import Path

from stitching_core.errors import InputError
from stitching_core.models.architectures import ARCHITECTURES
from stitching_core.spec import digest


@dataclass(frozen=True)
class Plugin:
    """One file: its path, for messages, and its text."""

    path: str
    text: str


def read_plugins(paths: list[str]) -> tuple[Plugin, ...]:
    """Reads the files.

    Raises:
        InputError: one can't be read.
    """
    plugins = []
    for path in paths:
        try:
            plugins.append(Plugin(path, Path(path).expanduser().read_text()))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"plugins: {path!r} can't be read ({error})") from None
    return tuple(plugins)


def activate(plugins: tuple[Plugin, ...]) -> None:
    """Runs each plugin once in this process.

    Raises:
        InputError: a plugin raises; the message has its file, line and error.
    """
    for plugin in plugins:
        code = hashlib.sha256(plugin.text.encode()).hexdigest()[:16]
        name = f"stitching_plugin_{code}"
        if name in sys.modules:
            continue
        module = types.ModuleType(name)
        module.__file__ = plugin.path
        sys.modules[name] = module
        known = dict(ARCHITECTURES)
        try:
            exec(compile(plugin.text, plugin.path, "exec", dont_inherit=True), module.__dict__)
        except (Exception, SystemExit) as error:  # whatever the user's file raises is bad input
            del sys.modules[name]
            trace, line = error.__traceback__, str(getattr(error, "lineno", None) or "?")
            while trace is not None:
                if trace.tb_frame.f_code.co_filename == plugin.path:
                    line = str(trace.tb_lineno)
                trace = trace.tb_next
            raise InputError(f"plugins: {plugin.path!r}, line {line}: {type(error).__name__}: {error}") from None
        for key, entry in list(ARCHITECTURES.items()):
            if known.get(key) is not entry:  # what its code computes decides results, so its text is its version
                ARCHITECTURES[key] = dataclasses.replace(entry, version=f"{entry.version}+{code}")


def data_hash(fingerprint: str, plugins: tuple[Plugin, ...]) -> str:
    """The source's content hash, with the plugins' texts in it: they may have added a variant or a stitch."""
    return digest([fingerprint, [plugin.text for plugin in plugins]]) if plugins else fingerprint
