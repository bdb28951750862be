#include "tests/tracer/fuzz/program.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>

#include <sstream>

#include "composit/ir/error.h"

namespace flashlight::fuzz {
namespace {

// ---- inputs -------------------------------------------------------------------------------------

at::Tensor random_values(c10::IntArrayRef sizes, c10::ScalarType dtype, at::Generator generator) {
  if (dtype == at::kBool) return at::randint(0, 2, sizes, generator, at::kLong).to(at::kBool);
  if (c10::isIntegralType(dtype, false))
    return at::randint(0, 3, sizes, generator, at::kLong).to(dtype);
  return at::randn(sizes, generator, c10::isComplexType(dtype) ? dtype : at::kFloat).to(dtype);
}

at::Tensor with_layout(const InputSpec& spec, const at::Tensor& previous, at::Generator generator) {
  std::vector<int64_t> sizes = spec.sizes;
  const auto rank = static_cast<int64_t>(sizes.size());
  switch (spec.layout) {
    case Layout::contiguous:
      break;
    case Layout::transposed: {
      std::reverse(sizes.begin(), sizes.end());
      std::vector<int64_t> axes;
      for (int64_t i = rank - 1; i >= 0; --i) axes.push_back(i);
      return random_values(sizes, spec.dtype, generator).permute(axes);
    }
    case Layout::every_second:
      if (rank == 0) break;
      sizes.back() *= 2;
      return random_values(sizes, spec.dtype, generator).slice(-1, 0, sizes.back(), 2);
    case Layout::offset:
      sizes.insert(sizes.begin(), 2);
      return random_values(sizes, spec.dtype, generator).select(0, 1);
    case Layout::alias:
      return previous.permute([&] {
        std::vector<int64_t> axes;
        for (int64_t i = previous.dim() - 1; i >= 0; --i) axes.push_back(i);
        return axes;
      }());
  }
  return random_values(sizes, spec.dtype, generator);
}

// ---- calls --------------------------------------------------------------------------------------

c10::IValue to_ivalue(const Argument& argument, const c10::TypePtr& type,
                      const std::vector<at::Tensor>& tensors) {
  const auto tensor = [&](Var var) { return tensors.at(static_cast<size_t>(var.index)); };
  if (const auto* value = std::get_if<c10::IValue>(&argument)) return *value;
  if (const auto* var = std::get_if<Var>(&argument))
    return var->index < 0 ? c10::IValue() : c10::IValue(tensor(*var));
  const auto list = type->cast<c10::ListType>();
  const Vars& vars = std::get<Vars>(argument);
  if (list && list->getElementType()->kind() == c10::TypeKind::OptionalType) {
    c10::List<std::optional<at::Tensor>> items;
    for (Var var : vars)
      items.push_back(var.index < 0 ? std::nullopt : std::make_optional(tensor(var)));
    return items;
  }
  c10::List<at::Tensor> items;
  for (Var var : vars) items.push_back(tensor(var));
  return items;
}

void add_results(const c10::IValue& value, std::vector<at::Tensor>& results) {
  if (value.isTensor()) results.push_back(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector()) results.push_back(tensor);
}

std::vector<at::Tensor> call_operator(const Call& call, const std::vector<at::Tensor>& tensors) {
  const auto dot = call.op.find('.');
  const std::string overload = dot == std::string::npos ? "" : call.op.substr(dot + 1);
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(call.op.substr(0, dot).c_str(),
                                                                     overload.c_str());
  torch::jit::Stack stack;
  const auto& declared = handle.schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i)
    stack.push_back(i < call.arguments.size()
                        ? to_ivalue(call.arguments[i], declared[i].real_type(), tensors)
                        : declared[i].default_value().value_or(c10::IValue()));
  handle.callBoxed(stack);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) add_results(value, results);
  return results;
}

std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& tensors, const Call& call) {
  const at::Tensor& from = tensors.at(static_cast<size_t>(std::get<Var>(call.arguments[0]).index));
  std::vector<at::Tensor> sources;
  for (Var var : std::get<Vars>(call.arguments[1]))
    sources.push_back(tensors.at(static_cast<size_t>(var.index)));
  return torch::autograd::grad({at::sum(from)}, sources, {}, true, false, true);
}

std::vector<at::Tensor> run_call(const Call& call, std::vector<at::Tensor>& tensors) {
  if (call.op.compare(0, 5, "cpp::") != 0) return call_operator(call, tensors);
  if (call.op == "cpp::manual_seed") {
    at::manual_seed(static_cast<uint64_t>(std::get<c10::IValue>(call.arguments[0]).toInt()));
    return {};
  }
  at::Tensor& self = tensors.at(static_cast<size_t>(std::get<Var>(call.arguments[0]).index));
  if (call.op == "cpp::drop") {
    self = at::Tensor();
    return {};
  }
  if (call.op == "cpp::data") return {self.data()};
  if (call.op == "cpp::grad") return gradients(tensors, call);
  TORCH_CHECK(call.op == "cpp::set_data", "no such call: ", call.op);
  self.set_data(tensors.at(static_cast<size_t>(std::get<Var>(call.arguments[1]).index)));
  return {};
}

