// The signature of a program: what its inputs and results are.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "composit/family/saved_family.h"
#include "composit/family/size_tree.h"
#include "composit/interchange/pt2/archive.h"
#include "composit/interchange/pt2/arguments.h"
#include "composit/interchange/pt2/graph_writer.h"
#include "composit/interchange/pt2/sized_cases.h"
#include "composit/interchange/pt2/symbols.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"
#include "composit/passes/inline_calls.h"

namespace composit::pt2 {
namespace {

constexpr std::string_view kTied = "tied ";  // a property: a further name of a weight

std::string property(const SavedCapture& capture, const std::string& key) {
  const auto found = capture.properties.find(key);
  return found == capture.properties.end() ? "" : found->second;
}

// Keywords become parameters of a Python function.
void expect_identifiers(const std::vector<std::string>& keywords) {
  for (const std::string& keyword : keywords)
    if (keyword == "self" || interchange::UsedNames().identifier("", keyword) != keyword)
      throw UserError("the keyword '" + keyword +
                      "' of the program can be no parameter of a function in Python");
}

// The family that a saved one has; nothing for a capture of one size.
std::optional<Family> one_family(const SavedCapture& capture) {
  if (!is_family(capture)) return std::nullopt;
  return composit::family_of(capture).cases.at(0);
}

class Exporter {
 public:
  // `cases`: those of the capture that are chosen by sizes; nullptr: it has one.
  Exporter(const SavedCapture& capture, const Pt2Options& options,
           const SizedCases* cases = nullptr)
      : capture_(capture),
        options_(options),
        cases_(cases),
        family_(cases != nullptr ? cases->family() : one_family(capture)),
        symbols_(family_ ? std::make_unique<Symbols>(*family_) : nullptr),
        graph_(family_ ? family_->example : inline_calls(capture.graph)),
        program_(capture.schemas, symbols_.get(), cases),
        writer_(program_) {}

  Exported run() {
    for (const Mutation& mutation : graph_.mutations())
      written_.insert(composit::input_name(*mutation.target.node));
    add_weights(InputKind::parameter);
    add_weights(InputKind::buffer);
    add_arguments();
    writer_.add_nodes(graph_);
    program_.refusals().expect_none();
    if (family_) writer_.expect_all_numbers(*family_);
    add_mutations();
    add_results();
    program_.refusals().expect_none();
    put_constants_in_place();
    result_.program = program_json();
    return std::move(result_);
  }

 private:
  // ---- inputs -----------------------------------------------------------------------------------

  void add_input(Json argument, Json spec) {
    inputs_.push_back(std::move(argument));
    input_specs_.push_back(std::move(spec));
  }

  bool is_parameter(const std::string& name, InputKind kind) const {
    return kind == InputKind::parameter &&
           !(options_.parameters_as_buffers && written_.contains(name));
  }

  void add_weight(const std::string& name, const std::string& input, InputKind kind,
                  const Array& value, bool requires_grad) {
    const bool parameter = is_parameter(name, kind);
    if (parameter)
      add_input(tensor_json(input),
                {{"parameter", {{"arg", {{"name", input}}}, {"parameter_name", name}}}});
    else
      add_input(
          tensor_json(input),
          {{"buffer", {{"arg", {{"name", input}}}, {"buffer_name", name}, {"persistent", true}}}});
    result_.weights.add(name, value, parameter, requires_grad && parameter);
  }

  void add_weights(InputKind kind) {
    const std::string prefix = kind == InputKind::parameter ? "p_" : "b_";
    for (const LazyTensor& input : graph_.inputs()) {
      if (input_kind(*input.node) != kind) continue;
      const std::string& name = composit::input_name(*input.node);
      const auto value = capture_.weights.find(name);
      if (value == capture_.weights.end() || !value->second.defined())
        throw UserError("'" + name + "' has no value");
      const bool requires_grad = input.node->find_attribute("requires_grad") != nullptr;
      names_[input.node.get()] = program_.input_name(prefix, name);
      writer_.add_input(input, names_[input.node.get()], requires_grad);
      add_weight(name, names_[input.node.get()], kind, value->second, requires_grad);
      for (const auto& [key, first] : capture_.properties) {
        if (first != name || key.rfind(kTied, 0) != 0) continue;
        const std::string further = key.substr(kTied.size());
        const std::string unused = program_.input_name(prefix, further);
        writer_.declare(unused, input.type(), requires_grad);
        add_weight(further, unused, kind, value->second, requires_grad);
      }
    }
  }

