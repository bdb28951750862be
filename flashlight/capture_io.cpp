// Captures on disk: see composit/io/saved_capture.h for the folder.
#include <ATen/Context.h>
#include <c10/util/StringUtil.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <unordered_map>

#include "composit/family/saved_family.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/ir/lexer.h"
#include "flashlight/capture_state.h"
#include "flashlight/family_maker.h"
#include "flashlight/saved_state.h"
#include "flashlight/shared_memory.h"
#include "tracer/convert.h"
#include "tracer/memory_view.h"
#include "tracer/op_info.h"

namespace flashlight {
namespace {

using composit::InputKind;
using composit::Node;
using composit::SavedCapture;
using composit::UserError;

std::string producer() { return std::string("torch ") + TORCH_VERSION; }

std::string schema_of(const std::string& op) {
  const tracer::OpInfo* info = tracer::find_op(op);
  return info ? c10::str(*info->schema) : std::string();
}

// The operators LibTorch is called with, in-place originals included.
std::set<std::string> operators_of(const composit::Graph& graph) {
  std::set<std::string> names;
  for_each_node(graph, [&](const Node& node) {
    if (node.op().domain() != "composit") names.insert(node.op().str());
    if (const composit::Attribute* via = node.find_run("via")) names.insert(via->as<std::string>());
  });
  return names;
}

// Compares only the operators in use: another LibTorch is welcome as long as these have the same
// schemas.
void expect_same_schemas(const SavedCapture& saved, const std::filesystem::path& folder) {
  std::string differing;
  for (const std::string& schema : saved.schemas) {
    const std::string op = schema.substr(0, schema.find('('));
    const std::string now = schema_of(op);
    if (now == schema) continue;
    differing += "\n  saved:        " + schema +
                 "\n  this LibTorch: " + (now.empty() ? "no such operator" : now);
  }
  if (!differing.empty())
    throw UserError("[load] " + folder.string() + " was captured with " + saved.producer +
                    ", this is " + producer() +
                    "; operators it uses have other schemas, so capture again:" + differing);
}

const std::string& property(const SavedCapture& saved, const char* name,
                            const std::filesystem::path& folder) {
  const auto found = saved.properties.find(name);
  if (found == saved.properties.end())
    throw UserError("[load] " + (folder / "graph.txt").string() + " lacks the property '" + name +
                    "'; it was not saved by flashlight::Capture");
  return found->second;
}

std::string to_hex(const at::Tensor& bytes) {
  static const char* digits = "0123456789abcdef";
  std::string text;
  const auto* data = bytes.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < bytes.numel(); ++i) {
    text += digits[data[i] >> 4];
    text += digits[data[i] & 15];
  }
  return text;
}

at::Tensor from_hex(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size() / 2)}, at::kByte);
  auto* data = bytes.mutable_data_ptr<uint8_t>();
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    data[i / 2] = static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

constexpr const char* kGenerator = "generator ";
constexpr const char* kExampleGenerator = "example generator";
constexpr const char* kCounted = "counted ";
constexpr const char* kNote = "note ";
constexpr const char* kTied = "tied ";  // a further name of a parameter, and its name in the graph

std::vector<composit::Array> to_arrays(const std::vector<at::Tensor>& tensors) {
  std::vector<composit::Array> arrays;
  for (const at::Tensor& tensor : tensors) arrays.push_back(tracer::to_array(tensor.detach()));
  return arrays;
}

std::vector<at::Tensor> to_tensors(const std::vector<composit::Array>& arrays) {
  std::vector<at::Tensor> tensors;
  for (const composit::Array& array : arrays) tensors.push_back(tracer::to_tensor(array));
  return tensors;
}

std::set<std::string> written_inputs(const composit::Graph& graph) {
  std::set<std::string> names;
  for (const composit::Mutation& mutation : graph.mutations())
    names.insert(input_name(*mutation.target.node));
  return names;
}

// Sets the inputs of `state` with their values; `state` has the example.
void load_inputs(const SavedCapture& saved, CaptureBase::State& state) {
  const std::set<std::string> written = written_inputs(saved.graph);
  std::vector<at::Tensor> tensors;
  std::vector<size_t> arguments;  // indices among the inputs
  for (const composit::LazyTensor& input : saved.graph.inputs()) {
    const std::string& name = input_name(*input.node);
    const InputKind kind = input_kind(*input.node);
    at::Tensor tensor;
    if (kind != InputKind::user_input) {
      tensor = tracer::to_tensor(saved.weights.at(name));
      if (written.count(name) > 0)  // the file stays as it is
        tensor = tracer::copy_keeping_strides(tensor);
    } else if (arguments.size() < state.example_arguments.size()) {
      tensor = state.example_arguments[arguments.size()];
      arguments.push_back(tensors.size());
    }
    tensors.push_back(tensor);
    state.inputs.push_back({name, {}, kind});
  }
  share_memory(saved.graph, tensors);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (state.inputs[i].kind != InputKind::user_input) state.inputs[i].tensor = tensors[i];
  for (size_t i = 0; i < arguments.size(); ++i) state.example_arguments[i] = tensors[arguments[i]];
}

}  // namespace

