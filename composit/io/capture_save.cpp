#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "composit/io/capture_format.h"
#include "composit/io/log.h"
#include "composit/io/replacement_folder.h"
#include "composit/io/safetensors.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/array_store.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/ir/print.h"

namespace composit {
namespace {

namespace fs = std::filesystem;

// ---- what can be saved --------------------------------------------------------------------------

// True if an attribute cannot be saved; regions are checked elsewhere.
bool holds_opaque(const Attribute& attribute) {
  const List* list = attribute.get_if<List>();
  return attribute.get_if<Opaque>() != nullptr ||
         (list != nullptr && std::any_of(list->items.begin(), list->items.end(), holds_opaque));
}

void add_regions(const Attribute& attribute, std::vector<const Graph*>& regions) {
  if (const Region* region = attribute.get_if<Region>(); region && *region)
    regions.push_back(region->get());
  if (const List* list = attribute.get_if<List>())
    for (const Attribute& item : list->items) add_regions(item, regions);
}

void check_attributes(const Graph& graph) {
  std::vector<const Graph*> pending{&graph};
  while (!pending.empty()) {
    const Graph& next = *pending.back();
    pending.pop_back();
    for (const NodePtr& node : next.nodes()) {
      for (const auto* attributes : {&node->attributes(), &node->execution()}) {
        for (const NamedAttribute& attribute : *attributes) {
          if (holds_opaque(attribute.value))
            throw UserError(
                fmt::format("attribute '{}' holds an object that only this process knows and that "
                            "cannot be saved: {}",
                            attribute.key(), print(*node, Names(next), {.brief = true})));
          add_regions(attribute.value, pending);
        }
      }
    }
  }
}

void check_weights(const SavedCapture& capture) {
  std::set<std::string> names;
  for (const LazyTensor& input : capture.graph.inputs()) {
    if (!io::is_weight(*input.node)) continue;
    const std::string& name = input_name(*input.node);
    const std::string_view kind = composit::name(input_kind(*input.node));
    const auto weight = capture.weights.find(name);
    if (weight == capture.weights.end() || !weight->second.defined())
      throw UserError(fmt::format("{} '{}' has no value", kind, name));
    if (weight->second.type() != input.type())
      throw UserError(fmt::format("{} '{}': the graph expects {}, its value is {}", kind, name,
                                  print(input.type()), print(weight->second.type())));
    names.insert(name);
  }
  for (const auto& [name, value] : capture.weights)
    if (!names.contains(name))
      throw UserError(fmt::format("weight '{}' is no parameter or buffer of the graph", name));
}

void check_example(const std::vector<Array>& arrays, std::string_view role) {
  for (size_t i = 0; i < arrays.size(); ++i)
    if (!arrays[i].defined()) throw UserError(fmt::format("example {} {} has no value", role, i));
}

void check(const SavedCapture& capture) {
  check_attributes(capture.graph);
  check_weights(capture);
  check_example(capture.example_inputs, "input");
  check_example(capture.example_outputs, "output");
}

// An empty folder has nothing to lose; anything else must be a capture and nothing but a capture.
void check_replaceable(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  if (!fs::is_directory(folder)) throw UserError("there is a file of this name");
  if (fs::is_empty(folder)) return;
  const fs::path graph = folder / io::kGraphFile;
  if (!fs::is_regular_file(graph) || !io::MappedFile::open(graph)->text().starts_with(io::kMagic))
    throw UserError("there is a folder of this name that holds no capture; it is left as it is");
  std::set<std::string> ours = {io::kGraphFile, io::kWeightsFile, io::kExampleFile};
  for (size_t number = 1; fs::exists(folder / io::graph_file(number)); ++number)
    ours.insert(io::graph_file(number));
  for (const auto& entry : fs::directory_iterator(folder))
    if (!ours.contains(entry.path().filename().string()))
      throw UserError(fmt::format("'{}' in it is no part of a capture, and would be lost",
                                  entry.path().filename().string()));
}

// ---- files --------------------------------------------------------------------------------------

// The arrays of weights.safetensors. What lies in the same memory is stored once, under the first
// name it comes with.
class WeightStore : public ArrayStore {
 public:
  // The name under which `array` is stored: `name`, or the one that it has already.
  std::string add(const std::string& name, const Array& array) {
    const Array stored = io::stored_form(array);
    const auto [known, added] = names_.try_emplace(
        {stored.data(), stored.type().dtype, stored.type().sizes, stored.type().strides}, name);
    if (added && !contents_.tensors.emplace(name, stored).second)
      throw UserError(fmt::format("'{}' is not the same array in all cases", name));
    return known->second;
  }

