// Reductions, scans, statistics, sorting.
#include "frontends/python/bindings/composit/numpy.h"

namespace composit::python {
namespace {

using numpy::Axes;
using OptionalAxis = std::optional<int64_t>;
using OptionalDType = std::optional<DType>;

using Sum = NdArray (*)(const NdArray&, const Axes&, const numpy::SumOptions&);
using Extremum = NdArray (*)(const NdArray&, const Axes&, const numpy::KeepOptions&);
using Variance = NdArray (*)(const NdArray&, const Axes&, const numpy::VarianceOptions&);
using Place = NdArray (*)(const NdArray&, OptionalAxis, const numpy::KeepOptions&);
using Scan = NdArray (*)(const NdArray&, OptionalAxis, OptionalDType);
using Quantile = NdArray (*)(const NdArray&, double, const Axes&, const numpy::KeepOptions&);

void sum(const Numpy& def, const char* name, Sum function) {
  def(
      name,
      [function](const NdArray& a, const Axes& axis, OptionalDType dtype, bool keepdims) {
        return function(a, axis, {.dtype = dtype, .keepdims = keepdims});
      },
      "a"_a, "axis"_a = Axes(), "dtype"_a = py::none(), py::kw_only(), "keepdims"_a = false);
}
void extremum(const Numpy& def, const char* name, Extremum function) {
  def(
      name,
      [function](const NdArray& a, const Axes& axis, bool keepdims) {
        return function(a, axis, {.keepdims = keepdims});
      },
      "a"_a, "axis"_a = Axes(), py::kw_only(), "keepdims"_a = false);
}
void variance(const Numpy& def, const char* name, Variance function) {
  def(
      name,
      [function](const NdArray& a, const Axes& axis, OptionalDType dtype, double ddof,
                 bool keepdims) {
        return function(a, axis, {.dtype = dtype, .ddof = ddof, .keepdims = keepdims});
      },
      "a"_a, "axis"_a = Axes(), "dtype"_a = py::none(), py::kw_only(), "ddof"_a = 0.0,
      "keepdims"_a = false);
}
void place(const Numpy& def, const char* name, Place function) {
  def(
      name,
      [function](const NdArray& a, OptionalAxis axis, bool keepdims) {
        return function(a, axis, {.keepdims = keepdims});
      },
      "a"_a, "axis"_a = py::none(), py::kw_only(), "keepdims"_a = false);
}
void scan(const Numpy& def, const char* name, Scan function) {
  def(name, function, "a"_a, "axis"_a = py::none(), "dtype"_a = py::none());
}
void quantile(const Numpy& def, const char* name, Quantile function) {
  def(
      name,
      [function](const NdArray& a, double q, const Axes& axis, bool keepdims) {
        return function(a, q, axis, {.keepdims = keepdims});
      },
      "a"_a, "q"_a, "axis"_a = Axes(), py::kw_only(), "keepdims"_a = false);
}

void add_statistics(const Numpy& def) {
  extremum(def, "median", &numpy::median);
  quantile(def, "quantile", &numpy::quantile);
  quantile(def, "percentile", &numpy::percentile);
  def(
      "average",
      [](const NdArray& a, const Axes& axis, std::optional<NdArray> weights, bool keepdims) {
        return numpy::average(a, axis, {.weights = std::move(weights), .keepdims = keepdims});
      },
      "a"_a, "axis"_a = Axes(), "weights"_a = py::none(), py::kw_only(), "keepdims"_a = false);
  def("cov", &numpy::cov, "m"_a, py::kw_only(), "ddof"_a = 1.0);
  def("corrcoef", &numpy::corrcoef, "x"_a);
  def("digitize", &numpy::digitize, "x"_a, "bins"_a, "right"_a = false);
  def("convolve", &numpy::convolve, "a"_a, "v"_a, "mode"_a = "full");
  def(
      "trapezoid",
      [](const NdArray& y, double dx, int64_t axis) { return numpy::trapezoid(y, dx, axis); },
      "y"_a, py::kw_only(), "dx"_a = 1.0, "axis"_a = -1);
  def("interp", &numpy::interp, "x"_a, "xp"_a, "fp"_a);
  def("sort", &numpy::sort, "a"_a, "axis"_a = -1);
  def("argsort", &numpy::argsort, "a"_a, "axis"_a = -1);
  def("searchsorted", &numpy::searchsorted, "a"_a, "v"_a, "side"_a = "left");
}

}  // namespace

void add_numpy_reductions(const Numpy& def) {
#define COMPOSIT_BIND(name) sum(def, #name, &numpy::name);
  COMPOSIT_NUMPY_SUMS(COMPOSIT_BIND)
#undef COMPOSIT_BIND
#define COMPOSIT_BIND(name) extremum(def, #name, &numpy::name);
  COMPOSIT_NUMPY_EXTREMA(COMPOSIT_BIND)
#undef COMPOSIT_BIND
  variance(def, "var", &numpy::var);
  variance(def, "std", &numpy::std);
  variance(def, "nanvar", &numpy::nanvar);
  variance(def, "nanstd", &numpy::nanstd);
  place(def, "argmax", &numpy::argmax);
  place(def, "argmin", &numpy::argmin);
  place(def, "nanargmax", &numpy::nanargmax);
  place(def, "nanargmin", &numpy::nanargmin);
  scan(def, "cumsum", &numpy::cumsum);
  scan(def, "cumprod", &numpy::cumprod);
  scan(def, "nancumsum", &numpy::nancumsum);
  scan(def, "nancumprod", &numpy::nancumprod);
  def("diff", &numpy::diff, "a"_a, "n"_a = 1, "axis"_a = -1);
  add_statistics(def);
}

}  // namespace composit::python
