#include "flashlight/package/program_folder.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <set>

#include "composit/io/capture_format.h"
#include "composit/io/safetensors.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ir/scope.h"
#include "flashlight/package/ports.h"
#include "flashlight/package/shipped.h"
#include "flashlight/package/weight_loader.h"
#include "flashlight/package/weights.h"
#include "flashlight/text/code.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"
#include "flashlight/toolchain/write_folder.h"

namespace flashlight::package {

using namespace text;
namespace {

using composit::Array;
using composit::SavedCapture;
using composit::Type;
using composit::UserError;

void check_example(const char* role, size_t i, const Type& expected, const Array& given) {
  if (given.type().dtype != expected.dtype || given.type().sizes != expected.sizes)
    throw UserError(fmt::format("the example's {} {}: expected {}, received {}", role, i,
                                type_text(expected), type_text(given.type())));
}

// Gives variables distinct names.
class Variables {
 public:
  std::string add(const std::string& name) {
    return composit::unused_name(identifier(name), taken_);
  }

 private:
  std::set<std::string> taken_ = {"folder", "file", "example", "good", "seed", "memory"};
};

class ProgramWriter {
 public:
  ProgramWriter(const SavedCapture& capture, ProgramCode code,
                const std::vector<std::string>& output_names)
      : capture_(capture), code_(std::move(code)), source_(code_.source) {
    gather_ports(output_names);
    gather_weights();
    fill_values();
  }

  std::vector<toolchain::SourceFile> files() const {
    std::vector<toolchain::SourceFile> all = {shipped_file(kRuntimeName),
                                              shipped_file(kReaderName),
                                              {"model.hpp", model_hpp()},
                                              {"model.cpp", model_cpp()}};
    std::set<std::string> headers(source_.headers.begin(), source_.headers.end());
    headers.insert(kArenaName);
    for (const std::string& header : headers) all.push_back(shipped_file(header));
    for (const auto* more : {&code_.headers, &code_.units})
      all.insert(all.end(), more->begin(), more->end());
    for (const char* name : {"model.h", "model_c.cpp", "main.cpp", "CMakeLists.txt"})
      all.push_back({name, filled(shipped_text(std::string(name) + ".in"), values_)});
    return all;
  }

  void write_arrays(const std::filesystem::path& folder) const {
    if (has_weights()) composit::write_safetensors(weights_, folder / composit::io::kWeightsFile);
    composit::write_safetensors(example_, folder / composit::io::kExampleFile);
  }

 private:
  bool has_weights() const { return !stored_.empty() || code_.prepared.defined(); }
  bool is_sized() const { return !code_.sizes.empty(); }
  bool has_arena() const { return is_sized() ? code_.takes_memory : source_.arena_bytes > 0; }

  void gather_ports(const std::vector<std::string>& output_names) {
    Variables variables;
    for (const composit::SizeRange& size : code_.sizes) variables.add(size.name);
    for (const composit::LazyTensor& input : capture_.graph.inputs()) {
      if (input_kind(*input.node) != composit::InputKind::user_input) continue;
      const std::string& name = input_name(*input.node);
      const bool number = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
      inputs_.push_back({name, input.type(), sized(code_.inputs, inputs_.size()),
                         variables.add(number ? "input_" + name : name)});
      add_example("input", inputs_.size() - 1, inputs_.back(), capture_.example_inputs);
    }
    for (const composit::LazyTensor& output : capture_.graph.outputs()) {
      if (!output) continue;
      const size_t i = outputs_.size();
      const std::string name =
          i < output_names.size() ? output_names[i] : fmt::format("output.{}", i);
      outputs_.push_back({name, output.type(), sized(code_.results, i), variables.add(name)});
      add_example("output", i, outputs_.back(), capture_.example_outputs);
    }
    for (const composit::Mutation& mutation : capture_.graph.mutations()) {
      const std::string name = "new_" + input_name(*mutation.target.node);
      outputs_.push_back({name, mutation.value.type(), sized(code_.results, outputs_.size()),
                          variables.add(name)});
    }
  }

  static SizedPort sized(const std::vector<SizedPort>& ports, size_t number) {
    return number < ports.size() ? ports[number] : SizedPort();
  }

  void add_example(const char* role, size_t i, Port& port, const std::vector<Array>& arrays) {
    if (i >= arrays.size()) return;
    port.stored = composit::io::example_name(role, i);
    example_.tensors[port.stored] = arrays[i];
  }