namespace {

// Where the numbers that follow the calls are in the graph that is saved, which has no gradients.
// UserError where that graph does not show them: a loaded capture would not count.
std::vector<ChangingPlace> places_to_save(const CaptureBase::State& state) {
  std::vector<ChangingPlace> places = state.changing;
  if (state.replayed.gradients.empty()) return places;
  std::unordered_map<composit::Hash, std::vector<size_t>> saved;  // by node, in the order of nodes
  size_t count = 0;
  for_each_node(state.graph, [&](const Node& node) { saved[node.hash()].push_back(count++); });
  std::vector<std::pair<composit::Hash, size_t>> replayed;  // which of its equals a node is
  std::unordered_map<composit::Hash, size_t> equals;
  for_each_node(state.replayed.graph, [&](const Node& node) {
    replayed.emplace_back(node.hash(), equals[node.hash()]++);
  });
  for (ChangingPlace& place : places) {
    const auto& [hash, number] = replayed.at(place.node);
    if (saved[hash].size() != equals[hash]) state.expect_fixed_numbers("save");
    place.node = saved[hash][number];
  }
  return places;
}

// Saves the trust in the capture, and numbers that follow the calls, as one property each.
void save_trust(const CaptureBase::State& state, SavedCapture& saved) {
  saved.properties["trust"] = std::string(name(state.trust));
  for (size_t i = 0; i < state.notes.size(); ++i)
    saved.properties[kNote + std::to_string(i)] = state.notes[i];
  if (state.changing.empty()) return;
  saved.properties["next call"] = std::to_string(state.next_call);
  const std::vector<ChangingPlace> places = places_to_save(state);
  for (size_t i = 0; i < places.size(); ++i)
    saved.properties[kCounted + std::to_string(i)] =
        c10::str(places[i].node, " ", places[i].key, " ", print(places[i].formula));
}

// A formula, or what former versions wrote in place of one; nothing for other text.
std::optional<composit::NumberFormula> formula_from(const std::string& text) {
  if (const auto form = composit::CountForm::decode(text)) return formula_of(*form);
  try {
    composit::Lexer lexer(text, "number", 1);
    const composit::NumberFormula formula = composit::read_number_formula(lexer);
    if (lexer.peek().kind == composit::TokenKind::end) return formula;
  } catch (const UserError&) {  // told below, with the file
  }
  return std::nullopt;
}

ChangingPlace parse_counted(const std::string& text, const std::filesystem::path& folder) {
  std::istringstream in(text);
  ChangingPlace place;
  std::string formula;
  in >> place.node >> place.key >> std::ws;
  std::getline(in, formula);
  const auto read = formula_from(formula);
  bool calls_only = read.has_value();
  if (read)
    read->for_each_name(
        [&](const std::string& name) { calls_only = calls_only && name == composit::kCalls; });
  if (!in || !calls_only)
    throw UserError("[load] " + (folder / "graph.txt").string() +
                    ": expected a number that follows the calls, received '" + text + "'");
  place.formula = *read;
  return place;
}

void load_trust(const SavedCapture& saved, const std::filesystem::path& folder,
                CaptureBase::State& state) {
  for (const auto& [key, value] : saved.properties) {
    if (key.rfind(kNote, 0) == 0) state.notes.push_back(value);
    if (key.rfind(kCounted, 0) == 0) state.changing.push_back(parse_counted(value, folder));
    if (key == "next call") state.next_call = std::stoll(value);
    for (const Trust trust : {Trust::confirmed, Trust::equal_inputs, Trust::translated})
      if (key == "trust" && value == name(trust)) state.trust = trust;
  }
}

}  // namespace

std::vector<std::string> schemas_of(const composit::Graph& graph) {
  std::vector<std::string> schemas;
  for (const std::string& op : operators_of(graph)) schemas.push_back(schema_of(op));
  return schemas;
}

