// Functions that move, join, split and repeat elements; arrays from nothing.
#include "frontends/python/bindings/composit/numpy.h"

namespace composit::python {
namespace {

using numpy::Axes;
using numpy::Operand;
using OptionalAxis = std::optional<int64_t>;

// NumPy: one number, a pair for all axes, or a pair per axis.
numpy::PadWidth pad_width(const py::object& width, int64_t rank) {
  const py::object pairs =
      py::module_::import("numpy").attr("broadcast_to")(width, py::make_tuple(rank, 2));
  return pairs.attr("tolist")().cast<numpy::PadWidth>();
}

bool is_integer(const py::object& object) {
  return PyIndex_Check(object.ptr()) != 0 && !py::isinstance<py::array>(object);
}

template <class Sections, class Places>
auto split_by(Sections sections, Places places) {
  return [=](const NdArray& x, const py::object& parts, int64_t axis) -> NdArrays {
    if (is_integer(parts)) return sections(x, py::int_(parts).cast<int64_t>(), axis);
    return places(x, parts.cast<Shape>().value, axis);
  };
}

void add_joins(const Numpy& def) {
  for (const char* name : {"concatenate", "concat"})
    def(name, &numpy::concatenate, "arrays"_a, "axis"_a = 0);
  def("stack", &numpy::stack, "arrays"_a, "axis"_a = 0);
  def("hstack", &numpy::hstack, "tup"_a);
  def("vstack", &numpy::vstack, "tup"_a);
  def("dstack", &numpy::dstack, "tup"_a);
  def("column_stack", &numpy::column_stack, "tup"_a);
  def("append", &numpy::append, "arr"_a, "values"_a, "axis"_a = py::none());
  def(
      "delete",
      [](const NdArray& x, const Shape& places, OptionalAxis axis) {
        return numpy::delete_(x, places.value, axis);
      },
      "arr"_a, "obj"_a, "axis"_a = py::none());
  def("insert", &numpy::insert, "arr"_a, "obj"_a, "values"_a, "axis"_a = py::none());
}

void add_splits(const Numpy& def) {
  using numpy::detail::array_split;
  const auto places = [](const NdArray& x, const Ints& at, int64_t axis) {
    return numpy::split(x, at, axis);
  };
  def("split", split_by(&numpy::detail::split, places), "ary"_a, "indices_or_sections"_a,
      "axis"_a = 0);
  def("array_split", split_by(&numpy::detail::array_split, places), "ary"_a,
      "indices_or_sections"_a, "axis"_a = 0);
  def("hsplit", &numpy::hsplit, "ary"_a, "indices_or_sections"_a);
  def("vsplit", &numpy::vsplit, "ary"_a, "indices_or_sections"_a);
}

void add_repetitions(const Numpy& def) {
  def(
      "tile", [](const NdArray& x, const Shape& reps) { return numpy::tile(x, reps.value); }, "A"_a,
      "reps"_a);
  def(
      "repeat",
      [](const NdArray& x, const py::object& repeats, OptionalAxis axis) {
        if (is_integer(repeats))
          return numpy::detail::repeat(x, py::int_(repeats).cast<int64_t>(), axis);
        return numpy::repeat(x, repeats.cast<Shape>().value, axis);
      },
      "a"_a, "repeats"_a, "axis"_a = py::none());
  def("flip", &numpy::flip, "m"_a, "axis"_a = Axes());
  def("fliplr", &numpy::fliplr, "m"_a);
  def("flipud", &numpy::flipud, "m"_a);
  def("rot90", &numpy::rot90, "m"_a, "k"_a = 1, "axes"_a = std::pair<int64_t, int64_t>{0, 1});
  def(
      "roll",
      [](const NdArray& a, const Shape& shift, const Axes& axis) {
        if (shift.value.size() == 1) return numpy::roll(a, shift.value[0], axis);
        return numpy::roll(a, shift.value, axis);
      },
      "a"_a, "shift"_a, "axis"_a = Axes());
  def(
      "pad",
      [](const NdArray& x, const py::object& width, const std::string& mode, const Operand& value) {
        return numpy::pad(x, pad_width(width, x.ndim()), mode, value);
      },
      "array"_a, "pad_width"_a, "mode"_a = "constant", py::kw_only(), "constant_values"_a = 0);
}

void add_ranges(const Numpy& def) {
  using OptionalDType = std::optional<DType>;
  def(
      "arange",
      [](const Operand& start, const std::optional<Operand>& stop, const Operand& step,
         OptionalDType dtype) {
        return stop ? numpy::arange(start, *stop, step, dtype)
                    : numpy::arange(Operand(0), start, step, dtype);
      },
      "start"_a, "stop"_a = py::none(), "step"_a = 1, "dtype"_a = py::none());
  def("linspace", &numpy::linspace, "start"_a, "stop"_a, "num"_a = 50, "endpoint"_a = true,
      "dtype"_a = py::none());
  def("logspace", &numpy::logspace, "start"_a, "stop"_a, "num"_a = 50, "endpoint"_a = true,
      "base"_a = 10.0);
  def("geomspace", &numpy::geomspace, "start"_a, "stop"_a, "num"_a = 50, "endpoint"_a = true);
  def("eye", &numpy::eye, "N"_a, "M"_a = py::none(), "k"_a = 0, "dtype"_a = DType::float64);
  def("tri", &numpy::tri, "N"_a, "M"_a = py::none(), "k"_a = 0, "dtype"_a = DType::float64);
  def(
      "identity", [](int64_t n, DType dtype) { return numpy::eye(n, {}, 0, dtype); }, "n"_a,
      "dtype"_a = DType::float64);
  def(
      "indices", [](const Shape& shape) { return numpy::indices(shape.value); }, "dimensions"_a);
  def(
      "meshgrid",
      [](const py::args& arrays, const std::string& indexing) {
        return numpy::meshgrid(arrays.cast<NdArrays>(), indexing);
      },
      py::kw_only(), "indexing"_a = "xy");
}

}  // namespace

void add_numpy_shapes(const Numpy& def) {
  def(
      "reshape", [](const NdArray& a, const Shape& shape) { return a.reshape(shape.value); }, "a"_a,
      "shape"_a);
  def("ravel", &numpy::ravel, "a"_a);
  for (const char* name : {"transpose", "permute_dims"})
    def(
        name,
        [](const NdArray& a, const std::optional<Shape>& axes) {
          return numpy::transpose(a, axes ? axes->value : Ints{});
        },
        "a"_a, "axes"_a = py::none());
  def(
      "matrix_transpose", [](const NdArray& x) { return numpy::swapaxes(x, -1, -2); }, "x"_a);
  def("swapaxes", &numpy::swapaxes, "a"_a, "axis1"_a, "axis2"_a);
  def("moveaxis", &numpy::moveaxis, "a"_a, "source"_a, "destination"_a);
  def("squeeze", &numpy::squeeze, "a"_a, "axis"_a = Axes());
  def("expand_dims", &numpy::expand_dims, "a"_a, "axis"_a);
  def("atleast_1d", &numpy::atleast_1d, "arys"_a);
  def("atleast_2d", &numpy::atleast_2d, "arys"_a);
  def(
      "broadcast_to",
      [](const NdArray& x, const Shape& shape) { return numpy::broadcast_to(x, shape.value); },
      "array"_a, "shape"_a);
  def("broadcast_arrays",
      [](const py::args& arrays) { return numpy::broadcast_arrays(arrays.cast<NdArrays>()); });
  add_joins(def);
  add_splits(def);
  add_repetitions(def);
  add_ranges(def);
}

}  // namespace composit::python