  // Stores tied weights once, under the first of their names.
  void gather_weights() {
    const auto& inputs = capture_.graph.inputs();
    std::map<std::pair<const std::byte*, std::string>, std::string> known;
    for (size_t i = 0; i < source_.weights.size(); ++i) {
      const size_t input = source_.weights[i];
      const bool is_constant = input >= inputs.size();
      const std::string name =
          is_constant ? "constant." + source_.members[i] : input_name(*inputs[input].node);
      const Array value = is_constant ? source_.constants[i] : weight_of(capture_, inputs[input]);
      const auto [stored, added] =
          known.try_emplace({value.data(), composit::print(value.type())}, name);
      if (added) weights_.tensors[name] = value;
      stored_.push_back({source_.members[i], stored->second, value.type()});
    }
    if (!code_.prepared.defined()) return;
    weights_.tensors["flashlight.prepared"] = code_.prepared;
    weights_.metadata["flashlight.prepared_by"] = code_.prepared_by;
  }

  // ---- C++ --------------------------------------------------------------------------------------

  // The arguments of a call; `array` writes the one for port `number`.
  std::vector<std::string> arguments(
      const std::string& weights,
      const std::function<std::string(const Port&, bool is_input, size_t number)>& array,
      const std::string& arena) const {
    std::vector<std::string> list;
    if (has_weights()) list.push_back(weights);
    for (const auto* ports : {&inputs_, &outputs_})
      for (size_t i = 0; i < ports->size(); ++i)
        if ((*ports)[i].type.numel() > 0) list.push_back(array((*ports)[i], ports == &inputs_, i));
    list.insert(list.end(), code_.passed_sizes.begin(), code_.passed_sizes.end());
    if (has_arena()) list.push_back(arena);
    if (source_.draws) list.push_back("generator");
    return list;
  }

  std::string model_hpp() const {
    const std::string& name = source_.name;
    std::string text = fmt::format(
        "// {}, in C++ that Flashlight wrote. model.h is the same for C, main.cpp an example;\n"
        "// CMakeLists.txt says how to build them.\n",
        name);
    if (!capture_.producer.empty()) text += "// Captured with " + capture_.producer + ".\n";
    text += fmt::format(
        "#pragma once\n\n{}#include \"{}\"\n#include "
        "\"safetensors.hpp\"\n\nnamespace {} {{\n{}",
        str(includes(source_)) + code_.includes, kArenaName, name, code_.structs);
    if (has_weights())
      text +=
          "\n// Pointers into `file`, which has to live as long as they are used. "
          "std::runtime_error "
          "that\n// names the file and the tensor where one is missing or is of another dtype or "
          "shape.\nWeights load_weights(const fl::Safetensors& file);\n";
    text += is_sized()
                ? "\n"
                : fmt::format("\nconstexpr std::size_t kArenaBytes = {};\n\n", source_.arena_bytes);
    text +=
        "// Row-major arrays:\n" + port_lines(inputs_, outputs_, "//") +
        "// Throws std::exception for values it cannot take, like an index that is too large.\n";
    for (const composit::SizeRange& size : code_.sizes)
      text += fmt::format("// `{}` is from {} to {}; model.h checks it.\n", size.name, size.least,
                          size.most);
    if (has_arena() && is_sized())
      text += "// `memory` is for temporaries; calls with their own may run at the same time.\n";
    if (has_arena() && !is_sized())
      text +=
          "// `arena` is memory for temporaries, as of fl::allocate(kArenaBytes); calls with their "
          "own may\n// run at the same time.\n";
    if (source_.draws)
      text +=
          "// Draws are those of LibTorch after torch::manual_seed(N), for fl::Generator(N); the "
          "next "
          "call\n// goes on from there.\n";
    return text + code_.declaration + "\n}  // namespace " + name + "\n";
  }

  std::string model_cpp() const {
    Code prepared;
    if (code_.prepared.defined())
      prepared = assignment("weights.prepared", fmt::format("file.prepared(kPreparedBy, {})",
                                                            code_.prepared.type().nbytes()));
    prepared += code_.loaded;
    return fmt::format(
        "#include \"model.hpp\"\n{3}\nnamespace {0} {{\n{1}{2}\n}}  // namespace {0}\n",
        source_.name, code_.functions, has_weights() ? str(load_weights(stored_, prepared)) : "",
        code_.opening);
  }

