// A plan as text.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/kernels/form.h"
#include "flashlight/mosaic/relayouts.h"

namespace flashlight::mosaic {
namespace {

double megabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan), names_(value_names(plan.routine)) {}

  std::string run() const {
    const int64_t meanwhile = plan_.preparation_bytes - plan_.prepared_bytes;
    return fmt::format(
        "prepare, {:.1f} MB{}\n{}\nrun, {:.1f} MB for {:.1f} MB of values, at least {:.1f} "
        "MB\n{}\n{}",
        megabytes(plan_.prepared_bytes),
        meanwhile == 0 ? "" : fmt::format(", and {:.1f} MB meanwhile", megabytes(meanwhile)),
        kernels(plan_.prepare), megabytes(plan_.arena_bytes), megabytes(plan_.sum_bytes),
        megabytes(plan_.least_bytes), kernels(plan_.run), relayouts());
  }

 private:
  std::string kernels(const std::vector<Kernel>& list) const {
    std::string text;
    for (size_t i = 0; i < list.size(); ++i) text += kernel(i, list[i]);
    return text;
  }

  std::string kernel(size_t number, const Kernel& kernel) const {
    const Description one = describe(plan_, kernel, names_);
    const KernelText written_as = kernel.form->write(plan_, kernel);
    if (!written_as.function) return fmt::format("{:>5}  {}\n", number, one.loops);
    std::string text =
        fmt::format("{:>5}  {}{}\n", number, written_as.name, modules(one.operations));
    const auto line = [&](const std::string& what) {
      if (!what.empty()) text += "         " + what + "\n";
    };
    line(one.loops);
    line(threads(kernel.split));
    if (one.operations.size() > 1) line("fuses " + names_of(one.operations));
    if (one.flops > 0) line(work_of(one));
    if (kernel.form->note != nullptr) line(kernel.form->note(kernel, names_));
    for (const ValueId value : written(plan_, kernel)) line(memory(value));
    if (!kernel.ends.empty()) line("ends here: " + kernel.ends);
    return text;
  }

  // "threads divide 784 rows".
  static std::string threads(const Split& split) {
    static constexpr const char* kNames[] = {"", "rows", "columns", "products", "queries"};
    return split.parts == 0 ? "one thread"
                            : fmt::format("threads divide {} {}", split.parts,
                                          kNames[static_cast<size_t>(split.of)]);
  }

  // The modules of the model that operations stand in: "(layer1.0.conv1, layer1.0.bn1)".
  static std::string modules(const std::vector<loops::Origin>& operations) {
    std::vector<std::string> list;
    for (const loops::Origin& one : operations)
      if (!one.module.empty() && std::find(list.begin(), list.end(), one.module) == list.end())
        list.push_back(one.module);
    return list.empty() ? "" : fmt::format("  ({})", fmt::join(list, ", "));
  }

  // The bytes that are copied into another order: their sum, then each copy of a call.
  std::string relayouts() const {
    std::string each;
    std::string text = fmt::format(
        "relayouts\n  of these layouts: {} of {:.1f} MB; if all were row-major: {} of {:.1f} MB\n",
        plan_.relayouts.count, megabytes(plan_.relayouts.bytes), plan_.row_major_relayouts.count,
        megabytes(plan_.row_major_relayouts.bytes));
    const std::vector<Relayout> all = relayouts_of(plan_);
    for (const bool once : {true, false}) {
      std::vector<std::string> sums;
      for (const Relayout::Kind kind : {Relayout::Kind::pack, Relayout::Kind::retile,
                                        Relayout::Kind::copy, Relayout::Kind::reorder}) {
        int64_t count = 0, bytes = 0;
        for (const Relayout& one : all)
          if (one.once == once && one.kind == kind) {
            ++count;
            bytes += one.bytes;
            if (!once) each += relayout(one);
          }
        if (count > 0)
          sums.push_back(fmt::format("{} {}, {:.1f} MB", count, name_of(kind), megabytes(bytes)));
      }
      text += fmt::format("  {}: {}\n", once ? "once" : "in each call",
                          sums.empty() ? "none" : fmt::format("{}", fmt::join(sums, "; ")));
    }
    return text + each;
  }
  std::string relayout(const Relayout& one) const {
    return fmt::format("{:>5}  {} of {} for {}, {:.2f} MB\n", one.kernel, name_of(one.kind),
                       names_[one.from], names_[one.to], megabytes(one.bytes));
  }

  // " as NCHW -> N H W C", of what has an order.
  std::string schema(ValueId value) const {
    const loops::Value& one = plan_.routine.values[value];
    for (const auto* list : {&plan_.prepare, &plan_.run})
      for (const Kernel& kernel : *list)
        if (kernel.form->packed_schema != nullptr)
          if (const auto schema = kernel.form->packed_schema(plan_, kernel, value))
            return " as " + print(*schema);
    const auto layout = plan_.layouts.find(value);
    if (layout != plan_.layouts.end()) return " as " + print(layout->second, letters_of(one));
    const bool has_order = one.type.rank() >= 2 && one.type.rank() <= kMostDimensions;
    return !has_order ? "" : " as " + print(row_major(one.type), letters_of(one));
  }

  // "writes relu_3 [56, 56, 64] as CHW -> H W C at 401408 over add_2, which is read by 2: ...".
  std::string memory(ValueId value) const {
    const loops::Value& one = plan_.routine.values[value];
    std::string text = fmt::format("writes {} [{}]{}", names_[value],
                                   fmt::join(one.type.sizes, ", "), schema(value));
    if (plan_.homes[value] == Home::arena) text += fmt::format(" at {}", plan_.offsets[value]);
    if (const auto operand = plan_.in_place.find(value); operand != plan_.in_place.end())
      text += " over " + names_[operand->second];
    if (const auto input = plan_.updates.find(value); input != plan_.updates.end())
      return text + ", the new value of " + names_[input->second] + ", in its memory";
    if (one.role == loops::Role::result) return text + ", a result";
    const auto reason = plan_.routine.kept.find(value);
    return reason == plan_.routine.kept.end() ? text : text + ", which " + reason->second;
  }

  const Plan& plan_;
  const std::vector<std::string> names_;
};

}  // namespace

std::string print(const Plan& plan) { return Printer(plan).run(); }

}  // namespace flashlight::mosaic
