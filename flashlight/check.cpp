#include "flashlight/check.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <unordered_map>

#include "composit/io/log.h"
#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "flashlight/capture_state.h"
#include "flashlight/difference.h"
#include "flashlight/float64.h"
#include "flashlight/saved_state.h"
#include "tracer/memory_view.h"

namespace flashlight {

using tracer::RecordId;

// Runs the program and its replay in turn, each from the same state.
class Checker {
 public:
  Checker(const CaptureBase::State& state, const std::vector<at::Tensor>& arguments,
          const CheckOptions& options)
      : state_(state), options_(options), saved_(state, arguments) {
    arguments_.structure = state.arguments;
    arguments_.tensors = arguments;
  }

  CheckReport run() {
    if (!state_.program)
      throw composit::UserError(
          "[check] a loaded capture does not know its program: trace the program and check that");
    report_.generators = generators_read(state_.graph);
    try {
      compare_programs();
      if (report_.graph_differences.empty()) compare_values();
    } catch (const std::exception& error) {
      report_.error = error.what();
    }
    saved_.restore();
    return std::move(report_);
  }

 private:
  using Values = std::vector<at::Tensor>;
  using Kept = std::unordered_map<size_t, Values>;  // outputs by step

  // Every run begins with the same buffers, parameters, arguments and random state.
  ProgramRun run_program(const tracer::Recorder::Observer& observer) {
    saved_.restore();
    TraceOptions options = state_.options;
    options.strict = options_.strict;
    const c10::AutoGradMode grad(state_.grad);
    const std::vector<NamedTensor> named =
        state_.named ? state_.named() : std::vector<NamedTensor>();
    return run_recorded(state_.program, arguments_, named, options, observer);
  }
  Values run_replay(const tracer::Plan::Observer& observer) {
    saved_.restore();
    return state_.plan().run(state_.bind_replay(arguments_.tensors), observer);
  }

  // ---- the graphs -------------------------------------------------------------------------------

  void compare_programs() {
    ProgramRun run = run_program([&](RecordId id, c10::ArrayRef<at::Tensor> values) {
      for (const at::Tensor& value : values) digests_[id].push_back(digest(value));
      progress_.advance(1);
    });
    recording_ = std::move(run.recording);
    results_ = run.results.tensors;
    if (fits(*recording_, state_.links)) apply_links(*recording_, state_.links);
    const tracer::Published published = tracer::publish(*recording_, /*gradients=*/true);
    records_ = published.steps;
    for (const composit::Difference& difference :
         composit::compare(state_.replayed.graph, published.graph))
      report_.graph_differences.push_back(composit::str(difference));
  }

  // ---- the values -------------------------------------------------------------------------------

  // The digests of the program's values that step `step` of the replay should have; nullptr for
  // steps that the recorder added, and for those that were run as views of one storage: their
  // outputs are the whole storage.
  const std::vector<composit::Hash>* eager_digests(size_t step) const {
    if (step >= records_.size() || recording_->records[records_[step]].joint != tracer::kNone)
      return nullptr;
    if (is_uninitialised(recording_->records[records_[step]])) return nullptr;
    const auto found = digests_.find(records_[step]);
    return found == digests_.end() ? nullptr : &found->second;
  }

  // True for memory that was not written yet: it may have any content.
  static bool is_uninitialised(const tracer::Record& record) {
    if (record.info == nullptr) return false;
    const std::string_view name = record.info->name.base_name();
    return name.rfind("empty", 0) == 0 || name.rfind("new_empty", 0) == 0;
  }

  bool is_workspace(size_t step, size_t output) const {
    const tracer::Record& record = recording_->records[records_[step]];
    return record.info != nullptr && tracer::is_workspace(*record.info, output);
  }

  void compare_values() {
    std::vector<size_t> differing;
    const Values results =
        run_replay([&](size_t step, const composit::Node&, const Values& values) {
          const auto* expected = eager_digests(step);
          bool equal = true;
          for (size_t i = 0; expected != nullptr && i < std::min(values.size(), expected->size());
               ++i, ++report_.compared)
            equal = equal && (is_workspace(step, i) || digest(values[i]) == (*expected)[i]);
          if (!equal || (options_.float64 && expected != nullptr)) differing.push_back(step);
          progress_.advance(1);
        });
    for (size_t i = 0; i < results.size() && i < results_.size(); ++i)
      if (results[i].defined())
        report_.largest = std::max(report_.largest, distance(results[i], results_[i]).absolute);
    measure(differing);
    rank();
  }

