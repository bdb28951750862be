#include "flashlight/mosaic/sized.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "composit/io/log.h"
#include "composit/ir/error.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/mosaic/backend.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/mosaic_code.h"
#include "flashlight/mosaic/plan_form.h"
#include "flashlight/mosaic/sized_source.h"

namespace flashlight::mosaic {
namespace {

using composit::Compiled;
using composit::Graph;
using composit::UserError;

// How far from a size another one is looked for that shares its text: which numbers differ between
// the two shows what is data.
constexpr int64_t kNear[] = {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32};

struct Text {
  SizedSource source;
  std::optional<toolchain::Library> library = {};
};

// A plan as text.
struct Written {
  Plan plan;
  OpenSource source;
  SplitSource split;
};

bool has_sizes_of(const Plan& plan, const Graph& graph) {
  const composit::Ports ports = composit::ports_of(graph, plan.name);
  const auto same = [](const std::vector<composit::Type>& a, const std::vector<composit::Type>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.dtype == y.dtype && x.sizes == y.sizes;
    });
  };
  return same(plan.ports.inputs, ports.inputs) && same(plan.ports.results, ports.results);
}

// What a call needs.
Plan without_steps(Plan plan) {
  plan.routine.steps = {};
  plan.functions = {};
  plan.schedules = {};
  plan.layouts = {};
  plan.prepare = {};
  plan.run = {};
  return plan;
}

// What preparation does: its own text and numbers, and those of its kernels.
composit::Hash preparation_of(const Written& at) {
  composit::Hasher hasher;
  const auto add = [&](const text::OpenText& piece) {
    hasher.add(piece.text);
    for (const int64_t number : piece.numbers) hasher.add(static_cast<uint64_t>(number));
  };
  add(at.split.pieces[0]);
  for (size_t i = 0; i < at.source.prepare_kernels; ++i) add(at.split.pieces[2 + i]);
  hasher.add(at.source.structs);
  return hasher.finish();
}

class Sized : public composit::SizedCode {
 public:
  Sized(const std::vector<Graph>& shown, PlanOptions options, int threads,
        std::vector<std::string> flags)
      : options_(std::move(options)), threads_(thread_count(threads)), flags_(std::move(flags)) {
    make_forms(shown);
    std::map<std::string, std::vector<size_t>> by_key;
    std::vector<Written> all;
    for (const Graph& graph : shown) {
      all.push_back(written_at(graph));
      by_key[all.back().split.key].push_back(all.size() - 1);
    }
    // No call is to wait for a compiler that could have run before.
    for (const auto& [key, members] : by_key) {
      std::vector<OpenSource> samples;
      for (const size_t member : members) samples.push_back(all[member].source);
      if (samples.size() == 1) samples = samples_near(shown[members[0]], all[members[0]]);
      if (samples.size() > 1) compile(add(SizedSource(std::move(samples))));
    }
  }

