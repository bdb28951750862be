"""A binding of flashlight/c.h for Python by ctypes alone, as one for any language is written.

    with binding.Scope(inputs={"x": x}, parameters=dict(model.named_parameters())) as scope:
        scope.outputs["y"] = model(x)
    capture = scope.capture
    [y] = capture.replay(x)
    capture.export("model.onnx")

Flashlight's own package for Python can do more, and is not used here."""

import ctypes
import os

import torch

_c = ctypes.CDLL(os.environ["FLASHLIGHT_C_LIBRARY"])
_c.flashlight_last_error.restype = ctypes.c_char_p
_c.flashlight_string_free.argtypes = [ctypes.c_void_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3


class Error(Exception):
    pass


def _call(function, *arguments):
    if getattr(_c, "flashlight_" + function)(*arguments) != 0:
        raise Error(_c.flashlight_last_error().decode())


def _taken(text):
    value = ctypes.string_at(text).decode()
    _c.flashlight_string_free(text)
    return value


def _handle(tensor):
    """A pointer to a variable with the TensorImpl*, for the time of a call."""
    return ctypes.byref(ctypes.c_void_p(tensor._cdata))


def _adopted(handle):
    """The tensor of a new at::Tensor*, which torch frees from now on."""
    return torch._C._aoti.alloc_tensor_by_stealing_from_void_ptr(_new_capsule(handle, None, None))


def _run(function, handle, tensors, count):
    impls = (ctypes.c_void_p * len(tensors))(*(tensor._cdata for tensor in tensors))
    places = [ctypes.addressof(impls) + i * ctypes.sizeof(ctypes.c_void_p) for i in range(len(tensors))]
    inputs = (ctypes.c_void_p * len(tensors))(*places)
    outputs = (ctypes.c_void_p * count)()
    _call(function, handle, inputs, ctypes.c_size_t(len(tensors)), outputs, ctypes.c_size_t(count))
    return [_adopted(output) for output in outputs]


class ExportOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("opset", ctypes.c_int32), ("drop_guards", ctypes.c_int32),
                ("parameters_as_buffers", ctypes.c_int32), ("weights_as_parameters", ctypes.c_int32),
                ("weights_in", ctypes.c_char_p), ("matmul_nbits", ctypes.c_int32), ("reserved", ctypes.c_int32)]

    @classmethod
    def of(cls, **options):
        return cls(struct_size=ctypes.sizeof(cls), **options)


class Scope:
    def __init__(self, inputs=(), parameters=(), buffers=()):
        self._named = {"input": dict(inputs), "parameter": dict(parameters), "buffer": dict(buffers)}
        self.outputs, self.capture, self._handle = {}, None, ctypes.c_void_p()

    def begin(self):
        _call("scope_begin", None, ctypes.byref(self._handle))
        for kind, tensors in self._named.items():
            for name, tensor in tensors.items():
                _call("scope_" + kind, self._handle, _handle(tensor), name.encode())
        return self

    def end(self):
        for name, tensor in self.outputs.items():
            _call("scope_output", self._handle, _handle(tensor), name.encode())

    def check(self, capture):
        """Ends the scope: is `capture` what ran? The answer, and a report."""
        self.end()
        same, report = ctypes.c_int32(), ctypes.c_void_p()
        _call("scope_check", self._handle, capture.handle, ctypes.byref(same), ctypes.byref(report))
        return bool(same.value), _taken(report)

    def __enter__(self):
        return self.begin()

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.end()
                handle = ctypes.c_void_p()
                _call("scope_end", self._handle, ctypes.byref(handle))
                self.capture = Capture(handle)
        finally:
            _c.flashlight_scope_cancel(self._handle)


class Capture:
    def __init__(self, handle):
        self.handle = handle
        inputs, outputs = ctypes.c_size_t(), ctypes.c_size_t()
        _call("capture_counts", handle, ctypes.byref(inputs), ctypes.byref(outputs))
        self._outputs = outputs.value

    def __del__(self):
        _c.flashlight_capture_free(self.handle)

    @classmethod
    def load(cls, folder):
        handle = ctypes.c_void_p()
        _call("capture_load", os.fsencode(folder), ctypes.byref(handle))
        return cls(handle)

    def save(self, folder):
        _call("capture_save", self.handle, os.fsencode(folder))

    def export(self, file, **options):
        _call("capture_export", self.handle, os.fsencode(file), ctypes.byref(ExportOptions.of(**options)))

    def replay(self, *tensors):
        return _run("capture_replay", self.handle, tensors, self._outputs)

    def gradient(self, loss, *tensors):
        """The loss, and gradients by the names of the parameters."""
        handle, count, name = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p()
        _call("capture_gradient", self.handle, ctypes.c_size_t(loss), None, ctypes.c_size_t(0),
              ctypes.byref(handle))
        _call("gradient_count", handle, ctypes.byref(count))
        names = []
        for i in range(count.value):
            _call("gradient_name", handle, ctypes.c_size_t(i), ctypes.byref(name))
            names.append(_taken(name))
        value, *gradients = _run("gradient_run", handle, tensors, 1 + count.value)
        _call("gradient_free", handle)
        return value, dict(zip(names, gradients))
