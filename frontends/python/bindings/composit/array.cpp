#include "composit/ir/array.h"

#include "composit/ir/error.h"
#include "frontends/python/bindings/composit/casters.h"

namespace composit::python {
namespace {

constexpr struct {
  DType dtype;
  const char* numpy;
} kDTypes[] = {{DType::uint8, "u1"},       {DType::uint16, "u2"},  {DType::uint32, "u4"},
               {DType::uint64, "u8"},      {DType::int8, "i1"},    {DType::int16, "i2"},
               {DType::int32, "i4"},       {DType::int64, "i8"},   {DType::float16, "f2"},
               {DType::float32, "f4"},     {DType::float64, "f8"}, {DType::complex64, "c8"},
               {DType::complex128, "c16"}, {DType::bool_, "?"}};

py::dtype numpy_dtype(DType dtype) {
  for (const auto& entry : kDTypes)
    if (entry.dtype == dtype) return py::dtype(entry.numpy);
  throw UserError("[composit] NumPy has no dtype " + std::string(name(dtype)) +
                  "; cast to float32 before");
}

DType dtype_of(const py::dtype& dtype) {
  for (const auto& entry : kDTypes)
    if (py::dtype(entry.numpy).equal(dtype)) return entry.dtype;
  throw UserError("[composit] expected numbers, received the NumPy dtype " +
                  std::string(py::str(dtype)));
}

// Keeps a Python object alive from threads that know nothing of Python.
std::shared_ptr<const void> owner_of(py::object object) {
  PyObject* raw = object.release().ptr();
  return {raw, [](PyObject* held) {
            if (!Py_IsInitialized()) return;
            const py::gil_scoped_acquire gil;
            Py_DECREF(held);
          }};
}

}  // namespace

py::object to_numpy(const Array& array) {
  if (!array.defined()) return py::none();
  const Type& type = array.type();
  if (type.conj || type.neg) return to_numpy(array.contiguous());
  std::vector<py::ssize_t> shape, strides;
  const auto item = static_cast<py::ssize_t>(item_size(type.dtype));
  for (size_t i = 0; i < type.rank(); ++i) {
    shape.push_back(type.sizes[i].value());
    strides.push_back(type.strides[i] * item);
  }
  const py::capsule owner(new Array(array), [](void* held) { delete static_cast<Array*>(held); });
  py::array result(numpy_dtype(type.dtype), shape, strides, array.data(), owner);
  result.attr("flags").attr("writeable") = false;
  return std::move(result);
}

Array from_numpy(const py::object& object) {
  const py::module_ numpy = py::module_::import("numpy");
  auto array = py::array(numpy.attr("asarray")(object));
  const DType dtype = dtype_of(array.dtype());
  const auto item = static_cast<py::ssize_t>(item_size(dtype));
  bool fits = true;  // strides that composit can express
  for (py::ssize_t i = 0; i < array.ndim(); ++i)
    fits = fits && array.strides(i) >= 0 && array.strides(i) % item == 0;
  if (!fits)
    array = py::array(numpy.attr("ascontiguousarray")(array).attr("reshape")(
        std::vector<py::ssize_t>(array.shape(), array.shape() + array.ndim())));
  Type type = tensor_type(dtype, Dims(array.shape(), array.shape() + array.ndim()));
  for (py::ssize_t i = 0; i < array.ndim(); ++i)
    type.strides[static_cast<size_t>(i)] = array.strides(i) / item;
  const void* data = array.data();
  return Array(std::move(type), owner_of(std::move(array)), data);
}

DType dtype_named(const std::string& text) {
  if (const auto dtype = dtype_from_name(text)) return *dtype;
  throw UserError("[composit] expected a dtype such as 'float32', received '" + text + "'");
}

void add_arrays(py::module_& module) {
  module.def("to_numpy_dtype",
             [](const std::string& dtype) { return numpy_dtype(dtype_named(dtype)); });
}

}  // namespace composit::python
