// LazyTensor: a value of a graph, with the face of numpy.ndarray.
#include <pybind11/complex.h>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/numpy/numpy.h"
#include "frontends/python/bindings/composit/casters.h"
#include "frontends/python/bindings/composit/evaluate.h"
#include "frontends/python/bindings/composit/python_lines.h"

namespace composit::python {
namespace {

using numpy::Operand;

// Thrown when a program needs values that are not computed yet.
struct ValuesNeeded : UserError {
  using UserError::UserError;
};

[[noreturn]] void values_needed(const NdArray& x, const std::string& what) {
  throw ValuesNeeded("[LazyTensor] " + what + " needs values, and " + print(x.type()) +
                     " has none yet; composit.evaluate(x) computes them");
}

py::object dtype_or_name(const NdArray& x) {
  if (x.dtype() == DType::bfloat16) return py::str(std::string(name(x.dtype())));
  return numpy_dtype(x.dtype());
}

// The name of an input; for other values the name of the operation, as in printed graphs.
std::string name_of(const NdArray& x) {
  std::string name = x.name();
  return name.empty() ? std::string(x.node->op().base_name()) : name;
}

// True if `x` is the comparison of a value with itself. It makes equal keys of a dict work: if the
// hashes are equal, Python evaluates bool(a == b).
bool compares_with_itself(const NdArray& x) {
  const Node& node = *x.node;
  return node.op().base_name().substr(0, 2) == "eq" && node.operands().size() == 2 &&
         node.operands()[0] == node.operands()[1];
}

numpy::IndexItem index_item(py::handle item) {
  if (item.is_none()) return numpy::newaxis;
  if (item.ptr() == Py_Ellipsis) return numpy::ellipsis;
  if (PySlice_Check(item.ptr()) != 0) {
    const auto part = [&](const char* name) {
      const py::object value = item.attr(name);
      if (value.is_none()) return std::optional<int64_t>();
      return std::optional<int64_t>(py::int_(value).cast<int64_t>());
    };
    return numpy::Slice{part("start"), part("stop"), part("step")};
  }
  const bool is_array = py::isinstance<py::array>(item) || py::isinstance<NdArray>(item);
  if (!is_array && PyBool_Check(item.ptr()) == 0 && PyIndex_Check(item.ptr()) != 0)
    return py::int_(py::reinterpret_borrow<py::object>(item)).cast<int64_t>();
  if (py::isinstance<py::list>(item) && py::len(item) == 0)  // NumPy: integers, not floats
    return numpy::asarray(std::vector<int64_t>());
  if (auto array = array_like(item)) return *array;
  throw UserError("[numpy.get_item] expected integers, slices, ..., None and arrays, received " +
                  std::string(py::repr(item)));
}

struct Binary {
  const char* name;
  NdArray (*function)(const Operand&, const Operand&);
};
namespace d = numpy::detail;
constexpr Binary kArithmetic[] = {
    {"add", d::add},         {"sub", d::subtract},          {"mul", d::multiply},
    {"truediv", d::divide},  {"floordiv", d::floor_divide}, {"mod", d::remainder},
    {"pow", d::power},       {"and", d::bitwise_and},       {"or", d::bitwise_or},
    {"xor", d::bitwise_xor}, {"lshift", d::left_shift},     {"rshift", d::right_shift}};
constexpr Binary kComparisons[] = {{"eq", d::equal},   {"ne", d::not_equal},
                                   {"lt", d::less},    {"le", d::less_equal},
                                   {"gt", d::greater}, {"ge", d::greater_equal}};

using Class = py::class_<NdArray>;
using Guard = py::call_guard<PythonLine>;

void add_operators(Class& type) {
  for (const auto& [name, function] : kArithmetic) {
    const std::string text = name;
    const auto plain = [function = function](const NdArray& a, const Operand& b) {
      return function(a, b);
    };
    const auto reflected = [function = function](const NdArray& a, const Operand& b) {
      return function(b, a);
    };
    // The dtype stays, as in NumPy; the tensor becomes another one.
    const auto in_place = [function = function, text](NdArray a, const Operand& b) {
      return numpy::assign(a, function(a, b), text);
    };
    type.def(("__" + text + "__").c_str(), plain, py::is_operator(), Guard());
    type.def(("__r" + text + "__").c_str(), reflected, py::is_operator(), Guard());
    type.def(("__i" + text + "__").c_str(), in_place, py::is_operator(), Guard());
  }
  for (const auto& [name, function] : kComparisons)
    type.def(("__" + std::string(name) + "__").c_str(),
             [function = function](const NdArray& a, const Operand& b) { return function(a, b); },
             py::is_operator(), Guard());
  const auto matmul = [](const NdArray& a, const NdArray& b) { return numpy::matmul(a, b); };
  const auto rmatmul = [](const NdArray& a, const NdArray& b) { return numpy::matmul(b, a); };
  type.def("__matmul__", matmul, py::is_operator(), Guard());
  type.def("__rmatmul__", rmatmul, py::is_operator(), Guard());
  const auto divmod = [](const NdArray& a, const Operand& b) { return numpy::divmod(a, b); };
  const auto rdivmod = [](const NdArray& a, const Operand& b) { return numpy::divmod(b, a); };
  type.def("__divmod__", divmod, py::is_operator(), Guard());
  type.def("__rdivmod__", rdivmod, py::is_operator(), Guard());
  type.def("__neg__", &numpy::negative, Guard());
  type.def("__pos__", &numpy::positive, Guard());
  type.def("__invert__", &numpy::invert, Guard());
  type.def(
      "__abs__", [](const NdArray& x) { return numpy::absolute(x); }, Guard());
}

// Adds methods that need values and therefore throw.
void add_refusals(Class& type) {
  const auto refuse = [&](const char* method, const char* what) {
    type.def(method, [what](const NdArray& x, const py::args&, const py::kwargs&) {
      values_needed(x, what);
    });
  };
  refuse("__array__", "a numpy.ndarray");
  refuse("__float__", "a float");
  refuse("__int__", "an int");
  refuse("__index__", "an int");
  refuse("__complex__", "a complex");
  refuse("item", "a number");
  refuse("tolist", "a list");
  type.def("__bool__", [](const NdArray& x) {
    if (!compares_with_itself(x)) values_needed(x, "a condition (if, while, and, or, not)");
    return true;
  });
  type.def("__setitem__", [](const NdArray&, const py::object&, const py::object&) {
    throw ValuesNeeded(
        "[LazyTensor] arrays of a graph are not written to; "
        "x = composit.numpy.set_item(x, index, value) makes another one");
  });
}

// A property whose nodes come from the line that asks for it.
template <class F>
auto located(F function) {
  return [function](const NdArray& x) {
    const PythonLine here;
    return function(x);
  };
}

void add_properties(Class& type) {
  type.def_property_readonly(
          "shape", [](const NdArray& x) { return py::tuple(py::cast(x.shape())); }, "Sizes.")
      .def_property_readonly("dtype", &dtype_or_name, "numpy.dtype of the elements.")
      .def_property_readonly("rank", &NdArray::ndim, "Number of axes.")
      .def_property_readonly("ndim", &NdArray::ndim, "Number of axes.")
      .def_property_readonly(
          "size", [](const NdArray& x) { return x.size(); }, "Number of elements.")
      .def_property_readonly("name", &name_of, "Of an input its name, else that of the operation.")
      .def_property_readonly(
          "graph", [](const NdArray& x) { return graph_of({x}); }, "All that leads to this value.")
      .def_property_readonly(
          "node", [](const NdArray& x) { return std::const_pointer_cast<Node>(x.node); },
          "What makes this value.")
      .def_property_readonly(
          "output_index", [](const NdArray& x) { return x.index; },
          "Which of the node's results it is.")
      .def_property_readonly("T", located([](const NdArray& x) { return x.T(); }),
                             "All axes in reverse.")
      .def_property_readonly("real", located([](const NdArray& x) { return numpy::real(x); }))
      .def_property_readonly("imag", located([](const NdArray& x) { return numpy::imag(x); }));
}

}  // namespace

numpy::Indices indices_of(py::handle key) {
  if (!py::isinstance<py::tuple>(key)) return numpy::Indices(index_item(key));
  std::vector<numpy::IndexItem> items;
  for (const py::handle item : py::reinterpret_borrow<py::tuple>(key))
    items.push_back(index_item(item));
  return items;
}

void add_lazy_tensor(py::module_& module) {
  const py::tuple bases = py::make_tuple(module.attr("Error"), py::handle(PyExc_TypeError));
  py::register_exception<ValuesNeeded>(module, "ValuesNeeded", bases);
  Class type(module, "LazyTensor",
             "A value of a graph: shape and dtype are known, elements are computed by\n"
             "composit.evaluate. Has numpy.ndarray's operators and methods, which make nodes.");
  type.def(py::init([](const NdArray& value) { return value; }), py::arg("value"));
  add_properties(type);
  add_operators(type);
  add_refusals(type);
  type.def("__getitem__", &numpy::get_item, Guard())
      .def("__len__",
           [](const NdArray& x) {
             if (x.ndim() > 0) return x.shape()[0];
             throw py::type_error("len() of unsized object");
           })
      .def("__iter__",
           [](const NdArray& x) {
             if (x.ndim() == 0) throw py::type_error("iteration over a 0-d array");
             NdArrays rows;
             for (int64_t i = 0; i < x.shape()[0]; ++i) rows.push_back(x[i]);
             return py::iter(py::cast(rows));
           })
      .def(
          "__hash__", [](const NdArray& x) { return static_cast<py::ssize_t>(x.hash().low >> 2); },
          "Of the structure: equal for equal values of a graph.")
      .def("_repr_svg_",
           [](const NdArray& x) { return py::cast(graph_of({x})).attr("_repr_svg_")(); })
      .def("__repr__", [](const NdArray& x) {
        return "<LazyTensor " + name_of(x) + ": " + print(x.type()) + ">";
      });
}

}  // namespace composit::python
