#include "flashlight/mosaic/offline.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "composit/ir/error.h"
#include "composit/ir/hash.h"
#include "flashlight/mosaic/machine.h"
#include "flashlight/mosaic/mosaic_code.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/package/program_folder.h"
#include "flashlight/package/shipped.h"
#include "flashlight/package/weights.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"

namespace flashlight::mosaic {
namespace {

using composit::Array;
using composit::SavedCapture;
using text::Code;
using text::statement;

// The plan of either half of a program.
Plan without_run(Plan plan) {
  plan.run.clear();
  return plan;
}
Plan without_prepare(Plan plan) {
  plan.prepare.clear();
  return plan;
}

// Packed weights, and what says how they lie.
struct Packed {
  Array memory = {};
  std::string by = {};
  int vector_bytes = 0;
};

Packed packed(const std::vector<Array>& weights, const Plan& plan, const std::string& march,
              int vector_bytes) {
  const Plan preparing = without_run(plan);
  const Source source = emit(preparing, plan.name);
  Packed packed = {.vector_bytes = vector_bytes};
  composit::Hasher hasher;
  hasher.add(source.text);
  for (const char* header : {kRuntimeName, package::kRuntimeName})
    hasher.add(package::shipped_text(header));
  packed.by = fmt::format("{} for vectors of {} bytes, {}", source.name, packed.vector_bytes,
                          hasher.finish().str().substr(0, 16));
  if (plan.prepared_bytes == 0) return packed;
  const toolchain::Library library = build({source}, {"-march=" + march});
  const auto runner = library_runner(
      library, source, {preparing.prepared_bytes, preparing.preparation_bytes}, thread_count(0));
  const std::shared_ptr<std::byte> memory =
      prepare({preparing.ports, CallPlan(preparing).frozen, source, *runner}, weights)
          .memory[0]
          .first;
  packed.memory = {composit::tensor_type(composit::DType::uint8, {plan.prepared_bytes}), memory,
                   memory.get()};
  return packed;
}

class ProgramCodeWriter {
 public:
  ProgramCodeWriter(const Plan& plan, const ProgramOptions& options)
      : plan_(plan),
        options_(options),
        source_(emit(plan, plan.name)),
        updates_(CallPlan(plan).updates) {}

  package::ProgramCode write(Packed packed) {
    packed_ = std::move(packed);
    package::ProgramCode code = {.source = source_};
    add_units(code);
    code.structs = structs();
    code.declaration = text::str(text::call("void " + source_.name, parameters(true))) + "\n" +
                       profile_declaration();
    code.functions = functions();
    code.includes = fmt::format("#include <cstring>\n#include \"{}\"\n", package::kProfileName);
    for (const auto& [result, update] : updates_)
      code.updates[result] = argument_number(update.input);
    code.flags = default_flags();
    code.march = options_.march;
    code.prepared = packed_.memory;
    code.prepared_by = packed_.by;
    code.profiles = true;
    return code;
  }

 private:
  void add_units(package::ProgramCode& code) {
    code.headers = {package::shipped_file(kRuntimeName),
                    package::shipped_file(package::kProfileName)};
    const std::string include = fmt::format("#include \"{}\"\n", kRuntimeName);
    code.opening =
        include + "\n" +
        fmt::format("static_assert(fl::detail::kVectorBytes == {},\n              {});\n",
                    packed_.vector_bytes,
                    text::quoted("weights were prepared for -march=" + options_.march));
    const auto groups = groups_of_kernels(source_);
    if (groups.empty()) {
      kernels_ = source_.called;
      for (const EmittedKernel& kernel : source_.kernels) kernels_ += "\n" + kernel.definition;
      return;
    }
    code.opening = kTilesElsewhere + code.opening;
    for (const toolchain::SourceFile& unit : source_.tiles) code.units.push_back(unit);
    kernels_ = "\n// In kernels_1.cpp and on.\n" + declarations_of(source_.kernels);
    for (size_t i = 0; i < groups.size(); ++i) {
      std::string text = kTilesElsewhere + include;
      for (const std::string& header : source_.headers) text += "#include \"" + header + "\"\n";
      text += "\nnamespace " + source_.name + " {\n";
      for (const EmittedKernel& kernel : groups[i]) text += "\n" + kernel.definition;
      code.units.push_back({fmt::format("kernels_{}.cpp", i + 1),
                            text + "\n}  // namespace " + source_.name + "\n"});
    }
  }

  const loops::Value& value(ValueId number) const { return plan_.routine.values[number]; }

  std::string structs() const {
    Code members;
    for (size_t i = 0; i < source_.weights.size(); ++i) {
      const composit::Type& type = value(plan_.routine.inputs[source_.weights[i]]).type;
      members += statement("const " + text::type_name(type.dtype) + "* " + source_.members[i] +
                           ";  // " + (type.rank() == 0 ? "one" : text::brackets(type)));
    }
    if (packed_.memory.defined()) members += statement("const std::byte* prepared;");
    std::string text = "\n";
    if (packed_.memory.defined())
      text += fmt::format(
          "// What the file of weights has to be prepared by.\n"
          "constexpr const char* kPreparedBy = {};\n\n",
          text::quoted(packed_.by));
    text += "// Of a call; 0: one per core.\nconstexpr int kThreads = " +
            std::to_string(options_.threads) + ";\n\n";
    return text + (members.empty() ? "struct Weights {};\n"
                                   : text::str(text::braced("struct Weights", members, "};")));
  }
  bool has_weights() const { return !source_.weights.empty() || packed_.memory.defined(); }