  void add_arguments() {
    LazyTensors tensors;
    for (const LazyTensor& input : graph_.inputs())
      if (input_kind(*input.node) == InputKind::user_input) tensors.push_back(input);
    result_.arguments = call_structure(property(capture_, "arguments"), tensors.size());
    name_numbers();
    expect_identifiers(result_.arguments.children.at(1).keys);
    size_t next = 0;
    for (const Structure* leaf : leaves_of(result_.arguments)) {
      if (const auto number = numbers_.find(leaf); number != numbers_.end()) {
        add_number(*number->second);
        continue;
      }
      if (leaf->kind == Structure::Kind::tensor) {
        if (next < capture_.example_inputs.size())
          result_.examples.push_back(capture_.example_inputs[next]);
        const LazyTensor& input = tensors[next++];
        const std::string name = program_.input_name("", composit::input_name(*input.node));
        names_[input.node.get()] = name;
        writer_.add_input(input, name);
        writer_.expect_dtype(name, input.type().dtype);
        add_input(tensor_json(name), {{"user_input", {{"arg", tensor_json(name)}}}});
        continue;
      }
      const std::string name = program_.input_name("", "constant_argument");
      add_input(leaf->constant, {{"constant_input", {{"name", name}, {"value", leaf->constant}}}});
    }
    if (!family_) return;
    for (const FreeSize& size : family_->sizes) writer_.expect_range(size, graph_.inputs());
  }

  // The argument of the program that a number of this name is; nullptr: none.
  Structure* argument_called(const std::string& name) {
    Structure &positional = result_.arguments.children.at(0),
              &keywords = result_.arguments.children.at(1);
    for (size_t i = 0; i < keywords.keys.size(); ++i)
      if (keywords.keys[i] == name) return &keywords.children[i];
    for (size_t i = 0; i < positional.children.size(); ++i)
      if ("input_" + std::to_string(i) == name) return &positional.children[i];
    return nullptr;
  }

  // Numbers of a family that callers give: an argument of the program, or a keyword more.
  void name_numbers() {
    if (!family_) return;
    for (const FreeNumber& number : family_->numbers) {
      if (number.origin == NumberOrigin::read) continue;  // where the program reads it
      Structure* argument = argument_called(number.name);
      if (argument != nullptr && argument->kind == Structure::Kind::constant)
        argument->kind = Structure::Kind::tensor;
      else
        further_.push_back(&number);
    }
    expect_no_other_numbers();
    std::map<const FreeNumber*, std::string> keys;
    for (const FreeNumber* number : further_) {
      const std::string key = interchange::UsedNames().identifier("", number->name);
      if (argument_called(key) != nullptr)
        throw UserError("two arguments would be called '" + key + "'");
      keys[number] = key;
      result_.arguments.children.at(1).keys.push_back(key);
      result_.arguments.children.at(1).children.emplace_back();
    }
    for (const FreeNumber& number : family_->numbers)
      if (number.origin != NumberOrigin::read)
        numbers_.emplace(argument_called(keys.contains(&number) ? keys[&number] : number.name),
                         &number);
  }

  // A number that is no argument by its name must be none by its value either.
  void expect_no_other_numbers() const {
    for (const Structure* leaf : leaves_of(result_.arguments)) {
      if (leaf->kind != Structure::Kind::constant || !leaf->constant.contains("as_float")) continue;
      for (const FreeNumber* number : further_)
        if (!number->shown.empty() && leaf->constant["as_float"] == number->shown[0])
          throw UserError("the number '" + number->name +
                          "' may be an argument within another one, which has no form");
    }
  }

  void add_number(const FreeNumber& number) {
    const std::string name = program_.input_name("", number.name);
    const Type type = tensor_type(DType::float64, {});
    writer_.declare(name, type);
    writer_.expect_dtype(name, DType::float64);
    writer_.add_number(number, name);
    add_input(tensor_json(name), {{"user_input", {{"arg", tensor_json(name)}}}});
    if (!capture_.example_inputs.empty())
      result_.examples.push_back(array_of(type, std::vector<double>{number.shown.at(0)}));
  }

  Json range_constraints() const {
    Json ranges = symbols_ ? symbols_->range_constraints() : Json::object();
    for (size_t i = 0; cases_ != nullptr && i < cases_->tree().leaves.size(); ++i) {
      const Json of_leaf = cases_->symbols(i).range_constraints();
      for (const auto& [symbol, range] : of_leaf.items())
        if (!ranges.contains(symbol)) ranges[symbol] = range;
    }
    for (size_t i = 0; i < writer_.open_numbers(); ++i)
      ranges["zuf" + std::to_string(i)] = {{"min_val", nullptr}, {"max_val", nullptr}};
    return ranges;
  }

