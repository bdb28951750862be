// Elements by their places; products of vectors and matrices.
#include "frontends/python/bindings/composit/numpy.h"

namespace composit::python {

using numpy::Axes;
using OptionalAxis = std::optional<int64_t>;

void add_numpy_indexing(const Numpy& def) {
  def("get_item", &numpy::get_item, "a"_a, "index"_a);
  def("set_item", &numpy::set_item, "a"_a, "index"_a, "value"_a);
  def("take", &numpy::take, "a"_a, "indices"_a, "axis"_a = py::none(), py::kw_only(),
      "mode"_a = "raise");
  def("take_along_axis", &numpy::take_along_axis, "arr"_a, "indices"_a, "axis"_a = -1);
  def("put_along_axis", &numpy::put_along_axis, "arr"_a, "indices"_a, "values"_a, "axis"_a);
  def("choose", &numpy::choose, "a"_a, "choices"_a);
  def(
      "nonzero", [](const NdArray& a) { return py::tuple(py::cast(numpy::nonzero(a))); }, "a"_a);
  def("unique", &numpy::unique, "ar"_a);
}

void add_numpy_products(const Numpy& def, const Numpy& linalg) {
  def("matmul", &numpy::matmul, "x1"_a, "x2"_a, py::kw_only(), "dtype"_a = py::none());
  def("dot", &numpy::dot, "a"_a, "b"_a);
  def("inner", &numpy::inner, "a"_a, "b"_a);
  def("outer", &numpy::outer, "a"_a, "b"_a);
  def("vdot", &numpy::vdot, "a"_a, "b"_a);
  def("kron", &numpy::kron, "a"_a, "b"_a);
  def("cross", &numpy::cross, "a"_a, "b"_a);
  def(
      "tensordot",
      [](const NdArray& a, const NdArray& b, const py::object& axes) {
        if (PyIndex_Check(axes.ptr()) != 0)
          return numpy::tensordot(a, b, py::int_(axes).cast<int64_t>());
        const auto [of_a, of_b] = axes.cast<std::pair<Shape, Shape>>();
        return numpy::tensordot(a, b, std::pair(of_a.value, of_b.value));
      },
      "a"_a, "b"_a, "axes"_a = 2);
  def("einsum", [](const std::string& subscripts, const py::args& operands) {
    return numpy::einsum(subscripts, operands.cast<NdArrays>());
  });
  def("diagonal", &numpy::diagonal, "a"_a, "offset"_a = 0, "axis1"_a = 0, "axis2"_a = 1);
  def("trace", &numpy::trace, "a"_a, "offset"_a = 0, "axis1"_a = 0, "axis2"_a = 1);
  def("diag", &numpy::diag, "v"_a, "k"_a = 0);
  def("tril", &numpy::tril, "m"_a, "k"_a = 0);
  def("triu", &numpy::triu, "m"_a, "k"_a = 0);
  linalg(
      "norm",
      [](const NdArray& x, std::optional<double> ord, const Axes& axis, bool keepdims) {
        return numpy::linalg::norm(x, axis, {.ord = ord, .keepdims = keepdims});
      },
      "x"_a, "ord"_a = py::none(), "axis"_a = Axes(), "keepdims"_a = false);
  linalg("matrix_power", &numpy::linalg::matrix_power, "a"_a, "n"_a);
}

}  // namespace composit::python
