// Conversions between composit's values and Python's, for the files of both extension modules.
//
//   Array    numpy.ndarray, sharing memory (read-only where it comes from composit)
//   DType    what numpy.dtype takes; "bfloat16" as well
//   NdArray  LazyTensor; as an argument also whatever numpy.asarray takes, as a constant, and what
//   a
//            registered converter knows (tensors of torch)
//   Operand  the same, and Python's numbers, which are weak
//   Axes     None, an integer or several
//   Shape    an integer or several
//   Indices  what stands in x[...]
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "composit/ir/array.h"
#include "composit/numpy/indexing.h"
#include "composit/numpy/ndarray.h"

namespace composit::python {

namespace py = pybind11;
using numpy::NdArray;
using numpy::NdArrays;

// UserError for a dtype that NumPy does not have (bfloat16).
py::object to_numpy(const Array& array);
// Anything numpy.asarray takes; the memory is shared where its strides allow. UserError for a dtype
// that composit does not have.
Array from_numpy(const py::object& object);
// The same in memory of its own, for what a graph keeps: NumPy's arrays may be written to.
Array copy_of_numpy(const py::object& object);

// UserError for what numpy.dtype does not take, or composit does not have.
DType dtype_of(py::handle dtype);
py::dtype numpy_dtype(DType dtype);

// A value of a graph, a constant for what numpy.asarray takes; nothing for anything else.
std::optional<NdArray> array_like(py::handle object);
std::optional<numpy::Operand> operand_like(py::handle object);
// UserError for what is no index.
numpy::Indices indices_of(py::handle key);

// Sizes, or one number per axis: (2, 3) or 6.
struct Shape {
  Ints value;
};

void add_graph(py::module_& module);
void add_onnx(py::module_& module);
void add_arrays(py::module_& module);
void add_lazy_tensor(py::module_& module);
void add_numpy(py::module_& module);
void add_evaluate(py::module_& module);
void add_quantize(py::module_& module);
void add_stablehlo(py::module_& module);
void add_xla();
void add_operation(py::module_& module);
void add_nn(py::module_& module);
void add_ks(py::module_& module);

}  // namespace composit::python

namespace pybind11::detail {

template <>
struct type_caster<composit::DType> {
  PYBIND11_TYPE_CASTER(composit::DType, const_name("numpy.typing.DTypeLike"));
  bool load(handle source, bool) {
    if (source.is_none()) return false;
    value = composit::python::dtype_of(source);
    return true;
  }
  static handle cast(composit::DType dtype, return_value_policy, handle) {
    return composit::python::numpy_dtype(dtype).release();
  }
};

template <>
class type_caster<composit::numpy::NdArray> : public type_caster_base<composit::numpy::NdArray> {
 public:
  bool load(handle source, bool convert) {
    if (source.is_none()) return false;  // not a null pointer
    if (type_caster_base::load(source, false)) return true;
    if (convert) made_ = composit::python::array_like(source);
    if (!made_) return false;
    value = &*made_;
    return true;
  }

 private:
  std::optional<composit::numpy::NdArray> made_;
};

// For values that a default constructor does not make.
template <class T>
class OptionalCaster {
 public:
  template <class U>
  using cast_op_type = pybind11::detail::cast_op_type<U>;
  operator T*() { return &*loaded; }
  operator T&() { return *loaded; }

 protected:
  std::optional<T> loaded;
};

template <>
class type_caster<composit::numpy::Operand> : public OptionalCaster<composit::numpy::Operand> {
 public:
  static constexpr auto name = const_name("numpy.typing.ArrayLike");
  bool load(handle source, bool) {
    if (auto operand = composit::python::operand_like(source)) loaded.emplace(std::move(*operand));
    return loaded.has_value();
  }
};

template <>
class type_caster<composit::numpy::Indices> : public OptionalCaster<composit::numpy::Indices> {
 public:
  static constexpr auto name = const_name("typing.Any");
  bool load(handle source, bool) {
    loaded.emplace(composit::python::indices_of(source));
    return true;
  }
};

// An integer, or several: NumPy's numbers are integers, too.
inline bool load_ints(handle source, composit::Ints& ints) {
  if (PyIndex_Check(source.ptr()) != 0 && !isinstance<array>(source)) {
    ints = {int_(reinterpret_borrow<object>(source)).cast<int64_t>()};
    return true;
  }
  if (!isinstance<sequence>(source) || isinstance<str>(source)) return false;
  for (const handle item : reinterpret_borrow<sequence>(source)) {
    if (PyIndex_Check(item.ptr()) == 0) return false;
    ints.push_back(int_(reinterpret_borrow<object>(item)).cast<int64_t>());
  }
  return true;
}

template <>
struct type_caster<composit::python::Shape> {
  PYBIND11_TYPE_CASTER(composit::python::Shape, const_name("int | collections.abc.Sequence[int]"));
  bool load(handle source, bool) { return load_ints(source, value.value); }
};

template <>
struct type_caster<composit::numpy::Axes> {
  PYBIND11_TYPE_CASTER(composit::numpy::Axes, const_name("int | tuple[int, ...] | None"));
  bool load(handle source, bool) {
    if (source.is_none()) return true;
    composit::Ints axes;
    if (!load_ints(source, axes)) return false;
    value = composit::numpy::Axes(std::move(axes));
    return true;
  }
  static handle cast(const composit::numpy::Axes&, return_value_policy, handle) {
    return none().release();  // only as the default value
  }
};

}  // namespace pybind11::detail