bool is_defined(const Argument& argument, const std::vector<at::Tensor>& tensors) {
  const auto defined = [&](Var var) {
    return var.index < 0 || tensors.at(static_cast<size_t>(var.index)).defined();
  };
  if (const auto* var = std::get_if<Var>(&argument)) return defined(*var);
  if (const auto* vars = std::get_if<Vars>(&argument))
    return std::all_of(vars->begin(), vars->end(), defined);
  return true;
}

// ---- text ---------------------------------------------------------------------------------------

template <class Items, class Print>
std::string join(const Items& items, Print print) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + print(item);
  return text;
}

std::string number(double value) {
  std::ostringstream text;
  text.precision(17);
  text << "c10::IValue(" << value << ((value == static_cast<int64_t>(value)) ? ".0" : "") << ")";
  return text.str();
}

std::string print_argument(const Argument& argument) {
  const auto var = [](Var v) { return c10::str("Var{", v.index, "}"); };
  if (const auto* v = std::get_if<Var>(&argument)) return var(*v);
  if (const auto* vars = std::get_if<Vars>(&argument)) return "Vars{" + join(*vars, var) + "}";
  const auto& value = std::get<c10::IValue>(argument);
  const auto integer = [](int64_t i) { return std::to_string(i); };
  if (value.isNone()) return "c10::IValue()";
  if (value.isBool()) return value.toBool() ? "c10::IValue(true)" : "c10::IValue(false)";
  if (value.isInt()) return "c10::IValue(" + integer(value.toInt()) + ")";
  if (value.isDouble()) return number(value.toDouble());
  if (value.isIntList())
    return "c10::IValue(std::vector<int64_t>{" + join(value.toIntVector(), integer) + "})";
  return c10::str("c10::IValue(", value, ")");
}

}  // namespace

std::vector<at::Tensor> make_inputs(const Program& program, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  generator.set_current_seed(seed);
  std::vector<at::Tensor> inputs;
  for (const InputSpec& spec : program.inputs)
    inputs.push_back(with_layout(spec, inputs.empty() ? at::Tensor() : inputs.back(), generator));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (program.inputs[i].requires_grad) inputs[i].requires_grad_();
  return inputs;
}

bool execute(const Call& call, std::vector<at::Tensor>& tensors) {
  const auto begin = static_cast<size_t>(call.first);
  tensors.resize(std::max(tensors.size(), begin + static_cast<size_t>(call.count)));
  for (const Argument& argument : call.arguments)
    if (!is_defined(argument, tensors)) return true;
  try {
    const std::vector<at::Tensor> results = run_call(call, tensors);
    tensors.resize(std::max(tensors.size(), begin + results.size()));
    std::copy(results.begin(), results.end(), tensors.begin() + call.first);
    return true;
  } catch (const composit::UserError&) {
    throw;  // the recorder's, not the program's
  } catch (const composit::InternalError&) {
    throw;
  } catch (const std::exception&) {  // LibTorch throws more than c10::Error
    return false;
  }
}

Run execute(const Program& program, const std::vector<at::Tensor>& inputs) {
  const at::AutoGradMode mode(program.grad);
  Run run{inputs, {}, {}};
  for (const Call& call : program.calls) {
    run.threw.push_back(!execute(call, run.tensors));
    for (auto i = static_cast<size_t>(call.first); i < run.tensors.size(); ++i)
      run.sizes.push_back(run.tensors[i].defined() ? run.tensors[i].sizes().vec()
                                                   : std::vector<int64_t>{-1});
  }
  return run;
}

std::vector<at::Tensor> Run::defined() const {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined()) result.push_back(tensor);
  return result;
}

std::string to_cpp(const Program& program) {
  static const char* const layouts[] = {"contiguous", "transposed", "every_second", "offset",
                                        "alias"};
  std::ostringstream text;
  text << "  Program program;\n  program.inputs = {\n";
  for (const InputSpec& input : program.inputs)
    text << "      {{" << join(input.sizes, [](int64_t i) { return std::to_string(i); })
         << "}, at::k" << input.dtype << ", Layout::" << layouts[static_cast<int>(input.layout)]
         << (input.requires_grad ? ", true" : ", false") << "},\n";
  text << "  };\n  program.calls = {\n";
  for (const Call& call : program.calls)
    text << "      {\"" << call.op << "\", {" << join(call.arguments, print_argument) << "}, "
         << call.first << ", " << call.count << "},\n";
  text << "  };\n  program.grad = " << (program.grad ? "true" : "false")
       << ";\n  program.chains = " << (program.chains ? "true" : "false")
       << ";\n  expect_replays(program);\n";
  return text.str();
}

}  // namespace flashlight::fuzz
