// Programs of Knossos' language.
#include <sstream>

#include "composit/ir/error.h"
#include "frontends/ks/function.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/run.h"
#include "frontends/python/bindings/composit/casters.h"
#include "frontends/python/bindings/composit/python_lines.h"

namespace composit::python {
namespace {

using namespace py::literals;
namespace ks = flashlight::ks;

std::vector<std::string> functions(const ks::Program& program) {
  std::vector<std::string> names;
  for (const ks::Declaration& one : program.declarations)
    if (const auto* def = std::get_if<ks::Def>(&one.form)) names.push_back(ks::print(def->name));
  return names;
}

// A type as Python takes values of it apart: its name for a number, a tuple of the items of a
// tuple. A tensor of tuples is a tuple of tensors, so a tensor is (rank, element).
py::object form(const ks::Type& type) {
  using Kind = ks::Type::Kind;
  switch (type.kind) {
    case Kind::floating:
      return py::str("Float");
    case Kind::integer:
      return py::str("Integer");
    case Kind::boolean:
      return py::str("Bool");
    case Kind::tensor:
      return py::make_tuple(type.rank, form(type.parts[0]));
    case Kind::tuple: {
      py::list items;
      for (const ks::Type& part : type.parts) items.append(form(part));
      return items;
    }
    default:
      throw UserError("[ks] Python has no value of type " + ks::print(type));
  }
}

// Called on what Python made of an argument: values of graphs, and integers and bools that are
// known.
NdArrays call(const ks::ProgramFunction& function, const py::list& arguments) {
  std::vector<ks::Argument> all;
  for (const py::handle argument : arguments) {
    if (py::isinstance<py::bool_>(argument))
      all.emplace_back(argument.cast<bool>());
    else if (py::isinstance<py::int_>(argument))
      all.emplace_back(argument.cast<int64_t>());
    else
      all.emplace_back(LazyTensor(argument.cast<NdArray>()));
  }
  const PythonLine line;
  const LazyTensors results = function(all);
  return {results.begin(), results.end()};
}

}  // namespace

void add_ks(py::module_& module) {
  py::class_<ks::Program>(module, "KsProgram")
      .def(py::init(&ks::load), "file"_a)
      .def_property_readonly("functions", &functions)
      .def("run", [](const ks::Program& program) {
        std::ostringstream out;
        ks::run(program, out);
        return out.str();
      });
  py::class_<ks::ProgramFunction>(module, "KsFunction")
      .def(py::init<ks::Program, std::string>(), "program"_a, "name"_a)
      .def_property_readonly("name", &ks::ProgramFunction::name)
      .def_property_readonly("parameters",
                             [](const ks::ProgramFunction& function) {
                               py::list all;
                               for (const ks::Parameter& one : function.parameters())
                                 all.append(py::make_tuple(one.name, form(one.type)));
                               return all;
                             })
      .def_property_readonly(
          "result", [](const ks::ProgramFunction& function) { return form(function.result()); })
      .def("call", &call);
}

}  // namespace composit::python