namespace {

// True if a call changes what is saved with the program.
bool writes_state(const composit::Graph& graph) {
  const auto& mutations = graph.mutations();
  return std::any_of(mutations.begin(), mutations.end(), [](const composit::Mutation& one) {
    return composit::input_kind(*one.target.node) != InputKind::user_input;
  });
}

// The results of the example in the state that is saved, which is that after the call that was
// captured; none where the program refuses another call.
std::vector<composit::Array> results_in_saved_state(const SavedCapture& saved) {
  const GeneratorStates before({});
  std::vector<composit::Array> results;
  try {
    const CaptureBase draft = FamilyMaker::of_saved(saved, "a capture");
    std::vector<at::Tensor> arguments;  // which the program may write
    for (const at::Tensor& argument : draft.example_arguments())
      arguments.push_back(tracer::copy_keeping_strides(argument));
    if (draft.example_generator().defined())
      at::Generator(at::globalContext().defaultGenerator(c10::kCPU))
          .set_state(draft.example_generator());
    results = to_arrays(draft.replay(arguments));
  } catch (const std::exception&) {
  }
  before.restore();
  return results;
}

}  // namespace

void CaptureBase::save(const std::filesystem::path& folder) const {
  SavedCapture all = saved();
  if (!all.example_outputs.empty() && writes_state(all.graph))
    all.example_outputs = results_in_saved_state(all);
  composit::save(all, folder);
}

SavedCapture CaptureBase::saved() const {
  expect_trust("what is saved");
  // As its numbers are now they would be constants, and tensors in their place give other bits.
  if (now().follows_own_values()) now().expect_fixed_numbers("save");
  expect_memory_is_shown(now().graph);
  SavedCapture saved;
  saved.graph = now().graph;
  saved.producer = producer();
  saved.schemas = schemas_of(now().graph);
  for (const NamedTensor& input : now().inputs) {
    if (input.kind == InputKind::user_input) continue;
    saved.weights.emplace(input.name, tracer::to_array(input.tensor.detach()));
    if (const auto tied = now().tied.find(input.name); tied != now().tied.end())
      for (const std::string& name : tied->second) saved.properties[kTied + name] = input.name;
  }
  saved.properties["arguments"] = str(now().arguments);
  saved.properties["results"] = str(now().results);
  saved.properties["grad"] = now().grad ? "true" : "false";
  for (const auto& [role, generator] : now().generators)
    if (role != "default") saved.properties[kGenerator + role] = to_hex(generator.get_state());
  if (now().example_generator.defined())
    saved.properties[kExampleGenerator] = to_hex(now().example_generator);
  saved.example_inputs = to_arrays(now().shown_arguments());
  saved.example_outputs = to_arrays(now().example_results);
  if (now().of_family) saved.properties[composit::kOfFamily] = "true";
  save_trust(*shared(), saved);
  return saved;
}

CaptureBase CaptureBase::load(const std::filesystem::path& folder) {
  const SavedCapture saved = composit::load(folder);
  if (composit::is_family(saved))
    throw UserError("[load] " + folder.string() +
                    ": expected a capture, received a family, which load_family reads");
  return of_saved(saved, folder);
}

namespace {

// Composites that are called whole choose their kernels by what requires a gradient.
void require_gradients(CaptureBase::State& state) {
  for (size_t i = 0; i < state.inputs.size(); ++i)
    if (state.inputs[i].kind != InputKind::user_input &&
        state.graph.inputs()[i].node->find_attribute("requires_grad") != nullptr)
      state.inputs[i].tensor.set_requires_grad(true);
}

}  // namespace

CaptureBase CaptureBase::of_saved(const SavedCapture& saved, const std::filesystem::path& folder) {
  expect_same_schemas(saved, folder);
  auto state = std::make_shared<State>();
  state->graph = saved.graph;
  state->arguments = parse_structure(property(saved, "arguments", folder));
  state->results = parse_structure(property(saved, "results", folder));
  state->grad = property(saved, "grad", folder) == "true";
  state->example_arguments = to_tensors(saved.example_inputs);
  state->example_results = to_tensors(saved.example_outputs);
  load_inputs(saved, *state);
  if (const auto found = saved.properties.find(kExampleGenerator); found != saved.properties.end())
    state->example_generator = from_hex(found->second);
  for (const auto& [name, value] : saved.properties) {
    if (name.rfind(kTied, 0) == 0) state->tied[value].push_back(name.substr(std::strlen(kTied)));
    if (name.rfind(kGenerator, 0) != 0) continue;
    at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU).clone();
    generator.set_state(from_hex(value));
    state->generators.emplace(name.substr(std::string(kGenerator).size()), generator);
  }
  state->of_family = saved.properties.contains(composit::kOfFamily);
  if (state->of_family) require_gradients(*state);
  state->replayed = {state->graph, state->inputs, {}};
  load_trust(saved, folder, *state);
  return CaptureBase(std::move(state));
}

}  // namespace flashlight
