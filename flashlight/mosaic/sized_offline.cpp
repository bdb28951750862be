#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "composit/io/log.h"
#include "composit/ir/error.h"
#include "composit/ir/hash.h"
#include "composit/ir/scope.h"
#include "flashlight/mosaic/machine.h"
#include "flashlight/mosaic/mosaic_code.h"
#include "flashlight/mosaic/offline.h"
#include "flashlight/mosaic/plan_words.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/mosaic/sized_parts.h"
#include "flashlight/mosaic/sized_plans.h"
#include "flashlight/package/program_folder.h"
#include "flashlight/package/shipped.h"
#include "flashlight/package/size_text.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"

namespace flashlight::mosaic {
namespace {

using composit::Array;
using composit::SavedCapture;
using composit::SizedGraphs;
using composit::SizeRange;
using composit::Type;
using composit::UserError;
using text::Code;
using text::statement;

constexpr const char* kStepsName = "flashlight_steps.hpp";
constexpr int64_t kMostSizes = 20'000;

// All combinations of sizes in their ranges, the last size fastest.
std::vector<std::vector<int64_t>> all_sizes(const std::vector<SizeRange>& ranges) {
  int64_t count = 1;
  for (const SizeRange& range : ranges) {
    const int64_t numbers = (range.most - range.least) / range.step + 1;
    if (numbers > kMostSizes / count)
      throw UserError(fmt::format(
          "[mosaic] expected at most {} combinations of sizes, each of which is planned, received "
          "more: name those that are needed, as --size {}={}..{}",
          kMostSizes, range.name, range.least, range.most));
    count *= numbers;
  }
  std::vector<std::vector<int64_t>> all(1);
  for (const SizeRange& range : ranges) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& sizes : all)
      for (int64_t size = range.least; size <= range.most; size += range.step) {
        longer.push_back(sizes);
        longer.back().push_back(size);
      }
    all = std::move(longer);
  }
  return all;
}

std::string sizes_text(const std::vector<SizeRange>& ranges, const std::vector<int64_t>& sizes) {
  std::string text;
  for (size_t i = 0; i < ranges.size(); ++i)
    text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", ranges[i].name, sizes[i]);
  return text;
}

// The sizes of a tensor's axes, as text.
class PortSizes {
 public:
  PortSizes(const std::vector<SizeRange>& ranges, std::vector<std::string> names)
      : ranges_(ranges), names_(std::move(names)) {}

  void add(const std::vector<int64_t>& sizes, const composit::Ports& ports) {
    sizes_.push_back(sizes);
    inputs_.push_back(ports.inputs);
    results_.push_back(ports.results);
  }
  package::SizedPort input(size_t number) const { return port(inputs_, number, "const ", "input"); }
  package::SizedPort result(size_t number) const { return port(results_, number, "", "result"); }

 private:
  using Types = std::vector<std::vector<Type>>;
  package::SizedPort port(const Types& types, size_t number, const std::string& qualifier,
                          const std::string& role) const {
    const Type& first = types[0][number];
    package::SizedPort port = {.parameter = qualifier + text::type_name(first.dtype) + "*"};
    for (size_t axis = 0; axis < first.rank(); ++axis) {
      std::vector<int64_t> numbers;
      for (const auto& all : types) numbers.push_back(all[number].sizes.at(axis));
      const auto text = package::size_text(names_, sizes_, numbers);
      if (!text)
        throw UserError(fmt::format(
            "[mosaic] expected sizes of results that are sums, products or quotients of the "
            "program's sizes, received another for axis {} of {} {}: {} at {}",
            axis, role, number, numbers[0], sizes_text(ranges_, sizes_[0])));
      port.sizes.push_back(*text);
    }
    return port;
  }

  const std::vector<SizeRange>& ranges_;
  const std::vector<std::string> names_;
  std::vector<std::vector<int64_t>> sizes_;
  Types inputs_, results_;  // by call
};

