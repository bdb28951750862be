#include "composit/ir/array.h"

#include <pybind11/complex.h>

#include "composit/ir/error.h"
#include "composit/numpy/creation.h"
#include "composit/numpy/shape.h"
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

py::dtype numpy_dtype(DType dtype) {
  for (const auto& entry : kDTypes)
    if (entry.dtype == dtype) return py::dtype(entry.numpy);
  throw UserError("[composit] NumPy has no dtype " + std::string(name(dtype)) +
                  "; cast to float32 before");
}

DType dtype_of(py::handle object) {
  if (py::isinstance<py::str>(object) && object.cast<std::string>() == "bfloat16")
    return DType::bfloat16;
  py::dtype dtype;
  try {
    dtype = py::dtype::from_args(py::reinterpret_borrow<py::object>(object));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw UserError("[composit] expected a dtype such as 'float32', received " +
                    std::string(py::repr(object)));
  }
  for (const auto& entry : kDTypes)
    if (py::dtype(entry.numpy).equal(dtype)) return entry.dtype;
  throw UserError("[composit] expected numbers, received the NumPy dtype " +
                  std::string(py::str(dtype)));
}

py::object to_numpy(const Array& array) {
  if (!array.defined()) return py::none();
  const Type& type = array.type();
  if (type.conj || type.neg) return to_numpy(array.contiguous());
  std::vector<py::ssize_t> shape, strides;
  const auto item = static_cast<py::ssize_t>(item_size(type.dtype));
  for (size_t i = 0; i < type.rank(); ++i) {
    shape.push_back(type.sizes[i]);
    strides.push_back(type.strides[i] * item);
  }
  const py::capsule owner(new Array(array), [](void* held) { delete static_cast<Array*>(held); });
  py::array result(numpy_dtype(type.dtype), shape, strides, array.data(), owner);
  result.attr("flags").attr("writeable") = false;
  return result;
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

Array copy_of_numpy(const py::object& object) {
  const py::module_ numpy = py::module_::import("numpy");
  const auto array = py::array(numpy.attr("asarray")(object));
  // A value that composit computed does not change.
  if (py::isinstance<py::capsule>(array.base()) && !array.writeable()) return from_numpy(array);
  return from_numpy(numpy.attr("array")(array, py::arg("order") = "C"));
}

namespace {

bool is_sequence(py::handle object) {
  return py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object);
}
bool holds_lazy(py::handle object) {
  if (py::isinstance<NdArray>(object)) return true;
  if (!is_sequence(object)) return false;
  for (const py::handle item : py::reinterpret_borrow<py::sequence>(object))
    if (holds_lazy(item)) return true;
  return false;
}

// Converts tensors of other libraries, by the functions registered with `composit.types.as_lazy`.
std::optional<NdArray> converted(py::handle object) {
  const py::object converters = py::module_::import("composit._composit").attr("converters");
  for (const auto& [type, convert] : converters.cast<py::dict>())
    if (PyObject_IsInstance(object.ptr(), type.ptr()) == 1) return convert(object).cast<NdArray>();
  return std::nullopt;
}

bool is_number(py::handle object) {
  return PyBool_Check(object.ptr()) || PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) ||
         PyComplex_Check(object.ptr());
}
// A scalar of NumPy has a dtype that counts in promotion, also where it derives from float.
bool is_numpy_scalar(py::handle object) {
  static const py::handle generic =
      py::object(py::module_::import("numpy").attr("generic")).release();
  return py::isinstance(object, generic);
}

}  // namespace

std::optional<NdArray> array_like(py::handle object) {
  if (py::isinstance<NdArray>(object)) return object.cast<const NdArray&>();
  if (is_sequence(object) && holds_lazy(object)) {
    NdArrays items;
    for (const py::handle item : py::reinterpret_borrow<py::sequence>(object)) {
      const auto array = array_like(item);
      if (!array) return std::nullopt;
      items.push_back(*array);
    }
    return numpy::stack(items);
  }
  if (!is_number(object) && !is_numpy_scalar(object) && !py::isinstance<py::array>(object) &&
      !is_sequence(object))
    return converted(object);
  return numpy::asarray(copy_of_numpy(py::reinterpret_borrow<py::object>(object)));
}

std::optional<numpy::Operand> operand_like(py::handle object) {
  if (is_number(object) && !is_numpy_scalar(object)) {
    if (PyBool_Check(object.ptr())) return numpy::Operand(object.cast<bool>());
    if (PyLong_Check(object.ptr())) return numpy::Operand(object.cast<int64_t>());
    if (PyFloat_Check(object.ptr())) return numpy::Operand(object.cast<double>());
    return numpy::Operand(object.cast<std::complex<double>>());
  }
  if (auto array = array_like(object)) return numpy::Operand(std::move(*array));
  return std::nullopt;
}

void add_arrays(py::module_& module) { module.attr("converters") = py::dict(); }

}  // namespace composit::python
