// The program of a file as a capture: what its signature says of inputs, results and writes.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "composit/family/saved_family.h"
#include "composit/interchange/pt2.h"
#include "composit/interchange/pt2/arguments.h"
#include "composit/interchange/pt2_read/archive.h"
#include "composit/interchange/pt2_read/dynamic.h"
#include "composit/interchange/pt2_read/examples.h"
#include "composit/interchange/pt2_read/graph_reader.h"
#include "composit/interchange/pt2_read/structure.h"
#include "composit/interchange/pt2_read/symbols.h"
#include "composit/interchange/pt2_read/weights.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ir/scope.h"
#include "composit/ir/verify.h"

namespace composit {
namespace pt2_read {
namespace {

using Written = GraphReader::Written;

// An input of the signature.
struct InputSpec {
  std::string kind;   // "parameter"
  std::string value;  // the name of the graph's input
  std::string name;   // of the weight
};

// Names of weights in the signature's words.
std::string name_key(const std::string& kind) {
  if (kind == "parameter" || kind == "buffer") return kind + "_name";
  return "tensor_constant_name";
}

Structure constant_leaf(const Json& value) {
  const auto [kind, content] = only_field(value);
  Structure leaf{.kind = Structure::Kind::constant};
  if (kind == "as_none") leaf.constant = pt2::none_json();
  if (kind == "as_int") leaf.constant = pt2::number_json(int_of(*content));
  if (kind == "as_float") leaf.constant = pt2::number_json(real_of(*content));
  if (kind == "as_bool") leaf.constant = pt2::number_json(truth_of(*content));
  if (kind == "as_string") leaf.constant = {{"as_string", text_of(*content)}};
  if (leaf.constant.is_null())
    throw UserError("expected a tensor, a number, text or none, received " + shown(value));
  return leaf;
}

class Importer {
 public:
  // `with_example`: the sizes are those of the example, which is read, too.
  Importer(const Archive& archive, const Json& program, Sizes sizes, bool with_example)
      : archive_(archive),
        with_example_(with_example),
        module_(field(program, "graph_module")),
        graph_(field(module_, "graph")),
        signature_(field(module_, "signature")),
        program_(std::move(sizes)),
        reader_(program_, graph_),
        weights_(archive, "data/weights", "model_weights_config.json"),
        constants_(archive, "data/constants", "model_constants_config.json") {}

  SavedCapture run() {
    note_weights();
    for (const Json& spec : list_of(field(signature_, "input_specs"))) add_input(spec);
    reader_.read();
    program_.refusals.expect_none();
    for (const Json& spec : list_of(field(signature_, "output_specs"))) add_output(spec);
    add_writes();
    parts_.effects = reader_.effects();
    // Arguments come first, as in captures of programs that ran.
    std::stable_partition(parts_.inputs.begin(), parts_.inputs.end(), [](const LazyTensor& one) {
      return input_kind(*one.node) == InputKind::user_input;
    });
    capture_.graph = Graph(std::move(parts_));
    add_structure();
    expect_legal();
    return std::move(capture_);
  }

 private:
  // ---- inputs -----------------------------------------------------------------------------------

  // Inputs of a graph have names of their own: an argument may be called as a weight is.
  void note_weights() {
    for (const Json& spec : list_of(field(signature_, "input_specs"))) {
      const auto [kind, content] = only_field(spec);
      if (kind == "parameter" || kind == "buffer")
        taken_.insert(text_of(field(*content, name_key(std::string(kind)).c_str())));
    }
  }

  void add_input(const Json& spec) {
    const auto [kind, content] = only_field(spec);
    if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant")
      return add_weight({std::string(kind), text_of(field(field(*content, "arg"), "name")),
                         text_of(field(*content, name_key(std::string(kind)).c_str()))});
    if (kind == "user_input") return add_argument(field(*content, "arg"));
    if (kind == "constant_input") {
      arguments_.push_back(constant_leaf(field(*content, "value")));
      return;
    }
    throw UserError("an input of kind '" + std::string(kind.substr(0, 40)) +
                    "': objects of classes and tokens of effects are not read");
  }

  void add_argument(const Json& argument) {
    const auto [kind, content] = only_field(argument);
    if (kind == "as_tensor") {
      const std::string& name = text_of(field(*content, "name"));
      const LazyTensor value = input(unused_name(name, taken_), reader_.type_of(name));
      parts_.inputs.push_back(value);
      inputs_.emplace(name, value);
      reader_.add_input(name, value, Written::allowed);
      arguments_.emplace_back();
    } else if (kind.starts_with("as_sym_")) {
      throw UserError(
          "an argument that is a number of any value; export the program with that "
          "number, or with a tensor");
    } else {
      arguments_.push_back(constant_leaf(argument));
    }
  }