  // Reports the fastest of ten calls, kernel by kernel.
  Code profile_code() const {
    const std::string& name = source_.name;
    std::vector<std::string> list = arguments(
        "weights", [](const Port& port, bool, size_t) { return port.variable; }, "arena.get()");
    list.insert(list.end(), {name + "::kThreads", "times.data()"});
    Code one = call(name + "::" + name, list);
    one += assignment("fastest", "fl::faster(fastest, " + name + "::profile(times.data()))");
    Code body = statement("std::vector<std::int64_t> times(static_cast<std::size_t>(" + name +
                          "::kKernelCount) + 1);");
    body += statement("fl::Profile fastest;");
    body += block(For{"int", "i", "0", "10"}, one);
    body += statement("fl::report(fastest, " + name + "::measured_peak(), \"profile.json\");");
    return block(If{"is_profiled"}, body);
  }

  // The body of run() in main.cpp.
  Code run_code() const {
    Code code;
    if (has_weights()) {
      code += statement("const fl::Safetensors file(folder + \"/weights.safetensors\");");
      code += assignment("const " + source_.name + "::Weights weights",
                         source_.name + "::load_weights(file)");
    }
    if (!example_.tensors.empty())
      code += statement("const fl::Safetensors example(folder + \"/example.safetensors\");");
    for (const Port& port : inputs_)
      if (port.type.numel() > 0) code += assignment("const auto& " + port.variable, saved(port));
    for (const Port& port : outputs_)
      if (port.type.numel() > 0)
        code += statement("static " + type_name(port.type.dtype) + " " + port.variable +
                          brackets(port.type) + ";");
    code += statements(size_lines(code_.sizes, inputs_, "int", "", [&](size_t input, size_t axis) {
      return std::to_string(inputs_[input].type.sizes[axis]);
    }));
    if (has_arena() && is_sized())
      code += statement("fl::Stack memory;");
    else if (has_arena())
      code +=
          assignment("const fl::Memory arena", "fl::allocate(" + source_.name + "::kArenaBytes)");
    if (source_.draws)
      code += statement(
          "fl::Generator generator(seed == nullptr ? 0 : std::strtoull(seed, nullptr, 10));");
    const auto array = [](const Port& port, bool, size_t) {
      return port.sized.parameter.empty() ? port.variable : passed(port.sized, "&" + port.variable);
    };
    code += call(source_.name + "::" + source_.name,
                 arguments("weights", array, is_sized() ? "memory" : "arena.get()"));
    if (code_.profiles) code += profile_code();
    if (source_.draws) {
      code +=
          braced(If{"seed == nullptr"},
                 statement("std::printf(\"without the example's seed, nothing to compare\\n\");") +=
                 statement("return true;"));
    }
    code += assignment("bool good", "true");
    for (const Port& port : outputs_) {
      if (port.type.numel() == 0) continue;
      if (port.stored.empty())
        code += statement("std::printf(\"%s: nothing saved to compare with\\n\", " +
                          quoted(port.name) + ");");
      else
        code += call("good &= agrees", {quoted(port.name), port.variable, saved(port)});
    }
    code += statement("return good;");
    return code;
  }

  static std::string saved(const Port& port) {
    return "example.array<" + array_type(port.type) + ">(" + quoted(port.stored) + ")";
  }

  // ---- C ----------------------------------------------------------------------------------------

  // By output, the input whose memory it may have.
  std::string updated_inputs() const {
    std::string list;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const auto update = code_.updates.find(i);
      list += (i > 0 ? ", " : "") +
              (update == code_.updates.end() ? "-1" : std::to_string(update->second));
    }
    return fmt::format(
        "// By output, the input in whose memory it may be written; -1: none.\n"
        "const std::array<int, {}> kUpdated = {{{{{}}}}};\n",
        outputs_.size(), list);
  }

  // Statements of model_c.cpp that name the sizes of a call.
  std::string call_sizes() const {
    return size_lines(code_.sizes, inputs_, "int", "", [](size_t input, size_t axis) {
      return fmt::format("static_cast<int>(inputs[{}].sizes[{}])", input, axis);
    });
  }
  static Code statements(const std::string& lines) {
    Code code;
    for (size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
      end = lines.find('\n', begin);
      code += statement(lines.substr(begin, end - begin));
    }
    return code;
  }