  // The place of an input of the graph among the arguments.
  size_t argument_number(size_t input) const {
    return static_cast<size_t>(
        std::find(source_.arguments.begin(), source_.arguments.end(), input) -
        source_.arguments.begin());
  }

  // "const float (&x)[3]": an array of the caller.
  std::string port(ValueId number, bool is_result) const {
    const composit::Type& type = value(number).type;
    const bool is_alone = is_result && !plan_.updates.contains(number);
    const std::string name = (is_alone ? "__restrict " : "") + source_.names[number];
    return (is_result ? "" : "const ") + text::type_name(type.dtype) +
           (type.rank() == 0 ? "& " + name : " (&" + name + ")" + text::brackets(type));
  }
  std::vector<std::string> parameters(bool declared) const {
    std::vector<std::string> list;
    if (has_weights()) list.push_back("const Weights& weights");
    for (const size_t i : source_.arguments)
      if (const ValueId number = plan_.routine.inputs[i]; value(number).type.numel() > 0)
        list.push_back(port(number, false));
    for (const ValueId number : plan_.routine.results)
      if (value(number).type.numel() > 0) list.push_back(port(number, true));
    if (plan_.arena_bytes > 0) list.push_back("std::byte* arena");
    if (source_.draws) list.push_back("fl::Generator& generator");
    list.push_back(declared ? "int threads = kThreads" : "int threads");
    list.push_back(declared ? "std::int64_t* times = nullptr" : "std::int64_t* times");
    return list;
  }

  // The address of the first element.
  std::string address(ValueId number) const {
    const composit::Type& type = value(number).type;
    if (type.numel() == 0) return "nullptr";
    const std::string& name = source_.names[number];
    return type.rank() == 0
               ? "&" + name
               : "&fl::as<" +
                     std::string(value(number).role == loops::Role::argument ? "const " : "") +
                     text::type_name(type.dtype) + ">(" + name + ")";
  }

  static std::string profile_declaration() {
    return "// Where `times` is given, it has room for a number more than there are kernels: "
           "when each "
           "of\n// them ended, for profile().\nextern const int kKernelCount;\nfl::Profile "
           "profile(const std::int64_t* times);\n// GFLOP/s of kThreads.\ndouble "
           "measured_peak();\n";
  }

  std::string functions() const {
    return kernels_ + "\n" + source_.run + "\n" + main_function() + "\n" + profile_functions();
  }

  std::string main_function() const {
    std::vector<std::string> list = {"team", has_weights() ? "weights" : "Weights()",
                                     packed_.memory.defined() ? "weights.prepared" : "nullptr",
                                     plan_.arena_bytes > 0 ? "arena" : "nullptr", "times"};
    if (source_.draws) list.push_back("&generator");
    for (const size_t i : source_.arguments) list.push_back(address(plan_.routine.inputs[i]));
    for (const ValueId number : plan_.routine.results) list.push_back(address(number));
    Code body;
    for (const auto& [result, update] : updates_) {
      if (!update.is_over_it) continue;
      const std::string to = address(plan_.routine.results[result]),
                        from = address(plan_.routine.inputs[update.input]);
      body += text::block(text::If{to + " != " + from},
                          text::call("std::memcpy", {to, from, std::to_string(update.bytes)}));
    }
    body += text::braced(
        "fl::run_team(threads > 0 ? threads : fl::detail::cores(), [&](const fl::Team& team)",
        text::call("run", list), "});");
    return text::str(text::definition(
        {.name = source_.name, .parameters = parameters(false), .body = std::move(body)}));
  }

  std::string profile_functions() const {
    std::string rows;
    for (const TimedKernel& kernel : source_.timed)
      rows += fmt::format("    {{{}, {}, 0, 0, {}, {}}},\n", text::quoted(kernel.name),
                          text::quoted(kernel.module), kernel.operations, kernel.bytes);
    return fmt::format(
        "const int kKernelCount = {0};\n\n"
        "fl::Profile profile(const std::int64_t* times) {{\n"
        "  fl::Profile kernels = {{\n{1}  }};\n"
        "  for (std::size_t i = 0; i < kernels.size(); ++i) {{\n"
        "    kernels[i].start = times[i];\n"
        "    kernels[i].end = times[i + 1];\n"
        "  }}\n"
        "  return kernels;\n"
        "}}\n\n"
        "double measured_peak() {{\n"
        "  return fl::measured_peak(kThreads > 0 ? kThreads : fl::detail::cores());\n"
        "}}\n",
        source_.timed.size(), rows);
  }

  const Plan& plan_;
  const ProgramOptions& options_;
  const Source source_;
  const std::map<size_t, CallPlan::Update> updates_;  // by result
  Packed packed_ = {};
  std::string kernels_;  // in model.cpp: themselves, or what declares them
};

}  // namespace

void write_program(const SavedCapture& capture, const std::filesystem::path& folder,
                   const ProgramOptions& options) {
  // Everything that can be refused is refused before anything is computed.
  package::check_program(capture, folder);
  const std::vector<Array> weights = package::weights_of(capture);
  PlanOptions planning = options.plan;
  planning.update_inputs = true;
  planning.update_weights = false;  // the file of weights is mapped, and only read
  const Machine machine = machine_of(options.march);
  planning.has_matrix_unit = machine.has_matrix_unit;
  const Plan plan = plan_of(capture.graph, planning);
  Packed prepared = packed(weights, plan, options.march, machine.vector_bytes);
  const Plan running = without_prepare(plan);
  package::write_program(capture, ProgramCodeWriter(running, options).write(std::move(prepared)),
                         folder, options.plan.results);
}

}  // namespace flashlight::mosaic