  void add_weight(const InputSpec& spec) {
    StoredTensors& stored = weights_.contains(spec.name) ? weights_ : constants_;
    const StoredTensor& where = stored.find(spec.name);
    const Type type = reader_.type_of(spec.value);
    if (type.dtype != where.type.dtype || type.sizes != where.type.sizes)
      throw UserError("'" + spec.name + "' is " + print(where.type) + ", the program takes " +
                      print(type));
    const Array array = stored.array(spec.name);
    if (spec.kind == "tensor_constant") {
      reader_.add_input(spec.value, constant(array, spec.name));
      return;
    }
    LazyTensor value = tied_to(spec, where);
    if (!value) {
      value = weight(spec, where, array);
      parts_.inputs.push_back(value);
      capture_.weights.emplace(spec.name, array);
    }
    inputs_.emplace(spec.value, value);
    names_[spec.kind + " " + spec.name] = spec.value;
    reader_.add_input(spec.value, value, Written::allowed);
    for (const auto& [other, place] : placed_)
      if (place.entry == where.entry) reader_.tie_input(spec.value, other, place == where);
    placed_.emplace_back(spec.value, where);
  }

  // The input that is the same weight under another name; empty where there is none.
  LazyTensor tied_to(const InputSpec& spec, const StoredTensor& where) {
    for (const auto& [other, place] : placed_) {
      const LazyTensor& first = inputs_.at(other);
      if (!(place == where) || input_kind(*first.node) != kind_of(spec)) continue;
      capture_.properties["tied " + spec.name] = input_name(*first.node);
      return first;
    }
    return {};
  }

  static InputKind kind_of(const InputSpec& spec) {
    return spec.kind == "parameter" ? InputKind::parameter : InputKind::buffer;
  }

  // An input of the array's strides, which holds its value.
  static LazyTensor weight(const InputSpec& spec, const StoredTensor& where, const Array& array) {
    const LazyTensor plain = input(spec.name, array.type(), kind_of(spec));
    NodeSpec node(ops::kInput);
    node.attributes = plain.node->attributes();
    if (where.requires_grad && spec.kind == "parameter") node.attribute("requires_grad", true);
    node.held = array;
    return std::move(node.output(array.type())).make();
  }

  // ---- results ----------------------------------------------------------------------------------

  void add_output(const Json& spec) {
    const auto [kind, content] = only_field(spec);
    if (kind == "user_output") return add_result(field(*content, "arg"));
    const std::string& value = text_of(field(field(*content, "arg"), "name"));
    if (kind == "buffer_mutation" || kind == "parameter_mutation") {
      const std::string weight = kind == "buffer_mutation" ? "buffer" : "parameter";
      const std::string& name = text_of(field(*content, name_key(weight).c_str()));
      const auto found = names_.find(weight + " " + name);
      if (found == names_.end())
        throw UserError("it writes the " + weight + " '" + name + "', which is no input");
      return add_mutation(found->second, value);
    }
    if (kind == "user_input_mutation")
      return add_mutation(text_of(field(*content, "user_input_name")), value);
    throw UserError("a result of kind '" + std::string(kind.substr(0, 40)) +
                    "'; export the program before its derivative is taken: composit differentiates "
                    "it");
  }

  void add_result(const Json& argument) {
    const auto [kind, content] = only_field(argument);
    if (kind == "as_tensor") {
      parts_.outputs.push_back(*reader_.tensor(text_of(field(*content, "name"))));
      results_.emplace_back();
    } else if (kind.starts_with("as_sym_")) {
      if (!program_.sizes.values().empty())
        throw UserError("a result that is a number, which follows from sizes; return a tensor");
      const ArgumentValue value = reader_.value_of(argument);
      results_.push_back({.kind = Structure::Kind::constant, .constant = number_of(value.data())});
    } else {
      results_.push_back(constant_leaf(argument));
    }
  }

  static pt2::Json number_of(const Attribute& value) {
    if (const bool* truth = value.get_if<bool>()) return pt2::number_json(*truth);
    if (const double* real = value.get_if<double>()) return pt2::number_json(*real);
    return pt2::number_json(value.as_int());
  }

  void add_mutation(const std::string& target, const std::string& value) {
    const auto found = inputs_.find(target);
    if (found == inputs_.end()) throw UserError("it writes '" + target + "', which is no input");
    for (const auto& [other, place] : placed_)
      if (other != target && !(inputs_.at(other) == found->second) && is_beside(other, target))
        throw UserError("it writes '" + target + "', whose memory '" + other + "' shares");
    add_mutation(found->second, *reader_.tensor(value));
  }
  bool is_beside(const std::string& a, const std::string& b) const {
    const auto entry = [&](const std::string& name) {
      const auto found = std::find_if(placed_.begin(), placed_.end(),
                                      [&](const auto& one) { return one.first == name; });
      return found == placed_.end() ? std::string() : found->second.entry;
    };
    return !entry(a).empty() && entry(a) == entry(b);
  }