// Writes the texts of a program whose plans are data.
class SizedWriter {
 public:
  SizedWriter(const SavedCapture& capture, const SizedGraphs& graphs, const ProgramOptions& options,
              const Machine& machine)
      : capture_(capture),
        graphs_(graphs),
        options_(options),
        machine_(machine),
        ranges_(of_several_numbers(graphs.ranges)),
        parts_(capture, thread_count(0)),
        names_of_sizes_(size_names(ranges_)),
        ports_(ranges_, names_of_sizes_) {
    if (ranges_.empty())
      throw UserError(
          "[mosaic] expected several numbers for a size, received one for each: `flashlight bind` "
          "gives the capture");
    plan_all();
  }

  package::ProgramCode code() {
    package::ProgramCode code = {.source = parts_.source()};
    code.source.name = options_.plan.name;
    const Array plans = plans_.words(ranges_);
    code.source.members.emplace_back("plans");
    code.source.constants.push_back(plans);
    code.source.weights.push_back(capture_.graph.inputs().size());
    code.prepared = parts_.prepared_memory();
    code.prepared_by = prepared_by(plans);
    add_ports(code);
    code.structs = structs(code);
    code.includes = "#include <cstddef>\n";
    code.declaration = text::str(text::call("void " + options_.plan.name, parameters(code, true)));
    code.functions = functions(code);
    code.loaded =
        text::call("fl::check_plans", {"weights.plans", std::to_string(plans.type().numel()),
                                       fmt::format("{:#x}", hash_of(plans))});
    add_units(code);
    code.updates = parts_.updates();
    code.flags = default_flags();
    code.march = options_.march;
    code.takes_memory = true;
    return code;
  }

 private:
  // A size that has one number is none of a call.
  static std::vector<SizeRange> of_several_numbers(std::vector<SizeRange> ranges) {
    std::erase_if(ranges, [](const SizeRange& range) { return range.least == range.most; });
    return ranges;
  }
  static std::vector<std::string> size_names(const std::vector<SizeRange>& ranges) {
    std::vector<std::string> names;
    std::set<std::string> taken = {"weights", "memory", "generator", "threads"};
    for (const SizeRange& range : ranges)
      names.push_back(composit::unused_name(text::identifier(range.name), taken));
    return names;
  }

  void plan_all() {
    const auto all = all_sizes(graphs_.ranges);
    std::vector<composit::Graph> shown;
    for (const composit::SizedGraph& one : graphs_.shown) shown.push_back(one.graph);
    SizedPlans plans(shown, options_.plan, {"-march=" + options_.march});
    composit::Progress progress("[mosaic] planning '" + options_.plan.name + "'", all.size());
    std::string refused;
    for (const std::vector<int64_t>& sizes : all) {
      progress.advance(1);
      std::map<std::string, int64_t> by_name;
      for (size_t i = 0; i < sizes.size(); ++i) by_name[graphs_.ranges[i].name] = sizes[i];
      std::vector<int64_t> given;
      for (const SizeRange& range : ranges_) given.push_back(by_name[range.name]);
      std::optional<composit::Graph> graph;
      try {
        graph = graphs_.at(by_name);
      } catch (const UserError& error) {
        if (refused.empty()) refused = sizes_text(graphs_.ranges, sizes) + ": " + error.what();
        plans_.add_none();
        continue;
      }
      const std::optional<SizedPlan> plan = plans.at(*graph);
      if (!plan) throw UserError("[mosaic] sizes cannot be data of this program: " + plans.fault());
      plans_.add(parts_.add(*plan));
      ports_.add(given, plan->plan.ports);
    }
    if (plans_.empty()) throw UserError("[mosaic] no sizes are left: " + refused);
    if (!refused.empty())
      composit::log_warning("[mosaic] the program refuses some sizes, as " + refused);
  }

