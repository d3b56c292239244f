"""Runs functions in threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence


def run_in_threads(functions: Sequence[Callable[[], object]]) -> None:
    """Runs each in a thread of its own; raises the first of their errors, or that one hangs."""
    errors: list[BaseException] = []

    def guarded(function: Callable[[], object]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