  void add_mutation(const LazyTensor& target, const LazyTensor& value) {
    if (target.dtype() != value.dtype() || target.sizes() != value.sizes())
      throw UserError("it writes " + print(value.type()) + " to " + print(target.type()));
    for (const Mutation& known : parts_.mutations)
      if (known.target == target) {
        if (known.value == value) return;  // a tied weight under its other name
        throw UserError("it writes '" + input_name(*target.node) + "' twice");
      }
    parts_.mutations.push_back({target, value});
  }

  // Writes in place, of the training dialect.
  void add_writes() {
    for (const std::string& name : reader_.written())
      if (const auto found = inputs_.find(name); found != inputs_.end())
        add_mutation(found->second, *reader_.tensor(name));
  }

  // ---- the whole --------------------------------------------------------------------------------

  const Json& main_signature() const {
    for (const Json& call : list_of(field(module_, "module_call_graph")))
      if (text_of(field(call, "fqn")).empty()) return field(call, "signature");
    throw UserError("the file does not say how its arguments are structured");
  }

  void add_structure() {
    const Json* fields = find_field(module_, "treespec_namedtuple_fields");
    const Json none = Json::object();
    const Json& named = fields == nullptr ? none : *fields;
    const Json& call = main_signature();
    structure_ = structure_of_spec(text_of(field(call, "in_spec")), arguments_, named);
    capture_.properties["arguments"] = text_of(structure_);
    capture_.properties["results"] =
        text_of(structure_of_spec(text_of(field(call, "out_spec")), results_, named));
    capture_.properties["grad"] = "false";
    // Composites choose their kernels when they run, by what requires a gradient.
    capture_.properties[kOfFamily] = "true";
    capture_.properties["trust"] = "made from its source";
    if (with_example_) add_example();
  }

  // A program is right without an example, and not with a damaged one.
  void add_example() {
    try {
      std::vector<Array> example = example_inputs(archive_, structure_);
      if (example.empty()) return;
      expect_types(example);
      capture_.example_inputs = std::move(example);
    } catch (const ObjectsNotRead& error) {
      capture_.properties["note 0"] = std::string(error.what()) + "; the capture has no example";
    }
  }
  void expect_types(const std::vector<Array>& example) const {
    size_t next = 0;
    for (const LazyTensor& input : capture_.graph.inputs()) {
      if (input_kind(*input.node) != InputKind::user_input) continue;
      const Type& type = example.at(next++).type();
      if (type.dtype != input.dtype() || type.sizes != input.sizes())
        throw UserError("the example arguments: they are of other types than the program's");
    }
  }

  void expect_legal() const {
    try {
      verify(capture_.graph);
    } catch (const InternalError& error) {
      throw UserError(std::string("it describes no legal graph: ") + error.what());
    }
  }

  const Archive& archive_;
  const bool with_example_;
  const Json& module_;
  const Json& graph_;
  const Json& signature_;
  Program program_;
  GraphReader reader_;
  StoredTensors weights_, constants_;
  std::map<std::string, LazyTensor> inputs_;  // by the graph's names
  std::map<std::string, std::string> names_;  // of inputs, by kind and name of a weight
  std::vector<std::pair<std::string, StoredTensor>> placed_;  // weights by the graph's names
  std::vector<Structure> arguments_, results_;                // leaves
  std::set<std::string> taken_;                               // names of inputs
  Structure structure_;                                       // of arguments
  Graph::Parts parts_;
  SavedCapture capture_;
};

void expect_version(const Json& program) {
  const Json& version = field(program, "schema_version");
  if (const int64_t major = int_of(field(version, "major")); major != pt2::kMajor)
    throw UserError("expected version " + std::to_string(pt2::kMajor) +
                    " of torch.export's schema, received " + std::to_string(major));
}

std::string producer_of(const Json& program) {
  const Json* version = find_field(program, "torch_version");
  return version != nullptr && version->is_string() ? "torch.export " + text_of(*version)
                                                    : "torch.export";
}

SavedCapture read(const std::filesystem::path& file) {
  const Archive archive(file);
  if (!archive.find("models/model.json"))
    throw UserError(
        "the archive has no program 'models/model.json'; a package of AOTInductor has "
        "compiled code alone");
  const Json program = archive.json("models/model.json");
  expect_version(program);
  const Sizes sizes = example_sizes(field(field(program, "graph_module"), "graph"));
  SavedCapture capture = Importer(archive, program, sizes, /*with_example=*/true).run();
  capture.producer = producer_of(program);
  const ReadAt read_at = [&](const SymbolValues& values) {
    return Importer(archive, program, Sizes(values), /*with_example=*/false).run().graph;
  };
  const FreeSymbols symbols(program, sizes.values(), read_at);
  return symbols.empty() ? capture : family_at(capture, symbols, sizes.values(), read_at);
}

}  // namespace
}  // namespace pt2_read

SavedCapture load_pt2(const std::filesystem::path& file) {
  try {
    return pt2_read::read(file);
  } catch (const UserError& error) {
    throw UserError("[pt2] " + file.string() + ": " + error.what());
  }
}

bool is_pt2(const std::filesystem::path& file) {
  try {
    const pt2_read::Archive archive(file);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace composit
