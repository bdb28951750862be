# Runs in a Python process that has loaded LibTorch, in a namespace of its own: tells the library
# where the program calls modules, and what their parameters are called. LIBRARY is its path; let_pass
# is that of flashlight/higher_order.py.
import atexit
import ctypes
import importlib.machinery
import inspect
import os
import sys

PARAMETER, BUFFER, ARGUMENT = range(3)
library = ctypes.PyDLL(LIBRARY)
library.flashlight_trace_key.restype = ctypes.c_char_p
library.flashlight_remark.argtypes = [ctypes.c_char_p]
library.flashlight_name.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
library.flashlight_result.argtypes = [ctypes.c_void_p]
library.flashlight_module.argtypes = [ctypes.py_object, ctypes.c_char_p]
library.flashlight_wrap_calls.argtypes = [ctypes.py_object] * 3 + [ctypes.c_char_p]


def is_tensor(value):
    return isinstance(value, sys.modules["torch"].Tensor)


def before(module, args, kwargs):
    """A module is called from outside of all modules."""
    if library.flashlight_done():
        sys.modules["torch"].nn.Module.__call__ = original
    elif library.flashlight_forward_begins(module.training):
        for name, inner in module.named_modules():
            library.flashlight_module(inner, name.encode())
        for name, tensor in module.named_parameters(remove_duplicate=False):
            library.flashlight_name(tensor._cdata, name.encode(), PARAMETER)
        for name, tensor in module.named_buffers(remove_duplicate=False):
            library.flashlight_name(tensor._cdata, name.encode(), BUFFER)
        for name, value in arguments(module, args, kwargs):
            if is_tensor(value) and not (value.requires_grad and value.is_leaf):
                library.flashlight_name(value._cdata, name.encode(), ARGUMENT)


def arguments(module, args, kwargs):
    try:
        bound = inspect.signature(module.forward).bind(*args, **(kwargs or {})).arguments
    except (TypeError, ValueError):
        return
    for name, value in bound.items():
        if isinstance(value, dict):
            yield from value.items()
        elif isinstance(value, (tuple, list)):
            yield from ((f"{name}.{i}", item) for i, item in enumerate(value))
        else:
            yield name, value


def after(result, returned):
    """It returned `result`, or threw."""
    if returned:
        for tensor in tensors(result):
            library.flashlight_result(tensor._cdata)
    library.flashlight_forward_ends(returned)


def tensors(value):
    if is_tensor(value):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors(getattr(value, name))


class AfterImport:
    """Calls `act` with a module of torch, once it is there. What fails then is told, not thrown into the program's
    `import torch`."""

    def __init__(self, name, act):
        self.name, self.act = name, act
        if name in sys.modules:
            self.try_to_act(sys.modules[name])
        else:
            sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self.try_to_act(module)

        spec.loader.exec_module = exec_module
        return spec

    def try_to_act(self, module):
        try:
            self.act(module)
        except Exception as error:
            library.flashlight_remark(f"of {self.name}: {type(error).__name__}: {error}".encode())


def wrap(module):
    global original
    original = module.Module.__call__
    folder = os.path.dirname(sys.modules["torch"].__file__) + os.sep
    library.flashlight_wrap_calls(module.Module, before, after, folder.encode())


AfterImport("torch._ops", lambda ops: let_pass(ops, library.flashlight_trace_key().decode()))
AfterImport("torch.nn.modules.module", wrap)
atexit.register(library.flashlight_finish)
