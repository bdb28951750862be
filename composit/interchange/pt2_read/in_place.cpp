// Operators that write in place, and those that torch runs otherwise than their names say.
#include <algorithm>

#include "composit/interchange/pt2_read/graph_reader.h"
#include "composit/interchange/pt2_read/known.h"
#include "composit/ir/error.h"
#include "composit/ops/functions.h"

namespace composit::pt2_read {
namespace {

const std::string& first_name(const Json& node) {
  const Json& inputs = list_of(field(node, "inputs"));
  if (inputs.empty()) throw UserError("it has no argument");
  return text_of(field(field(field(inputs[0], "arg"), "as_tensor"), "name"));
}

bool is_true(const ArgumentValue& value) {
  const bool* truth = value.is_tensor() || value.is_list() ? nullptr : value.data().get_if<bool>();
  return truth != nullptr && *truth;
}

// Batch norms that write running values in training though their schemas do not say so.
bool writes_in_secret(Symbol op, const Schema& schema, const std::vector<ArgumentValue>& values) {
  const std::string_view base = op.base_name();
  const bool is_norm = base == "batch_norm" || base == "native_batch_norm" ||
                       base == "cudnn_batch_norm" || base == "miopen_batch_norm" ||
                       base == "instance_norm" || base == "_batch_norm_impl_index";
  if (!is_norm) return false;
  bool has_running = false, trains = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& name = schema.arguments[i].name;
    has_running = has_running || (name == "running_mean" && !values[i].is_none());
    trains = trains || ((name == "training" || name == "use_input_stats") && is_true(values[i]));
  }
  return has_running && trains;
}

}  // namespace

bool GraphReader::is_used_later(const std::string& name) const {
  const auto found = last_uses_.find(name);
  return inputs_.contains(name) || (found != last_uses_.end() && found->second > now_);
}

// All names of the value that is written name the new one from here on.
void GraphReader::write(const std::string& name, const LazyTensor& value) {
  for (const std::string& view : aliases_.views_beside(name))
    if (is_used_later(view))
      throw UserError("it writes to memory of which '" + view + "' is a view; " +
                      std::string(kAdvice));
  const std::vector<std::string> same = aliases_.same_as(name);
  for (const std::string& one : same)
    if (const auto input = inputs_.find(one);
        input != inputs_.end() && input->second == Written::refused)
      throw UserError("it writes to '" + one + "', which is no buffer, parameter or argument; " +
                      std::string(kAdvice));
  for (const std::string& one : same) {
    values_.insert_or_assign(one, ArgumentValue(value));
    if (inputs_.contains(one)) written_.insert(one);
  }
}

bool GraphReader::read_in_place(const Json& node, Symbol op) {
  const std::optional<Symbol> twin = functional_twin(op);
  const std::optional<Known> operation = twin ? known(*twin) : std::nullopt;
  if (!operation || known(op)) return false;
  const Call call(*operation->schema, arguments(node, *operation->schema));
  const std::string& target = first_name(node);
  const LazyTensor old = *tensor(target);
  std::vector<Type> types =
      operation->row != nullptr ? infer(*operation->row, call) : std::vector<Type>{old.type()};
  if (types.size() != 1 || types[0].sizes != old.sizes())
    throw UserError("it writes other sizes than are there");
  types[0].strides = types[0].dtype == old.dtype() ? old.type().strides : types[0].strides;
  const LazyTensor result = {make(call, types, operation->has_effect), 0};
  write(target,
        result.dtype() == old.dtype() ? result : make("aten::to.dtype", {result, old.dtype()})[0]);
  const Names names = result_names(node);
  if (names.size() != 1) throw UserError("it gives one tensor");
  expect_said(names[0], tensor(target)->type());
  values_.insert_or_assign(names[0], ArgumentValue(*tensor(target)));
  aliases_.add_same(names[0], target);
  return true;
}

bool GraphReader::read_special(const Json& node, Symbol op) {
  const std::string_view base = op.base_name();
  if (op.domain() != "aten") return false;
  const Names names = result_names(node);
  if (base == "lift_fresh_copy" && names.size() == 1) {
    bind(names, {operand(node, 0).tensor()});
    return true;
  }
  // Gradients stop here; memory is the same.
  if ((base == "detach" || base == "detach_") && names.size() == 1) {
    const LazyTensor x = operand(node, 0).tensor();
    const bool constant = !x || x.node->op() == ops::kConstant;
    const LazyTensor result = constant ? x : make("aten::detach", {x})[0];
    values_.insert_or_assign(names[0], ArgumentValue(result));
    aliases_.add_same(names[0], first_name(node));
    if (base == "detach_") write(first_name(node), result);
    return true;
  }
  const std::optional<Known> operation = known(op);
  if (!operation) return false;
  const bool dropout = op == Symbol("aten::dropout");
  if (!dropout && base.find("_norm") == std::string_view::npos) return false;
  const std::vector<ArgumentValue> values = arguments(node, *operation->schema);
  if (dropout) {
    const double p = values.at(1).data().as<double>();
    if (!is_true(values.at(2)) || !(p > 0 && p < 1) || values[0].tensor().numel() == 0)
      return false;
    read_dropout(node, values);
    return true;
  }
  if (!writes_in_secret(op, *operation->schema, values)) return false;
  if (op != Symbol("aten::batch_norm"))
    throw UserError("it writes its running values; " + std::string(kAdvice));
  read_batch_norm(node, values);
  return true;
}

// torch's own steps, which draw the same numbers.
void GraphReader::read_dropout(const Json& node, const std::vector<ArgumentValue>& values) {
  const LazyTensor& x = values[0].tensor();
  const double kept = 1 - values[1].data().as<double>();
  const LazyTensor memory = make("aten::empty_like", {x})[0];
  const LazyTensor mask = make("aten::bernoulli.p", {memory, kept})[0];
  const LazyTensor scaled = make("aten::div.Scalar", {mask, Attribute(Scalar(kept))})[0];
  const LazyTensors result = make("aten::mul.Tensor", {x, scaled});
  const Names names = result_names(node);
  if (names.size() != 1) throw UserError("it gives one tensor");
  expect_said(names[0], result[0].type());
  bind(names, result);
}

// The operator that gives the running values, which are then written.
void GraphReader::read_batch_norm(const Json& node, std::vector<ArgumentValue> values) {
  constexpr size_t kMean = 3, kVariance = 4, kArguments = 8;
  const auto name_of = [&](size_t argument) -> const std::string& {
    return text_of(field(
        field(field(list_of(field(node, "inputs")).at(argument), "arg"), "as_tensor"), "name"));
  };
  if (values.at(kVariance).is_none())
    throw UserError("it has one running value, and not the other");
  values.resize(kArguments);  // which library computes it is no part of it
  const LazyTensors results = make("aten::_native_batch_norm_legit_functional", std::move(values));
  const Names names = result_names(node);
  if (names.size() != 1) throw UserError("it gives one tensor");
  expect_said(names[0], results.at(0).type());
  bind(names, {results.at(0)});
  write(name_of(kMean), results.at(kMean));
  write(name_of(kVariance), results.at(kVariance));
}

}  // namespace composit::pt2_read
