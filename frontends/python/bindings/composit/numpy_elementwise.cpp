// Functions of elements, and dtypes.
#include "frontends/python/bindings/composit/numpy.h"

namespace composit::python {
namespace {

using numpy::Operand;
using OptionalOperand = std::optional<Operand>;
using OptionalDType = std::optional<DType>;

// Makes an array of a number: one of two operands has to be an array.
Operand as_array(const Operand& number) {
  if (!number.is_number()) return number;
  return std::visit([](auto value) { return Operand(numpy::asarray(value)); }, number.number());
}

template <NdArray (*function)(const Operand&, const Operand&)>
NdArray binary(const Operand& a, const Operand& b) {
  return a.is_number() && b.is_number() ? function(as_array(a), b) : function(a, b);
}

}  // namespace

void add_numpy_elementwise(const Numpy& def) {
#define COMPOSIT_BIND(name) def(#name, &numpy::name, "x"_a);
  COMPOSIT_NUMPY_UNARY(COMPOSIT_BIND)
#undef COMPOSIT_BIND
#define COMPOSIT_BIND(name) def(#name, &binary<&numpy::detail::name>, "x1"_a, "x2"_a);
  COMPOSIT_NUMPY_BINARY(COMPOSIT_BIND)
#undef COMPOSIT_BIND
  // NumPy's newer names.
  def("acos", &numpy::arccos, "x"_a)("acosh", &numpy::arccosh, "x"_a);
  def("asin", &numpy::arcsin, "x"_a)("asinh", &numpy::arcsinh, "x"_a);
  def("atan", &numpy::arctan, "x"_a)("atanh", &numpy::arctanh, "x"_a);
  def("atan2", &binary<&numpy::detail::arctan2>, "x1"_a, "x2"_a);

  def("where", &numpy::detail::where, "condition"_a, "x"_a, "y"_a);
  def(
      "clip",
      [](const NdArray& a, const OptionalOperand& low, const OptionalOperand& high,
         const OptionalOperand& min,
         const OptionalOperand& max) { return numpy::clip(a, min ? min : low, max ? max : high); },
      "a"_a, "a_min"_a = py::none(), "a_max"_a = py::none(), py::kw_only(), "min"_a = py::none(),
      "max"_a = py::none());
  for (const char* name : {"round", "around"}) def(name, &numpy::round, "a"_a, "decimals"_a = 0);
  def("modf", &numpy::modf, "x"_a);
  def(
      "divmod",
      [](const Operand& a, const Operand& b) {
        return numpy::divmod(a.is_number() && b.is_number() ? as_array(a) : a, b);
      },
      "x1"_a, "x2"_a);
  def(
      "nan_to_num",
      [](const NdArray& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
        return numpy::nan_to_num(x, {.nan = nan, .posinf = posinf, .neginf = neginf});
      },
      "x"_a, py::kw_only(), "nan"_a = 0.0, "posinf"_a = py::none(), "neginf"_a = py::none());
  const auto close = [](auto function) {
    return [function](const Operand& a, const Operand& b, double rtol, double atol, bool nan) {
      return function(as_array(a), b, {.rtol = rtol, .atol = atol, .equal_nan = nan});
    };
  };
  def("isclose", close(&numpy::isclose), "a"_a, "b"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8,
      "equal_nan"_a = false);
  def("allclose", close(&numpy::allclose), "a"_a, "b"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8,
      "equal_nan"_a = false);
  def("array_equal", &numpy::array_equal, "a1"_a, "a2"_a);
  def("astype", &NdArray::astype, "x"_a, "dtype"_a);

  def("zeros_like", &numpy::zeros_like, "a"_a, "dtype"_a = py::none());
  def("ones_like", &numpy::ones_like, "a"_a, "dtype"_a = py::none());
  def("empty_like", &numpy::empty_like, "a"_a, "dtype"_a = py::none());
  def("full_like", &numpy::full_like, "a"_a, "fill_value"_a, "dtype"_a = py::none());
  def(
      "broadcast_full",
      [](const Shape& shape, const Operand& value, OptionalDType dtype) {
        return numpy::full(shape.value, value, dtype);
      },
      "shape"_a, "fill_value"_a, "dtype"_a = py::none());
  def(
      "placeholder",
      [](const Shape& shape, DType dtype, const std::string& name) {
        return numpy::ndarray(shape.value, dtype, name);
      },
      "shape"_a, "dtype"_a, "name"_a);
  def(
      "held",
      [](const py::object& value, const std::string& name) {
        return numpy::asarray(copy_of_numpy(value), name);
      },
      "value"_a, "name"_a);
}

}  // namespace composit::python
