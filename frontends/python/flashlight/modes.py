"""Modes of the program (`TorchDispatchMode`): what their handlers call is captured in the place of the
operators they take.

torch hides those calls from every dispatch key above Python's, the tracer's too. While a program is
captured, each mode that it enters, and those around it, get a handler that shows them.
"""

from __future__ import annotations

import threading
import types

from torch.utils import _python_dispatch

from flashlight import _flashlight

_here = threading.local()
_push_mode = _python_dispatch._push_mode


class RecordedModes:
    """Modes of this thread, until the end of the `with` block."""

    def __enter__(self) -> None:
        self.modes: list = []
        self.before = getattr(_here, "modes", None)
        _here.modes = self
        for mode in _python_dispatch._get_current_dispatch_mode_stack():
            self.add(mode)

    def __exit__(self, *_) -> None:
        _here.modes = self.before
        for mode in self.modes:
            del mode.__torch_dispatch__

    def add(self, mode) -> None:
        if mode.is_infra_mode() or "__torch_dispatch__" in vars(mode):
            return
        handler = mode.__torch_dispatch__

        def dispatch(_, *arguments):
            with _flashlight.ModeHandler():
                return handler(*arguments)

        mode.__torch_dispatch__ = types.MethodType(dispatch, mode)
        self.modes.append(mode)


def _push_recorded(mode) -> None:
    if (modes := getattr(_here, "modes", None)) is not None:
        modes.add(mode)
    _push_mode(mode)


_python_dispatch._push_mode = _push_recorded