  // The struct that the handle points to.
  std::string handle() const {
    const std::string& name = source_.name;
    const std::string type = name + "_model";
    std::string text = "struct " + type + " {\n";
    if (has_weights())
      text += fmt::format(
          "  explicit {0}(const char* path) : file(path), weights({1}::load_weights(file)) "
          "{{}}\n\n",
          type, name);
    const auto array = [](const Port& port, bool is_input, size_t number) {
      const std::string tensor = fmt::format("{}[{}]", is_input ? "inputs" : "outputs", number);
      if (!port.sized.parameter.empty()) return passed(port.sized, tensor + ".data");
      return fmt::format("array<{}{}>({})", is_input ? "const " : "", array_type(port.type),
                         tensor);
    };
    Code body;
    if (is_sized()) body += statements(call_sizes());
    if (has_arena()) body += statement("Arenas::Lease arena(arenas);");
    if (source_.draws) body += statement("fl::Generator generator(seed);");
    body += call(name + "::" + name, arguments("weights", array, "arena.data()"));
    text += str(braced("void run(" + unused(inputs_) + "const Tensor* inputs, " + unused(outputs_) +
                           "const Tensor* outputs" + (source_.draws ? ", uint64_t seed)" : ")"),
                       body),
                2);
    if (has_weights() || has_arena()) text += "\n";
    if (has_weights())
      text += fmt::format("  const fl::Safetensors file;\n  const {}::Weights weights;\n", name);
    if (has_arena()) text += "  Arenas arenas;\n";
    return text + "};";
  }

  // The heads of NAME_open and NAME_run, with `tail` at their ends.
  std::string open_head(const std::string& type, const std::string& qualifier,
                        const std::string& tail) const {
    return str(call(fmt::format("{0} {1}_open", type, source_.name),
                    {qualifier + "const char* weights_path", source_.name + "_model** model",
                     "char* message", "size_t message_size"},
                    tail));
  }
  std::string run_head(const std::string& type, const std::string& tail) const {
    const std::string tensors = "const " + source_.name + "_tensor* ";
    return str(call(fmt::format("{0} {1}_run", type, source_.name),
                    {source_.name + "_model* model", tensors + "inputs", "size_t input_count",
                     tensors + "outputs",
                     source_.draws ? "size_t output_count, uint64_t seed" : "size_t output_count",
                     "char* message", "size_t message_size"},
                    tail));
  }

  std::string open() const {
    if (!has_weights()) return fmt::format("    *model = new {}_model;", source_.name);
    return fmt::format(
        "    if (weights_path == nullptr) throw BadArgument(\"weights_path is NULL\");\n"
        "    *model = new {}_model(weights_path);",
        source_.name);
  }