  std::string put(const Array& array, std::string_view hint) override {
    const std::string wanted(hint.empty() ? "constant" : hint);
    std::string name = wanted;
    while (contents_.tensors.contains(name))
      name = fmt::format("{}_{}", wanted, ++last_number_[wanted]);
    return add(name, array);
  }
  Array get(std::string_view name, const Type&) const override {
    throw UserError(fmt::format("array '{}' is being written", name));
  }

  const Safetensors& contents() const { return contents_; }

 private:
  std::map<std::tuple<const std::byte*, DType, std::vector<int64_t>, std::vector<int64_t>>,
           std::string>
      names_;
  std::map<std::string, int> last_number_;  // by hint
  Safetensors contents_;
};

void add_line(std::string& text, std::string_view key,
              std::initializer_list<std::string_view> values) {
  text += key;
  for (std::string_view value : values) {
    text += ' ';
    append_quoted(text, value);
  }
  text += '\n';
}

int64_t version_of(const SavedCapture& capture) {
  if (!capture.cases.empty()) return io::kCasesVersion;
  return capture.formulas.size() > 0 ? io::kFamilyVersion : io::kVersion;
}

// Puts weights and large constants into `store`.
std::string graph_text(const SavedCapture& capture, WeightStore& store) {
  std::string text = fmt::format("{}{}\n", io::kMagic, version_of(capture));
  add_line(text, "producer", {capture.producer});
  for (const std::string& schema : capture.schemas) add_line(text, "schema", {schema});
  for (const auto& [key, value] : capture.properties) add_line(text, "property", {key, value});
  for (const auto& [name, value] : capture.weights)
    if (const std::string stored = store.add(name, value); stored != name)
      add_line(text, "tied", {name, stored});
  for (const Array& array : capture.example_inputs)
    text += fmt::format("example_input {}\n", print(array.type()));
  for (const Array& array : capture.example_outputs)
    text += fmt::format("example_output {}\n", print(array.type()));
  if (!capture.cases.empty()) text += fmt::format("cases {}\n", capture.cases.size());
  return text + print(capture.graph, {.arrays = &store, .formulas = &capture.formulas}) + "\n";
}

void add_example(const SavedCapture& capture, size_t number, Safetensors& contents) {
  const auto add = [&](std::string_view role, const std::vector<Array>& arrays) {
    for (size_t i = 0; i < arrays.size(); ++i)
      contents.tensors.emplace(io::example_name(role, i, number), io::stored_form(arrays[i]));
  };
  add("input", capture.example_inputs);
  add("output", capture.example_outputs);
}

void write_text(const std::string& text, const fs::path& path) {
  io::OutputFile file(path);
  file.write(text);
  file.sync();
  file.commit();
}

void write_files(const SavedCapture& capture, const fs::path& folder) {
  WeightStore store;
  Safetensors example;
  std::vector<std::string> texts = {graph_text(capture, store)};
  add_example(capture, 0, example);
  for (const SavedCapture& further : capture.cases) {
    add_example(further, texts.size(), example);
    texts.push_back(graph_text(further, store));
  }
  write_safetensors(store.contents(), folder / io::kWeightsFile);
  write_safetensors(example, folder / io::kExampleFile);
  for (size_t number = texts.size(); number-- > 0;)
    write_text(texts[number], folder / io::graph_file(number));
}

uint64_t size_of(const fs::path& folder) {
  uint64_t size = 0;
  for (const auto& entry : fs::directory_iterator(folder)) size += entry.file_size();
  return size;
}

}  // namespace

void save(const SavedCapture& capture, const fs::path& folder) {
  const Progress progress("saving " + folder.string(), 1);
  try {
    check(capture);
    for (const SavedCapture& further : capture.cases) check(further);
    check_replaceable(folder);
    io::ReplacementFolder replacement(folder);
    write_files(capture, replacement.path());
    replacement.commit();
    if (progress.is_long())
      log().info("saved {}: {} nodes, {} in {:.1f} s", folder.string(), capture.graph.size(),
                 format_bytes(size_of(replacement.target())), progress.seconds());
  } catch (const UserError& error) {
    throw UserError(fmt::format("[save] {}: {}", folder.string(), error.what()));
  } catch (const fs::filesystem_error& error) {
    throw UserError(fmt::format("[save] {}: {}", folder.string(), error.what()));
  }
}

}  // namespace composit