  static uint64_t hash_of(const Array& plans) {
    return fl::hash_of_words(reinterpret_cast<const int64_t*>(plans.data()), plans.type().numel());
  }
  std::string prepared_by(const Array& plans) const {
    composit::Hasher hasher;
    for (const SizedParts::Entry& entry : parts_.entries()) hasher.add(entry.text->name);
    for (const char* header : {kRuntimeName, package::kRuntimeName, kStepsName})
      hasher.add(package::shipped_text(header));
    hasher.add(hash_of(plans));
    return fmt::format("{} for vectors of {} bytes, {}", options_.plan.name, machine_.vector_bytes,
                       hasher.finish().str().substr(0, 16));
  }

  // ---- the function -----------------------------------------------------------------------------

  void add_ports(package::ProgramCode& code) {
    const std::vector<std::string>& names = names_of_sizes_;
    for (size_t i = 0; i < names.size(); ++i) {
      const SizeRange& range = ranges_[i];
      code.sizes.push_back({names[i], range.least, range.most, range.step});
      code.passed_sizes.push_back(names[i]);
    }
    std::set<std::string> taken(names.begin(), names.end());
    taken.insert({"weights", "memory", "generator", "threads", "plan", "frame", "arguments",
                  "known", "results"});
    const composit::Ports ports = composit::ports_of(capture_.graph, options_.plan.name);
    for (const size_t input : parts_.arguments()) {
      code.inputs.push_back(ports_.input(input));
      is_empty_.push_back(ports.inputs[input].numel() == 0);
      std::string name = composit::input_name(*capture_.graph.inputs()[input].node);
      if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "input_" + name;
      names_.push_back(composit::unused_name(text::identifier(name), taken));
    }
    for (size_t i = 0; i < ports.results.size(); ++i) {
      code.results.push_back(ports_.result(i));
      is_empty_.push_back(ports.results[i].numel() == 0);
      names_.push_back(composit::unused_name(fmt::format("result_{}", i), taken));
    }
  }

  std::vector<std::string> parameters(const package::ProgramCode& code, bool is_declared) const {
    std::vector<std::string> list = {"const Weights& weights"};
    for (size_t i = 0; i < names_.size(); ++i) {
      const bool is_input = i < code.inputs.size();
      const auto& port = is_input ? code.inputs[i] : code.results[i - code.inputs.size()];
      if (!is_empty_[i]) list.push_back(port.parameter + " " + names_[i]);
    }
    for (const std::string& size : code.passed_sizes) list.push_back("int " + size);
    list.emplace_back("fl::Stack& memory");
    if (code.source.draws) list.emplace_back("fl::Generator& generator");
    list.emplace_back(is_declared ? "int threads = kThreads" : "int threads");
    return list;
  }

  std::string structs(const package::ProgramCode& code) const {
    Code members;
    for (size_t i = 0; i + 1 < code.source.weights.size(); ++i) {
      const Type type = parts_.type_of_weight(i);
      members += statement("const " + text::type_name(type.dtype) + "* " + code.source.members[i] +
                           ";  // " + (type.rank() == 0 ? "one" : text::brackets(type)));
    }
    members += statement("const std::int64_t* plans;  // for each size: see flashlight_steps.hpp");
    if (code.prepared.defined()) members += statement("const std::byte* prepared;");
    std::string text = "\n";
    if (code.prepared.defined())
      text += fmt::format(
          "// What the file of weights has to be prepared by.\n"
          "constexpr const char* kPreparedBy = {};\n\n",
          text::quoted(code.prepared_by));
    return text + "// Of a call; 0: one per core.\nconstexpr int kThreads = " +
           std::to_string(options_.threads) + ";\n\n" +
           text::str(text::braced("struct Weights", members, "};"));
  }

