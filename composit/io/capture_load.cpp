#include <spdlog/spdlog.h>

#include <optional>
#include <string_view>

#include "composit/io/capture_format.h"
#include "composit/io/file.h"
#include "composit/io/log.h"
#include "composit/io/safetensors.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/array_store.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/ir/parse.h"

namespace composit {
namespace {

namespace fs = std::filesystem;

// The arrays of a file, each made once per type that is asked for: tied weights stay tied.
class LoadedArrays : public ArrayStore {
 public:
  explicit LoadedArrays(const fs::path& file)
      : file_(file.string()), stored_(read_safetensors(file).tensors) {}

  std::string put(const Array&, std::string_view hint) override { return std::string(hint); }

  Array get(std::string_view name, const Type& type) const override {
    const auto stored = stored_.find(std::string(name));
    if (stored == stored_.end())
      throw UserError(fmt::format("[load] {}: there is no array '{}'", file_, name));
    auto& made = made_[stored->first];
    for (const Array& array : made)
      if (array.type() == type) return array;
    made.push_back(
        io::restored(stored->second, type, fmt::format("[load] {}: array '{}'", file_, name)));
    return made.back();
  }

 private:
  std::string file_;
  std::map<std::string, Array> stored_;
  mutable std::map<std::string, std::vector<Array>> made_;
};

// Reads the head of graph.txt, line by line.
class HeadReader {
 public:
  HeadReader(const fs::path& file, std::string_view text, SavedCapture& capture)
      : file_(file.string()), text_(text), capture_(capture) {}

  std::map<std::string, std::string> tied;
  std::vector<Type> example_inputs;
  std::vector<Type> example_outputs;
  size_t cases = 0;

  void read() {
    read_version();
    while (!text_.starts_with("graph(")) {
      if (text_.empty()) fail("a graph", "the end of the file");
      next_line();
      read_line();
    }
  }

  // Parses the text after the head.
  Graph parse_graph(const ArrayStore& arrays) {
    return parse(text_, {.arrays = &arrays,
                         .file = file_,
                         .first_line = line_ + 1,
                         .formulas = has_formulas_ ? &capture_.formulas : nullptr});
  }

 private:
  [[noreturn]] void fail(std::string_view expected, std::string_view received) const {
    throw UserError(
        fmt::format("[load] {}:{}: expected {}, received {}", file_, line_, expected, received));
  }
  [[noreturn]] void fail(std::string_view expected) const {
    fail(expected, fmt::format("'{}'", rest_.substr(0, 60)));
  }

  void next_line() {
    ++line_;
    const size_t end = text_.find('\n');
    rest_ = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
  }

  void read_version() {
    next_line();
    if (!rest_.starts_with(io::kMagic)) fail(fmt::format("'{}{}'", io::kMagic, io::kVersion));
    const auto version = parse_int(rest_.substr(io::kMagic.size()));
    if (!version || *version < io::kVersion || *version > io::kCasesVersion)
      fail(fmt::format("format {} to {}, those that this version reads", io::kVersion,
                       io::kCasesVersion));
    has_formulas_ = *version >= io::kFamilyVersion;
  }

  void read_line() {
    const std::string_view key = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(key.size() + 1, rest_.size()));
    if (key == "producer") {
      capture_.producer = last_string();
    } else if (key == "schema") {
      capture_.schemas.push_back(last_string());
    } else if (key == "property") {
      read_pair(capture_.properties);
    } else if (key == "tied") {
      read_pair(tied);
    } else if (key == "example_input") {
      example_inputs.push_back(read_type());
    } else if (key == "example_output") {
      example_outputs.push_back(read_type());
    } else if (key == "cases") {
      const auto count = parse_int(rest_);
      if (!count || *count < 1) fail("a number of cases");
      cases = static_cast<size_t>(*count);
    } else {
      fail("producer, schema, property, tied, example_input, example_output, cases or graph",
           fmt::format("'{}'", key.substr(0, 60)));
    }
  }