  // Between the weights and the arguments: what the nodes turned out to need.
  void put_constants_in_place() {
    Json inputs = Json::array(), specs = Json::array();
    for (const Constant& constant : program_.constants()) {
      writer_.declare(constant.input, constant.value.type());
      inputs.push_back(tensor_json(constant.input));
      specs.push_back(
          {{"tensor_constant",
            {{"arg", {{"name", constant.input}}}, {"tensor_constant_name", constant.name}}}});
      result_.constants.add(constant.name, constant.value, false, false);
    }
    const auto is_argument = [](const Json& spec) {
      const std::string& kind = spec.begin().key();
      return kind == "user_input" || kind == "constant_input";
    };
    const auto first = std::find_if(input_specs_.begin(), input_specs_.end(), is_argument);
    const auto place = first - input_specs_.begin();
    input_specs_.insert(first, specs.begin(), specs.end());
    inputs_.insert(inputs_.begin() + place, inputs.begin(), inputs.end());
  }

  // ---- results ----------------------------------------------------------------------------------

  void add_output(Json argument, Json spec) {
    outputs_.push_back(std::move(argument));
    output_specs_.push_back(std::move(spec));
  }

  // Before results, as torch expects.
  void add_mutations() {
    for (const Mutation& mutation : graph_.mutations()) {
      const Node& target = *mutation.target.node;
      const std::string& name = composit::input_name(target);
      const std::string value = writer_.name_of(mutation.value);
      const InputKind kind = input_kind(target);
      const std::string spec = kind == InputKind::user_input ? "user_input_mutation"
                               : is_parameter(name, kind)    ? "parameter_mutation"
                                                             : "buffer_mutation";
      const std::string key = kind == InputKind::user_input ? "user_input_name"
                              : is_parameter(name, kind)    ? "parameter_name"
                                                            : "buffer_name";
      const std::string& named = kind == InputKind::user_input ? names_.at(&target) : name;
      add_output(tensor_json(value), {{spec, {{"arg", {{"name", value}}}, {key, named}}}});
    }
  }

  void add_results() {
    LazyTensors tensors;
    for (const LazyTensor& output : graph_.outputs())
      if (output) tensors.push_back(output);
    // An absent result is None in the structure where there is one.
    results_ = structure_of(property(capture_, "results"), tensors.size());
    size_t next = 0;
    for (const Structure* leaf : leaves_of(results_)) {
      if (leaf->constant.contains("as_string"))
        throw UserError("the result " + leaf->constant.begin().value().dump() +
                        " is neither a tensor nor a number, which torch.export cannot give");
      const Json argument = leaf->kind == Structure::Kind::tensor
                                ? tensor_json(writer_.name_of(tensors[next++]))
                                : leaf->constant;
      add_output(argument, {{"user_output", {{"arg", argument}}}});
    }
  }

  Json program_json() const {
    const Json signature = {{"inputs", Json::array()},
                            {"outputs", Json::array()},
                            {"in_spec", text_of_spec(result_.arguments)},
                            {"out_spec", text_of_spec(results_)},
                            {"forward_arg_names", nullptr}};
    return {{"graph_module",
             {{"graph", writer_.graph_json(inputs_, outputs_)},
              {"signature", {{"input_specs", input_specs_}, {"output_specs", output_specs_}}},
              {"module_call_graph", Json::array({{{"fqn", ""}, {"signature", signature}}})},
              {"metadata", Json::object()},
              {"treespec_namedtuple_fields", Json::object()}}},
            {"opset_version", {{"aten", kAtenVersion}}},
            {"range_constraints", range_constraints()},
            {"schema_version", {{"major", kMajor}, {"minor", kMinor}}},
            {"verifiers", Json::array({"ATEN"})},
            {"torch_version", capture_.producer}};
  }

  const SavedCapture& capture_;
  const Pt2Options& options_;
  const SizedCases* const cases_;
  const std::optional<Family> family_;
  const std::unique_ptr<Symbols> symbols_;
  const Graph graph_;
  Program program_;
  GraphWriter writer_;
  std::set<std::string> written_;                          // names of inputs
  std::map<const Node*, std::string> names_;               // of inputs in the file
  std::map<const Structure*, const FreeNumber*> numbers_;  // arguments that are numbers
  std::vector<const FreeNumber*> further_;                 // numbers that are no arguments
  Json inputs_ = Json::array(), input_specs_ = Json::array();
  Json outputs_ = Json::array(), output_specs_ = Json::array();
  Structure results_;
  Exported result_;
};

}  // namespace

Exported exported(const SavedCapture& capture, const Pt2Options& options) {
  if (capture.cases.empty()) return Exporter(capture, options).run();
  SizeTree tree = size_tree(capture);
  if (tree.leaves.size() == 1) return Exporter(tree.leaves[0], options).run();
  const SizedCases cases(std::move(tree), capture);
  return Exporter(cases.whole(), options, &cases).run();
}

}  // namespace composit::pt2
