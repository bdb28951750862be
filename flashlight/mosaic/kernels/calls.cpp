// Calls of the runtime that do the same for each line of an array (order), or for each matrix of a
// batch (factors): threads divide these, and each makes the call for its part.
#include <spdlog/fmt/fmt.h>

#include "composit/ir/scope.h"
#include "flashlight/mosaic/kernel_routine.h"
#include "flashlight/mosaic/kernels/forms.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"
#include "flashlight/text/runtime_call_text.h"

namespace flashlight::mosaic {
namespace {

constexpr int64_t kAlignment = 16;  // of the largest elements, complex128

const loops::RuntimeCall& call_of(const Plan& plan, const Kernel& kernel) {
  return std::get<loops::RuntimeCall>(plan.routine.steps[kernel.steps[0]]);
}

// The first option of such a call: how many lines or matrices there are, and the sizes of one.
std::optional<std::vector<int64_t>> counted(const loops::RuntimeCall& call) {
  const std::string_view domain = call.function.domain();
  if ((domain != "order" && domain != "matrices") || call.options.empty()) return std::nullopt;
  const std::string_view key = call.options[0].key();
  if (key != "lines" && key != "matrices") return std::nullopt;
  return composit::to_ints(call.options[0].value);
}

int64_t elements(const loops::Routine& routine, ValueId value) {
  return routine.values[value].type.numel();
}

class CallWriter {
 public:
  CallWriter(const Plan& plan, const Kernel& kernel)
      : plan_(plan), call_(call_of(plan, kernel)), counts_(*counted(call_)) {}

  KernelText write() {
    for (const ValueId value : call_.arguments) add(value, "const ", "*");
    for (const ValueId value : call_.results) add(value, "", "* __restrict");
    text::Code body =
        text::assignment("const fl::Part part", "team.part(" + text::open_number(counts_[0]) + ")");
    // Each thread has results of its own where no kernel reads them.
    if (own_bytes_ > 0)
      body += text::assignment("std::byte* const own",
                               fmt::format("fl::own_memory({} * part.size())", own_bytes_));
    body += text::call(text::function_text(call_), arguments());
    text_.name = fmt::format("{}_{}", text::identifier(loops::short_name(call_.origin)),
                             fmt::join(counts_, "x"));
    text_.by_pointer = true;
    text_.first = "team";
    text_.function = text::Function{.parameters = std::move(parameters_), .body = body};
    return std::move(text_);
  }

 private:
  void add(ValueId value, const char* before, const char* behind) {
    if (addresses_.contains(value)) return;
    const std::string type = text::type_name(plan_.routine.values[value].type.dtype);
    const int64_t each = elements(plan_.routine, value) / counts_[0];
    if (plan_.homes[value] == Home::kernel) {
      addresses_[value] = fmt::format("&fl::at<{}>(own, {} * part.size())", type, own_bytes_);
      const auto item =
          static_cast<int64_t>(composit::item_size(plan_.routine.values[value].type.dtype));
      own_bytes_ += (each * item + kAlignment - 1) / kAlignment * kAlignment;
      return;
    }
    const std::string name = composit::unused_name(
        text::identifier(local_name(plan_.routine.values[value], "z")), taken_);
    addresses_[value] = fmt::format("{} + {} * part.begin", name, each);
    parameters_.push_back(before + type + behind + " " + name);
    text_.values.push_back(value);
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> list;
    for (const ValueId value : call_.arguments) list.push_back(addresses_.at(value));
    list.push_back(
        fmt::format("{{part.size(), {}}}", fmt::join(counts_.begin() + 1, counts_.end(), ", ")));
    const composit::DType dtype = plan_.routine.values[call_.arguments[0]].type.dtype;
    const std::vector<std::string> options = text::option_texts(call_, dtype);
    list.insert(list.end(), options.begin() + 1, options.end());
    for (const ValueId value : call_.results) list.push_back(addresses_.at(value));
    return list;
  }

  const Plan& plan_;
  const loops::RuntimeCall& call_;
  const std::vector<int64_t> counts_;
  KernelText text_;
  std::vector<std::string> parameters_ = {"const fl::Team& team"};
  std::map<ValueId, std::string> addresses_;
  std::set<std::string> taken_ = {"team", "part", "own"};
  int64_t own_bytes_ = 0;  // of a line or matrix
};

struct CallsForm {
  static std::string loops(const Plan& plan, const Kernel& kernel, const KernelForm::Names&) {
    const loops::RuntimeCall& call = call_of(plan, kernel);
    const std::vector<int64_t> counts = *counted(call);
    return fmt::format("for {} (threads) {{ {} of {} }}", counts[0], loops::short_name(call.origin),
                       fmt::join(counts.begin() + 1, counts.end(), " x "));
  }
  static KernelText write(const Plan& plan, const Kernel& kernel) {
    return CallWriter(plan, kernel).write();
  }
};

}  // namespace

const KernelForm kCalls = {.name = "calls",
                           .touched = touched_by_steps,
                           .written = written_by_steps,
                           .loops = CallsForm::loops,
                           .write = CallsForm::write,
                           .follows_steps = true};

std::optional<Kernel> divided_call(const loops::Routine& routine, StepId step) {
  const auto* call = std::get_if<loops::RuntimeCall>(&routine.steps[step]);
  const auto counts = call == nullptr ? std::nullopt : counted(*call);
  if (!counts || (*counts)[0] < 2) return std::nullopt;
  for (const auto* values : {&call->arguments, &call->results})
    for (const ValueId value : *values)
      if (elements(routine, value) == 0 || elements(routine, value) % (*counts)[0] != 0)
        return std::nullopt;
  return Kernel{
      .form = &kCalls, .steps = {step}, .split = {.of = Split::Of::rows, .parts = (*counts)[0]}};
}

}  // namespace flashlight::mosaic