  std::string functions(const package::ProgramCode& code) const {
    std::string declared = "\n// In kernels_1.cpp and on.\n", table;
    for (const SizedParts::Entry& entry : parts_.entries()) {
      declared += fmt::format("namespace {} {{ fl::StepEntry enter; }}\n", entry.name);
      table += fmt::format("    {}::enter,\n", entry.name);
    }
    declared += "\nnamespace {\nfl::StepEntry* const kSteps[] = {\n" + table + "};\n\n";
    const auto list = [&](size_t begin, size_t end) {
      std::string text;
      for (size_t i = begin; i < end; ++i)
        text += (i == begin ? "" : ", ") + (is_empty_[i] ? "nullptr" : names_[i]);
      return text.empty() ? std::string("nullptr") : text;
    };
    std::string known;
    for (size_t i = 0; i + 1 < code.source.members.size(); ++i)
      known += (i == 0 ? "weights." : ", weights.") + code.source.members[i];
    const size_t inputs = code.inputs.size();
    Code body;
    body += statement(fmt::format("const fl::StepPlan plan(weights.plans, {{{}}});",
                                  fmt::join(code.passed_sizes, ", ")));
    body += statement("fl::Frame frame(memory);");
    body += statement("const void* const arguments[] = {" + list(0, inputs) + "};");
    body += statement("void* const results[] = {" + list(inputs, names_.size()) + "};");
    body += statement("const void* const known[] = {" + (known.empty() ? "nullptr" : known) + "};");
    body += text::call(
        "plan.run",
        {fmt::format(
             "{{arguments, known, results, {}, frame.take<std::byte>(plan.arena_bytes()), {}}}",
             code.prepared.defined() ? "weights.prepared" : "nullptr",
             code.source.draws ? "&generator" : "nullptr"),
         "kSteps", "threads > 0 ? threads : fl::detail::cores()", "nullptr"});
    return declared + "}  // namespace\n\n" +
           text::str(text::definition({.name = options_.plan.name,
                                       .parameters = parameters(code, false),
                                       .body = std::move(body)}));
  }

  // ---- units ------------------------------------------------------------------------------------

  void add_units(package::ProgramCode& code) const {
    code.headers = {package::shipped_file(kRuntimeName), package::shipped_file(kStepsName)};
    code.opening =
        kTilesElsewhere +
        fmt::format("#include \"{}\"\n#include \"{}\"\n\n", kRuntimeName, kStepsName) +
        fmt::format("static_assert(fl::detail::kVectorBytes == {},\n              {});\n",
                    machine_.vector_bytes,
                    text::quoted("weights were prepared for -march=" + options_.march));
    Units tiles;
    std::vector<std::string> texts;
    for (const SizedParts::Entry& entry : parts_.entries()) {
      texts.push_back(text_of(*entry.text, entry.name, "void enter"));
      for (const auto& [file, statements] : entry.text->tiles)
        tiles[file].insert(statements.begin(), statements.end());
    }
    code.units = tile_files(tiles);
    const std::vector<std::string> units = units_of(texts, code.source.headers, options_.plan.name);
    for (size_t i = 0; i < units.size(); ++i)
      code.units.push_back({fmt::format("kernels_{}.cpp", i + 1), kTilesElsewhere + units[i]});
  }

  const SavedCapture& capture_;
  const SizedGraphs& graphs_;
  const ProgramOptions& options_;
  const Machine& machine_;
  const std::vector<SizeRange> ranges_;
  SizedParts parts_;
  PlanWords plans_;
  const std::vector<std::string> names_of_sizes_;
  PortSizes ports_;
  std::vector<std::string> names_;  // of parameters: inputs, then results
  std::vector<bool> is_empty_;      // of them: they have no elements, and are not passed
};

}  // namespace

void write_program(const SavedCapture& capture, const SizedGraphs& graphs,
                   const std::filesystem::path& folder, const ProgramOptions& options) {
  package::check_program(capture, folder);
  const Machine machine = machine_of(options.march);
  ProgramOptions all = options;
  all.plan.update_inputs = true;
  all.plan.update_weights = false;  // the file of weights is mapped, and only read
  all.plan.has_matrix_unit = machine.has_matrix_unit;
  package::write_program(capture, SizedWriter(capture, graphs, all, machine).code(), folder,
                         options.plan.results);
}

}  // namespace flashlight::mosaic
