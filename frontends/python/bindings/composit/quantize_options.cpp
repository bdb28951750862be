// Options of `quantize`, for both extension modules.
#include <pybind11/stl.h>

#include <functional>
#include <map>

#include "composit/ir/error.h"
#include "flashlight/backends/registry.h"
#include "frontends/python/bindings/composit/quantize.h"

namespace composit::python {
namespace {

namespace py = pybind11;

int bits_of(const std::string& weights) {
  if (weights == "int8") return 8;
  if (weights == "int4") return 4;
  throw UserError("[quantize] weights: expected 'int8' or 'int4', received '" + weights + "'");
}

using Setter = std::function<void(QuantizeOptions&, const py::handle&)>;

const std::map<std::string, Setter>& setters() {
  using O = QuantizeOptions;
  using H = const py::handle&;
  static const std::map<std::string, Setter> all = {
      {"weights", [](O& o, H x) { o.weights.bits = bits_of(x.cast<std::string>()); }},
      {"group", [](O& o, H x) { o.weights.group = x.cast<int64_t>(); }},
      {"symmetric", [](O& o, H x) { o.weights.symmetric = x.cast<bool>(); }},
      {"scales", [](O& o, H x) { o.weights.scales = scales_dtype(x.cast<std::string>()); }},
      {"activations",
       [](O& o, H x) { o.activations = activations_from_name(x.cast<std::string>()); }},
      {"all_readers", [](O& o, H x) { o.all_readers = x.cast<bool>(); }},
      {"method", [](O& o, H x) { o.method = quantize_method(x.cast<std::string>()); }},
      {"layers", [](O& o, H x) { o.layers = x.cast<std::vector<std::string>>(); }},
      {"exclude", [](O& o, H x) { o.except = x.cast<std::vector<std::string>>(); }},
      {"max_error", [](O& o, H x) { o.max_error = x.cast<std::optional<double>>(); }},
      {"measure", [](O& o, H x) { o.measure = x.cast<bool>(); }},
      {"alone", [](O& o, H x) { o.alone = &flashlight::backend_named(x.cast<std::string>()); }},
      {"backend",
       [](O& o, H x) { o.backend = &flashlight::backend_named(x.cast<std::string>()); }}};
  return all;
}

}  // namespace

QuantizeOptions quantize_options(const py::dict& keywords) {
  QuantizeOptions options;
  options.backend = &flashlight::backend_named("mosaic");
  for (const auto& [key, value] : keywords) {
    const auto found = setters().find(key.cast<std::string>());
    if (found == setters().end()) {
      std::string known;
      for (const auto& [name, setter] : setters()) known += (known.empty() ? "" : ", ") + name;
      throw UserError("[quantize] expected one of the options " + known + ", received '" +
                      key.cast<std::string>() + "'");
    }
    found->second(options, value);
  }
  return options;
}

}  // namespace composit::python
