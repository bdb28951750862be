// Families of captures, on flat lists of tensors: flashlight/family.py takes Python's values apart.
#include "flashlight/family.h"

#include <pybind11/functional.h>
#include <pybind11/stl/filesystem.h>

#include "frontends/python/bindings/flashlight/bindings.h"

namespace flashlight::python {
namespace {

using Tensors = std::vector<at::Tensor>;
// name, shown, low, high, step
using SizeRow = std::tuple<std::string, std::vector<int64_t>, int64_t, int64_t, int64_t>;
// where it comes from, shown
using NumberRow = std::pair<std::string, std::vector<double>>;
// name, low, high, step
using RangeRow = std::tuple<std::string, int64_t, int64_t, int64_t>;

// Comparisons by place.
using PredicateTexts = std::map<std::string, std::string>;

std::vector<composit::Predicate> predicates_of(const PredicateTexts& texts) {
  std::vector<composit::Predicate> predicates;
  for (const auto& [place, comparison] : texts)
    predicates.push_back(composit::predicate(place, comparison));
  return predicates;
}

// `numbers`: by example.
FamilyBase of_examples(const std::vector<CaptureBase>& examples,
                       const std::vector<std::string>& names, const PredicateTexts& predicates,
                       const std::vector<composit::NumberValues>& numbers) {
  FamilySettings settings;
  settings.names = names;
  settings.predicates = predicates_of(predicates);
  return unlocked([&] { return FamilyBase(examples, settings, numbers); });
}

// `arguments_at` gives tensors and their structure as text for sizes by name; `capture` captures
// the program on these tensors.
FamilyBase over(
    const std::function<std::pair<Tensors, std::string>(const composit::SizeValues&)>& arguments_at,
    const std::function<CaptureBase(const Tensors&)>& capture, const std::vector<RangeRow>& rows,
    const PredicateTexts& predicates) {
  FamilySettings settings;
  settings.predicates = predicates_of(predicates);
  for (const auto& [name, low, high, step] : rows)
    settings.ranges.push_back({name, low, high, step});
  return FamilyBase::over(
      [&](const composit::SizeValues& sizes) {
        auto [tensors, structure] = arguments_at(sizes);
        return FlatValues{.tensors = std::move(tensors), .structure = parse_structure(structure)};
      },
      [&](const FlatValues& arguments) { return capture(arguments.tensors); }, settings);
}

// `capture` runs the program on these arguments, numbers among them.
CheckReport check_example(const FamilyBase& family, const Tensors& arguments,
                          const std::string& structure,
                          const std::function<CaptureBase(const Tensors&)>& capture) {
  const FlatValues values{arguments, parse_structure(structure)};
  family.expect_arguments(values.structure);
  return family.check_flat(values, [&](const FlatValues& given) { return capture(given.tensors); });
}

std::vector<SizeRow> sizes_of(const FamilyBase& family) {
  std::vector<SizeRow> rows;
  for (const composit::FreeSize& size : composit::hull_of(family.cases()))
    rows.emplace_back(size.name, size.shown, size.low, size.high, size.step);
  return rows;
}

}  // namespace

void add_family(py::module_& module) {
  py::class_<FamilyBase>(module, "Family")
      .def(py::init(&of_examples))
      .def_static("load", &FamilyBase::load)
      .def_property_readonly("graph",
                             [](const FamilyBase& family) { return family.family().example; })
      .def_property_readonly("sizes", &sizes_of)
      .def_property_readonly("value_sizes",
                             [](const FamilyBase& family) {
                               std::vector<std::string> names;
                               for (const composit::Family& one : family.cases().cases)
                                 for (const auto& size : one.value_sizes)
                                   names.push_back(size.name);
                               return names;
                             })
      .def_property_readonly("argument_structure",
                             [](const FamilyBase& f) { return str(f.argument_structure()); })
      .def("text",
           [](const FamilyBase& family) {
             return composit::print(family.cases(), {.inline_elements = 8, .brief = true});
           })
      .def("sizes_of_call",
           [](const FamilyBase& f, const Tensors& arguments) {
             return unlocked([&] { return f.sizes_of_call(arguments); });
           })
      .def("at", &FamilyBase::at)
      .def_property_readonly(
          "numbers",
          [](const FamilyBase& family) {
            std::map<std::string, NumberRow> rows;
            for (const composit::Family& one : family.cases().cases)
              for (const composit::FreeNumber& number : one.numbers)
                rows.emplace(number.name, NumberRow(composit::name(number.origin), number.shown));
            return rows;
          })
      .def("with_numbers", &FamilyBase::with)
      .def("call",
           [](const FamilyBase& family, const Tensors& arguments, const std::string& structure,
              const composit::NumberValues& numbers) {
             const FlatValues values{arguments, parse_structure(structure)};
             family.expect_arguments(values.structure);
             return with_structure(unlocked([&] { return family.with(numbers).call(values); }));
           })
      .def("check",
           [](const FamilyBase& family, const Tensors& arguments) {
             return unlocked([&] { return family.check_flat(arguments); });
           })
      .def("check_example", &check_example)
      .def("extend", [](FamilyBase& f, const CaptureBase& example,
                        const composit::NumberValues& numbers) { f.extend(example, numbers); })
      .def("assumptions", &FamilyBase::assumptions)
      .def("save", &FamilyBase::save, py::call_guard<py::gil_scoped_release>())
      .def("save_pt2", &write_pt2<FamilyBase>, py::call_guard<py::gil_scoped_release>())
      .def("save_onnx", &write_onnx<FamilyBase>, py::call_guard<py::gil_scoped_release>())
      .def("save_mlir", &write_stablehlo<FamilyBase>, py::call_guard<py::gil_scoped_release>());
  module.def("family_over", &over);
}

}  // namespace flashlight::python
