"""Runs a script and writes the report on it: `python -m torch_xla.debug.report [-o report.html] script.py [args]`."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import types
from collections.abc import Sequence
from pathlib import Path

from torch_xla import debug


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m torch_xla.debug.report", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), help="default: report.html")
    parser.add_argument("script", type=Path)
    parser.add_argument("args", nargs=argparse.REMAINDER, help="arguments of the script")
    options = parser.parse_args(arguments)
    # As the interpreter does for `python script.py args`.
    sys.argv = [str(options.script), *options.args]
    sys.path[0] = str(options.script.resolve().parent)
    debug.start_recording()
    try:
        runpy.run_path(str(options.script), run_name="__main__")
    finally:
        # A script that fails, or ends in sys.exit, has its report too.
        debug.stop_recording()
        debug.report(options.output, title=options.script.name)
        print(f"report: {options.output.resolve()}", file=sys.stderr)


class _Report(types.ModuleType):
    """Importing this module gives the package an attribute `report`, which must remain the function of that name."""

    def __call__(self, path: str | os.PathLike[str], title: str = "") -> None:
        from . import _page

        _page.write(path, title)


if __name__ == "__main__":
    main()
else:
    sys.modules[__name__].__class__ = _Report