  void read_pair(std::map<std::string, std::string>& pairs) {
    const std::string first = read_string();
    if (!rest_.starts_with(' ')) fail("a space and a second string");
    rest_.remove_prefix(1);
    if (!pairs.try_emplace(first, last_string()).second)
      fail("each name once", fmt::format("'{}' again", first));
  }

  std::string last_string() {
    std::string value = read_string();
    if (!rest_.empty()) fail("the end of the line");
    return value;
  }

  std::string read_string() {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    const auto value = parse_quoted(rest_.substr(0, end + 1));
    if (!value) fail("a string in quotes");
    rest_.remove_prefix(end + 1);
    return *value;
  }

  // A type is read as that of a graph's input.
  Type read_type() const {
    const std::string text = fmt::format("graph(%x: {}) {{ return }}", rest_);
    const Graph graph = parse(text, {.file = file_, .first_line = line_});
    if (graph.inputs().size() != 1 || graph.inputs()[0].type().layout != Layout::strided ||
        !is_defined(graph.inputs()[0].type()))
      fail("the type of an array");
    return graph.inputs()[0].type();
  }

  std::string file_;
  std::string_view text_;  // not yet read
  std::string_view rest_;  // of the current line
  int line_ = 0;
  bool has_formulas_ = false;
  SavedCapture& capture_;
};

void load_weights(SavedCapture& capture, const std::map<std::string, std::string>& tied,
                  const LoadedArrays& arrays) {
  for (const LazyTensor& input : capture.graph.inputs()) {
    if (!io::is_weight(*input.node)) continue;
    const std::string& name = input_name(*input.node);
    const auto stored = tied.find(name);
    capture.weights.emplace(name,
                            arrays.get(stored == tied.end() ? name : stored->second, input.type()));
  }
}

std::vector<Array> load_example(std::string_view role, const std::vector<Type>& types,
                                const LoadedArrays& arrays, size_t number) {
  std::vector<Array> example;
  for (size_t i = 0; i < types.size(); ++i)
    example.push_back(arrays.get(io::example_name(role, i, number), types[i]));
  return example;
}

// Case `number`; returns how many there are besides the first.
size_t load_graph(const fs::path& folder, size_t number, const LoadedArrays& weights,
                  const LoadedArrays& example, SavedCapture& capture) {
  const fs::path file = folder / io::graph_file(number);
  const auto text = io::MappedFile::open(file);
  HeadReader head(file, text->text(), capture);
  head.read();
  capture.graph = head.parse_graph(weights);
  load_weights(capture, head.tied, weights);
  capture.example_inputs = load_example("input", head.example_inputs, example, number);
  capture.example_outputs = load_example("output", head.example_outputs, example, number);
  return head.cases;
}

SavedCapture load_files(const fs::path& folder) {
  SavedCapture capture;
  io::MappedFile::open(folder / io::kGraphFile);  // a folder without it is no capture
  const LoadedArrays weights(folder / io::kWeightsFile);
  const LoadedArrays example(folder / io::kExampleFile);
  const size_t cases = load_graph(folder, 0, weights, example, capture);
  for (size_t number = 1; number <= cases; ++number)
    load_graph(folder, number, weights, example, capture.cases.emplace_back());
  return capture;
}

}  // namespace

SavedCapture load(const fs::path& folder) {
  const Progress progress("loading", 1);
  // Files of two captures must not be mixed when the folder is replaced meanwhile.
  for (;;) {
    const io::OpenFolder open(folder);
    try {
      SavedCapture capture = load_files(folder);
      if (!open.is_at(folder)) continue;
      if (progress.is_long())
        log().info("loaded {}: {} nodes in {:.1f} s", folder.string(), capture.graph.size(),
                   progress.seconds());
      return capture;
    } catch (const UserError&) {
      if (open.is_at(folder)) throw;
    }
  }
}

}  // namespace composit