  // Keeps the values of as many steps at a time as the memory allows.
  void measure(const std::vector<size_t>& steps) {
    for (size_t begin = 0; begin < steps.size();) {
      Kept eager, replayed;
      int64_t bytes = 0;
      size_t end = begin;
      std::unordered_map<RecordId, size_t> chunk;
      for (; end < steps.size() && (end == begin || bytes < options_.memory); ++end) {
        chunk.emplace(records_[steps[end]], steps[end]);
        bytes += bytes_of(records_[steps[end]]);
      }
      run_program([&](RecordId id, c10::ArrayRef<at::Tensor> values) {
        if (const auto found = chunk.find(id); found != chunk.end())
          eager[found->second] = copies(values);
      });
      run_replay([&](size_t step, const composit::Node& node, const Values& values) {
        if (eager.count(step)) compare(step, node, values, eager[step]);
        if (eager.count(step) && options_.float64) replayed[step] = copies(values);
      });
      if (options_.float64) measure_float64(eager, replayed);
      begin = end;
    }
  }
  int64_t bytes_of(RecordId id) const {
    const tracer::Record& record = recording_->records[id];
    int64_t bytes = 0;
    for (uint32_t i = 0; i < record.value_count; ++i) {
      const auto geometry = recording_->values[record.values + i].geometry;
      if (geometry != tracer::kNone)
        bytes +=
            recording_->geometries[geometry].numel() * recording_->geometries[geometry].item_size();
    }
    return bytes;
  }
  static Values copies(c10::ArrayRef<at::Tensor> values) {
    Values result;
    for (const at::Tensor& value : values)
      result.push_back(value.defined() ? tracer::copy_keeping_strides(value.detach()) : value);
    return result;
  }

  void compare(size_t step, const composit::Node& node, const Values& actual,
               const Values& expected) {
    for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
      if (!actual[i].defined() || !expected[i].defined() || is_workspace(step, i)) continue;
      const Distance apart = distance(actual[i], expected[i]);
      NodeDifference difference;
      difference.place = tracer::place_of(node);
      difference.node = step;
      difference.output = i;
      difference.absolute = apart.absolute;
      difference.relative = apart.relative;
      difference.ulp = apart.ulp;
      const bool passes = apart.equal || apart.relative < options_.tolerance;
      if (!passes) report_.differences.push_back(difference);
      if (options_.float64) report_.ranking.push_back(difference);
    }
  }

  // ---- against double precision -----------------------------------------------------------------

  void measure_float64(const Kept& eager, const Kept& replayed) {
    if (!float64_plan_)
      float64_plan_.emplace(in_float64(state_.graph),
                            tracer::PlanOptions{state_.grad, state_.generators});
    saved_.restore();
    Values inputs;
    for (const at::Tensor& input : state_.bind(arguments_.tensors))
      inputs.push_back(input.scalar_type() == c10::kFloat
                           ? tracer::copy_keeping_strides(input.detach().to(c10::kDouble))
                           : input);
    float64_plan_->run(inputs, [&](size_t step, const composit::Node&, const Values& exact) {
      if (!eager.count(step)) return;
      for (NodeDifference& difference : report_.ranking) {
        if (difference.node != step || difference.output >= exact.size()) continue;
        difference.float64_eager =
            error(eager.at(step)[difference.output], exact[difference.output]);
        difference.float64_replay =
            error(replayed.at(step)[difference.output], exact[difference.output]);
      }
    });
  }
  static double error(const at::Tensor& value, const at::Tensor& exact) {
    if (!value.defined() || value.scalar_type() != c10::kFloat) return 0;
    return distance(value.to(c10::kDouble), exact).relative;
  }

  void rank() {
    std::unordered_map<size_t, double> errors;  // worst output of each step
    for (const NodeDifference& difference : report_.ranking)
      errors[difference.node] = std::max(errors[difference.node], difference.float64_eager);
    for (NodeDifference& difference : report_.ranking) {
      double before =
          6e-8;  // half a unit in the last place of float32: inputs are exact up to rounding
      for (const auto& source : state_.plan().sources(difference.node))
        if (errors.count(source.step)) before = std::max(before, errors[source.step]);
      difference.amplification = difference.float64_eager / before;
    }
    std::stable_sort(
        report_.ranking.begin(), report_.ranking.end(),
        [](const auto& a, const auto& b) { return a.amplification > b.amplification; });
    if (report_.ranking.size() > options_.ranked) report_.ranking.resize(options_.ranked);
  }

  const CaptureBase::State& state_;
  const CheckOptions& options_;
  FlatValues arguments_;
  SavedState saved_;
  std::unique_ptr<tracer::Recording> recording_;
  std::vector<RecordId> records_;  // by step
  std::unordered_map<RecordId, std::vector<composit::Hash>> digests_;
  Values results_;
  std::optional<tracer::Plan> float64_plan_;
  composit::Progress progress_{"checking", 2 * state_.plan().size()};
  CheckReport report_;
};

CheckReport CaptureBase::check_flat(const std::vector<at::Tensor>& arguments,
                                    const CheckOptions& options) const {
  now().expect_fixed_numbers("check");
  return Checker(now(), arguments, options).run();
}

}  // namespace flashlight