  Compiled at(const Graph& graph) override {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return fixed(graph);
    Written there = written_at(graph);
    check_buffers(there.plan);
    auto found = texts_.find(there.split.key);
    if (found == texts_.end()) found = add(SizedSource(samples_near(graph, there)));
    std::optional<std::vector<int64_t>> numbers = found->second.source.numbers_at(there.split);
    if (!numbers) {  // a number that was the same everywhere so far
      found->second = {found->second.source.with(there.source)};
      numbers = found->second.source.numbers_at(there.split);
      COMPOSIT_ASSERT(numbers, "the text of a size has its numbers");
    }
    compile(found);
    if (is_closed_) return fixed(graph);
    return code_of(std::move(there), found->second, std::move(*numbers));
  }
  std::optional<Compiled> at_once(const Graph& graph) override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return std::nullopt;  // a compiler is running
    Written there = written_at(graph);
    const auto found = texts_.find(there.split.key);
    if (found == texts_.end() || !found->second.library) return std::nullopt;
    std::optional<std::vector<int64_t>> numbers = found->second.source.numbers_at(there.split);
    if (!numbers) return std::nullopt;
    check_buffers(there.plan);
    return code_of(std::move(there), found->second, std::move(*numbers));
  }
  size_t compilations() const override {
    const std::lock_guard lock(mutex_);
    return compilations_;
  }

 private:
  using Texts = std::map<std::string, Text>;

  // Some sizes have another form than others: rows of 512 numbers are set apart in memory. Without
  // a form, a size is planned from its graph.
  void make_forms(const std::vector<Graph>& shown) {
    std::vector<std::vector<PlanForm>> groups;
    for (const Graph& graph : shown) {
      const PlanForm form = form_of(graph, options_);
      const bool is_known = std::any_of(groups.begin(), groups.end(), [&](auto& group) {
        group.push_back(form);
        if (joined(group)) return true;
        group.pop_back();
        return false;
      });
      if (!is_known) groups.push_back({form});
    }
    for (const std::vector<PlanForm>& group : groups)
      if (group.size() > 1) forms_.push_back(*joined(group));
  }
  static std::optional<PlanForm> joined(const std::vector<PlanForm>& forms) {
    try {
      return form_of(forms);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  Written written_at(const Graph& graph) const {
    if (std::optional<Plan> plan = bound_plan(graph)) return written(std::move(*plan));
    return written(plan_of(graph, options_));
  }
  Written written(Plan plan) const {
    OpenSource source = emit_open(plan, options_.name);
    SplitSource split = split_of(source);
    return {std::move(plan), std::move(source), std::move(split)};
  }

  // The sizes that a form has names for; nothing where it has others.
  static std::optional<loops::SizeNumbers> sizes_of(const PlanForm& form, const Graph& graph) {
    std::vector<composit::Array> inputs;
    for (const composit::LazyTensor& input : graph.inputs())
      inputs.emplace_back(composit::tensor_type(input.dtype(), input.type().sizes), nullptr,
                          nullptr);
    try {
      return loops::sizes_given(form.program, inputs);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }
  static std::optional<Plan> plan_at(const PlanForm& form, const loops::SizeNumbers& sizes) {
    try {
      return plan_of(bind_sizes(form, sizes));
    } catch (const UserError&) {  // outside of what was shown
      return std::nullopt;
    }
  }
  std::optional<Plan> bound_plan(const Graph& graph) const {
    for (const PlanForm& form : forms_) {
      const std::optional<loops::SizeNumbers> sizes = sizes_of(form, graph);
      std::optional<Plan> plan = sizes ? plan_at(form, *sizes) : std::nullopt;
      if (plan && has_sizes_of(*plan, graph)) return plan;
    }
    return std::nullopt;
  }

  // A text that was seen at one size has no data yet.
  std::vector<OpenSource> samples_near(const Graph& graph, const Written& there) const {
    std::vector<OpenSource> samples = {there.source};
    for (const PlanForm& form : forms_) {
      const std::optional<loops::SizeNumbers> sizes = sizes_of(form, graph);
      if (!sizes) continue;
      for (const auto& [name, number] : *sizes)
        if (auto sample = sample_near(form, *sizes, name, there)) samples.push_back(*sample);
    }
    return samples;
  }
  // A size nearby, of that name, at which the plan has the same text.
  std::optional<OpenSource> sample_near(const PlanForm& form, const loops::SizeNumbers& sizes,
                                        const std::string& name, const Written& there) const {
    for (const int64_t step : kNear) {
      loops::SizeNumbers near = sizes;
      near[name] += step;
      std::optional<Plan> plan = near[name] < 1 ? std::nullopt : plan_at(form, near);
      if (!plan) continue;
      Written at = written(std::move(*plan));
      if (at.split.key == there.split.key) return std::move(at.source);
    }
    return std::nullopt;
  }

  Texts::iterator add(SizedSource source) {
    const std::string key = source.key();
    return texts_.insert_or_assign(key, Text{std::move(source)}).first;
  }
  void compile(Texts::iterator text) {
    if (text->second.library || is_closed_) return;
    try {
      text->second.library = build({text->second.source.source()}, flags_);
    } catch (const UserError& error) {
      // A type that data does not have: the text with constants is right, and slower to get.
      composit::log_warning("[mosaic] '" + options_.name +
                            "' is compiled for each size: " + error.what());
      is_closed_ = true;
    }
    ++compilations_;
  }
  // The program of a size alone.
  Compiled fixed(const Graph& graph) {
    ++compilations_;
    return mosaic::compile({plan_of(graph, options_)}, threads_, flags_)[0];
  }

  Compiled code_of(Written at, const Text& text, std::vector<int64_t> numbers) const {
    const composit::Hash preparation = preparation_of(at);
    Profile timed = std::move(at.source.timed);
    return {std::make_shared<const MosaicCode>(
        std::make_shared<const Kernels>(Kernels{.library = *text.library,
                                                .source = text.source.shared(),
                                                .constants = std::move(at.source.constants),
                                                .plan = without_steps(std::move(at.plan)),
                                                .threads = threads_,
                                                .arenas = arenas_,
                                                .numbers = std::move(numbers),
                                                .preparation = preparation,
                                                .timed = std::move(timed)}))};
  }

  const PlanOptions options_;
  const int threads_;
  const std::vector<std::string> flags_;
  std::vector<PlanForm> forms_;  // each for a part of the sizes
  const std::shared_ptr<package::ArenaPool> arenas_ = std::make_shared<package::ArenaPool>();
  mutable std::mutex mutex_;
  Texts texts_;             // by key
  bool is_closed_ = false;  // no size is data
  size_t compilations_ = 0;
};

}  // namespace

std::shared_ptr<composit::SizedCode> sized_code(const std::vector<Graph>& shown,
                                                const PlanOptions& options, int threads,
                                                const std::vector<std::string>& flags) {
  return std::make_shared<Sized>(shown, options, threads, flags);
}

}  // namespace flashlight::mosaic