  void fill_values() {
    std::string flags, all_flags, units;
    for (const toolchain::SourceFile& unit : code_.units) units += " " + unit.name;
    for (const std::string& flag : code_.flags) {
      all_flags += flag + " ";
      if (!flag.starts_with("-march=") && !flag.starts_with("-std="))
        flags += (flags.empty() ? "" : " ") + flag;
    }
    const std::string& name = source_.name;
    std::string tensors = port_lines(inputs_, outputs_, " *");
    if (!tensors.empty()) tensors.pop_back();
    values_ = {
        {"name", name},
        {"NAME", upper(name)},
        {"indent", std::string(name.size(), ' ')},
        {"tensors", tensors},
        {"arena_bytes", is_sized() ? "as much as the largest of them took"
                                   : std::to_string(source_.arena_bytes) + " bytes"},
        {"arena", is_sized() ? "fl::Stack" : "fl::Memory"},
        {"new_arena", is_sized() ? "fl::Stack()" : "fl::allocate(" + name + "::kArenaBytes)"},
        {"arena_data", is_sized() ? "fl::Stack& data() { return arena_; }"
                                  : "std::byte* data() const { return arena_.get(); }"},
        {"in", is_sized() ? "types.inputs" : "kInputs"},
        {"out", is_sized() ? "types.outputs" : "kOutputs"},
        {"types", is_sized() ? types_class(code_.sizes, inputs_, outputs_) : ""},
        {"types_of_call", is_sized() ? "    const Types types(inputs, input_count);\n" : ""},
        {"declare_sizes", is_sized() ? declared_sizes(name, code_.sizes) : ""},
        {"define_sizes", is_sized() ? defined_sizes(name, upper(name)) : ""},
        {"path", has_weights() ? "\"weights.safetensors\"" : "NULL"},
        {"weights_note", has_weights() ? "" : ", of which this model has none: NULL"},
        {"tables",
         table("Input", inputs_, name) + table("Output", outputs_, name) + updated_inputs()},
        {"update_note",
         code_.updates.empty()
             ? ""
             : ", but for new values of inputs, whose data may be that of the input"},
        {"handle", handle()},
        {"open", open()},
        {"declare_open", open_head(name + "_status", "", ";")},
        {"declare_run", run_head(name + "_status", ";")},
        {"define_open", open_head("Status", has_weights() ? "" : "[[maybe_unused]] ", " {")},
        {"define_run", run_head("Status", " {")},
        {"c_seed", source_.draws ? "42, " : ""},
        {"and_seed", source_.draws ? ", seed" : ""},
        {"seed_note", source_.draws ? "\n * Random draws are those of LibTorch after "
                                      "torch::manual_seed(seed)."
                                    : ""},
        {"seed_usage", source_.draws ? " [SEED]" : ""},
        {"seed_help", source_.draws ? "\n// SEED is what torch::manual_seed was given before the "
                                      "example ran; without it, nothing is\n// compared."
                                    : ""},
        {"seed_parameter", source_.draws ? ", const char* seed" : ""},
        {"seed_argument", source_.draws ? ", argc > 2 ? argv[2] : nullptr" : ""},
        {"and_weights", has_weights() ? " and weights.safetensors" : ""},
        {"run", str(run_code(), kIndent)},
        {"flags", flags},
        {"find_torch", source_.links.empty() ? "" : "\nfind_package(Torch REQUIRED)"},
        {"torch_libraries", source_.links.empty() ? "" : " ${TORCH_LIBRARIES}"},
        {"units", units},
        {"march", code_.march},
        {"profile_usage", code_.profiles ? " [--profile]" : ""},
        {"profile_help", code_.profiles
                             ? "\n// --profile prints how long each kernel takes, and writes it to "
                               "profile.json for chrome://tracing."
                             : ""},
        {"profile_parameter", code_.profiles ? ", bool is_profiled" : ""},
        {"profile_argument", code_.profiles ? ", is_profiled" : ""},
        {"profile_option",
         code_.profiles ? "  const bool is_profiled = argc > 1 && std::strcmp(argv[argc - 1], "
                          "\"--profile\") == 0;\n  if (is_profiled) --argc;\n"
                        : ""},
        {"one_command",
         !source_.links.empty()
             ? "where Torch_DIR says where LibTorch is"
             : fmt::format("g++ {}-o {}_example main.cpp model.cpp model_c.cpp{} -pthread",
                           all_flags, name, units)},
    };
  }

  const SavedCapture& capture_;
  const ProgramCode code_;
  const Source& source_;
  std::vector<Port> inputs_, outputs_;
  std::vector<StoredWeight> stored_;
  composit::Safetensors weights_, example_;
  std::map<std::string, std::string> values_;  // for the templates
};

}  // namespace

void check_program(const SavedCapture& capture, const std::filesystem::path& folder) {
  size_t i = 0;
  for (const composit::LazyTensor& input : capture.graph.inputs()) {
    if (input_kind(*input.node) != composit::InputKind::user_input) continue;
    if (i == capture.example_inputs.size())
      throw UserError("the example has no value for input '" + input_name(*input.node) + "'");
    check_example("input", i, input.type(), capture.example_inputs[i]);
    ++i;
  }
  i = 0;
  for (const composit::LazyTensor& output : capture.graph.outputs()) {
    if (!output || i == capture.example_outputs.size()) continue;
    check_example("output", i, output.type(), capture.example_outputs[i]);
    ++i;
  }
  toolchain::check_replaceable(folder);
}

void write_program(const SavedCapture& capture, ProgramCode code,
                   const std::filesystem::path& folder,
                   const std::vector<std::string>& output_names) {
  check_program(capture, folder);
  const ProgramWriter writer(capture, std::move(code), output_names);
  toolchain::write_folder(writer.files(), folder,
                          [&](const std::filesystem::path& into) { writer.write_arrays(into); });
}

}  // namespace flashlight::package
