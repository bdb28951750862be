#include "flashlight/loops/fuse.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "composit/op/affine.h"
#include "flashlight/loops/constants.h"
#include "flashlight/loops/contraction.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using composit::Store;

// Fusion gives a statement at most this many distinct subexpressions.
constexpr size_t kMaxParts = 240;
// A value is computed again, not kept, up to this many operations per element for all uses.
constexpr double kMaxRepeatedWork = 4;

// A product that reads a matrix this often reads a transposed copy, not the matrix across rows.
constexpr int64_t kLeastRounds = 16;

// False of an element as it lies in memory, and of what is rounded already.
bool has_arithmetic(const Expr& x) {
  return x.kind() != ExprKind::load && x.kind() != ExprKind::literal &&
         !x.is(composit::Function::cast);
}

// Within arithmetic of 16-bit floats numbers keep the precision of float32. Where a program looks
// at one otherwise (a comparison, a cast to another dtype), it sees what would be in memory: else
// x == max(x) would not hold of what was computed twice. Loads of `value` are rounded there.
Statement with_rounding(Statement reading, ValueId value, DType dtype) {
  if (!composit::is_half(dtype)) return reading;
  const auto is_one = [&](const Expr& part) {
    return part.kind() == ExprKind::load && part.number() == value;
  };
  return replaced(std::move(reading), [&](const Expr& part) {
    if (part.kind() != ExprKind::call || part.dtype() == dtype ||
        std::none_of(part.arguments().begin(), part.arguments().end(), is_one))
      return Expr();
    std::vector<Expr> arguments = part.arguments();
    for (Expr& one : arguments)
      if (is_one(one)) one = composit::cast(composit::cast(one, DType::float32), dtype);
    return part.with_arguments(std::move(arguments));
  });
}

class Fuser {
 public:
  Fuser(const Program& program, FunctionId number, Routine& function, const FuseOptions& options)
      : program_(program), number_(number), function_(function), options_(options) {}

  void run() {
    count();
    for (const StepId i : function_.steps.ids()) append_to_reduction(i);
    for (const StepId i : function_.steps.ids()) inline_step(i);
    for (const StepId i : function_.steps.ids()) append_to_reduction(i);
    drop_unused();
    std::erase_if(function_.kept, [&](const auto& one) {
      return function_.values[one.first].role != Role::temporary || readers_[one.first].empty();
    });
  }

 private:
  const Nest* nest(StepId step) const {
    return removed_.contains(step) ? nullptr : std::get_if<Nest>(&function_.steps[step]);
  }
  Statement& statement(StepId step) { return std::get<Nest>(function_.steps[step]).statement; }

  void count() {
    readers_.assign(function_.values.size(), {});
    writers_.assign(function_.values.size(), {});
    for (const StepId i : function_.steps.ids()) add(i);
  }
  void add(StepId step) {
    for (ValueId value : reads(function_.steps[step])) readers_[value].insert(step);
    for (ValueId value : writes(function_.steps[step])) writers_[value].insert(step);
  }
  void remove(StepId step) {
    for (ValueId value : reads(function_.steps[step])) readers_[value].erase(step);
    for (ValueId value : writes(function_.steps[step])) writers_[value].erase(step);
  }

  bool is_own(ValueId value) const {
    return function_.values[value].role == Role::temporary && writers_[value].size() == 1;
  }

  // Counts the elements that would be evaluated if `value` were computed where it is read.
  int64_t evaluations(ValueId value) {
    int64_t count = 0;
    for (StepId reader : readers_[value]) {
      const Statement& reading = statement(reader);
      std::set<std::pair<uint64_t, uint64_t>> loads;
      for (const Expr& part : composit::parts_of(expressions(reading)))
        if (part.kind() == ExprKind::load && part.number() == value)
          loads.insert({part.hash().low, part.hash().high});
      count += static_cast<int64_t>(loads.size()) * iterations_for(reading, value);
    }
    return count;
  }

  // True if each term of a reduction loads `value`, or whether there is one depends on it.
  static bool is_read_by_terms(const Statement& reading, ValueId value) {
    std::vector<Expr> roots = reading.body;
    roots.insert(roots.end(), reading.combine.begin(), reading.combine.end());
    if (reading.domain.defined()) roots.push_back(reading.domain);
    const std::vector<Expr> parts = composit::parts_of(roots);
    return std::any_of(parts.begin(), parts.end(), [&](const Expr& part) {
      return part.kind() == ExprKind::load && part.number() == value;
    });
  }
  // Counts how often results are stored.
  static int64_t results(const Statement& reading) {
    int64_t count = 1;
    for (const composit::Axis& axis : reading.axes)
      if (axis.kind != composit::AxisKind::reduction) count *= axis.extent;
    return count;
  }

  // Counts how often `reading` evaluates a load of `value`. A matrix product loads each element of
  // a side once, unless it is one of 16-bit floats, which only some backends have tiles for.
  static int64_t iterations_for(const Statement& reading, ValueId value) {
    const auto product = contraction_of(reading, kLeastSide, /*halves=*/true);
    if (!product) return is_read_by_terms(reading, value) ? iterations(reading) : results(reading);
    const auto reads_it = [&](const Expr& side) {
      const std::vector<Expr> parts = composit::parts_of({side});
      return std::any_of(parts.begin(), parts.end(), [&](const Expr& part) {
        return part.kind() == ExprKind::load && part.number() == value;
      });
    };
    const bool left = reads_it(product->left), right = !left && reads_it(product->right);
    if ((left || right) && composit::is_half(reading.body[0].dtype())) return iterations(reading);
    int64_t count = 1;
    const auto times = [&](const AxisIds& axes) { count *= iterations(reading, axes); };
    times(product->batch);
    if (left || !right) times(product->rows);
    if (right || !left) times(product->columns);
    if (left || right) times(product->terms);
    return count;
  }

  // Says why keeping `value` is cheaper; empty if it is not.
  std::string cost_of_inlining(StepId step, ValueId value) {
    const Cost cost = cost_of(statement(step).stores[0].value);
    const Value& read = function_.values[value];
    if (cost.operations == 0) return "";
    if (choice_of(value) == true) return "";
    const double repeats = static_cast<double>(evaluations(value)) /
                           static_cast<double>(std::max<int64_t>(read.type.numel(), 1));
    const bool cheap =
        !cost.expensive && repeats * static_cast<double>(cost.operations) <= kMaxRepeatedWork;
    if (repeats <= 1 || cheap) return "";
    return fmt::format("would be computed {:.3g} times by {}", repeats, readers_of(value));
  }

  // True if a product reads the rows of one array again and again.
  static bool reads_rows_often(const Statement& reading) {
    const auto product = contraction_of(reading);
    if (!product || product->right.kind() != ExprKind::load || product->columns.empty())
      return false;
    const AxisIds axes = axes_in(product->right);
    int64_t rounds = 1;
    for (const auto* outside : {&product->batch, &product->outer})
      for (AxisId axis : *outside)
        if (!contains(axes, axis)) rounds *= reading.axes[axis].extent;
    const std::vector<Expr>& indices = product->right.arguments();
    return rounds >= kLeastRounds && indices.back().kind() == ExprKind::axis &&
           indices.back().number() == product->columns.back();
  }

  void inline_step(StepId step) {
    const Nest* producer = nest(step);
    if (producer == nullptr || !producer->statement.init.empty()) return;
    const ValueId value = value_of(producer->statement.stores[0]);
    std::vector<std::pair<StepId, Statement>> changed;
    bool keeps = false;
    std::string reason = reason_to_keep(step, value);
    if (reason.empty())
      for (StepId reader : readers_[value]) {
        Statement now = inlined(producer->statement, statement(reader));
        if (composit::parts_of(expressions(now)).size() > kMaxParts)
          reason = "would make an expression of " + name_of(reader) + " that is too long";
        else if (options_.refusal)
          reason = options_.refusal(statement(reader), now);
        if (!reason.empty()) break;
        if (reads_rows_often(statement(reader)) && !reads_rows_often(now))
          keeps = true;
        else
          changed.emplace_back(reader, std::move(now));
      }
    if (!reason.empty()) return keep(value, reason);
    for (auto& [reader, now] : changed) {
      remove(reader);
      statement(reader) = std::move(now);
      note_fused(step, reader);
      add(reader);
    }
    if (keeps)
      keep(value, "is a transposed copy that is read row by row, again and again");
    else
      take_out(step);
  }

  // Says why an element of `value` cannot or should not be computed where it is read; else empty.
  std::string reason_to_keep(StepId step, ValueId value) {
    const Nest& producer = *nest(step);
    if (producer.statement.stores.size() != 1 || writers_[value].size() != 1)
      return "has parts that are written one by one";
    if (!is_elementwise(producer.statement)) return "is written in part";
    if (!is_own(value) || readers_[value].empty()) return "is a result";
    if (choice_of(value) == false) return "is to be kept";
    for (StepId reader : readers_[value])
      if (nest(reader) == nullptr) return "is needed in memory by " + name_of(reader);
    return cost_of_inlining(step, value);
  }

  std::optional<bool> choice_of(ValueId value) const {
    return options_.choice ? options_.choice(number_, value) : std::nullopt;
  }
  void keep(ValueId value, const std::string& reason) { function_.kept[value] = reason; }
  // "softmax (encoder.layer.0)".
  std::string name_of(StepId step) const {
    const Origin& origin = origin_of(function_.steps[step]);
    return short_name(origin) + (origin.module.empty() ? "" : " (" + origin.module + ")");
  }
  // "2: mean, sub".
  std::string readers_of(ValueId value) const {
    std::vector<std::string> names;
    for (const StepId reader : readers_[value]) {
      const std::string name = short_name(origin_of(function_.steps[reader]));
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return readers_[value].size() == 1
               ? name_of(*readers_[value].begin())
               : fmt::format("{}: {}", readers_[value].size(), fmt::join(names, ", "));
  }
  void note_fused(StepId from, StepId into) {
    const Nest& producer = *nest(from);
    auto& reader = std::get<Nest>(function_.steps[into]);
    std::vector<Origin> all = producer.fused;
    const auto add = [&](const Origin& one) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    };
    const bool is_view = producer.statement.stores[0].value.kind() == ExprKind::load;
    if (!is_view) add(producer.origin);
    for (const Origin& one : reader.fused) add(one);
    reader.fused = std::move(all);
  }

  void take_out(StepId step) {
    remove(step);
    removed_.insert(step);
  }

  // Replaces loads of the result of `producer` in `reading` by the expression that it stores.
  Statement inlined(const Statement& producer, const Statement& reading) const {
    const Store& store = producer.stores[0];
    const AxisIds axes = *axes_of_dimensions(store.at);
    const DType dtype = function_.values[value_of(store)].type.dtype;
    const Expr value = composit::cast(store.value, dtype);
    const Statement rounding =
        has_arithmetic(value) ? with_rounding(reading, value_of(store), dtype) : reading;
    const Statement moved = replaced(rounding, [&](const Expr& part) {
      if (part.kind() != ExprKind::load || part.number() != store.result) return Expr();
      return composit::replace(value, [&](const Expr& leaf) {
        if (leaf.kind() != ExprKind::axis) return Expr();
        const auto dimension = std::find(axes.begin(), axes.end(), leaf.number()) - axes.begin();
        return part[static_cast<size_t>(dimension)];
      });
    });
    return simplified(without_tests_of_known(moved));
  }

  // Drops tests for negative indices where the indices are constants without negative elements.
  Statement without_tests_of_known(const Statement& statement) const {
    return replaced(statement, [&](const Expr& part) {
      const bool tested = part.is(composit::Function::lt) && composit::is_literal(part[1], 0) &&
                          part[0].kind() == ExprKind::load;
      if (!tested) return Expr();
      const auto range = range_of(function_.values[value_of(part[0])].constant);
      return range && range->first >= 0 ? Expr::literal(false, composit::DType::bool_) : Expr();
    });
  }

  // If only one nest uses the result of a reduction, element by element, makes that nest the
  // epilogue of the reduction.
  void append_to_reduction(StepId step) {
    while (true) {
      const Nest* producer = nest(step);
      if (producer == nullptr || producer->statement.init.empty()) return;
      const std::vector<Store>& stores = producer->statement.stores;
      if (stores.size() != 1 || stores[0].add || !is_own(value_of(stores[0]))) return;
      const ValueId value = value_of(stores[0]);
      std::string reason;
      const auto merged = appended_to(step, value, reason);
      if (!merged) return keep(value, reason);
      const StepId reader = *readers_[value].begin();
      note_fused(step, reader);
      remove(reader);
      take_out(step);
      statement(reader) = *merged;
      add(reader);
      step = reader;
    }
  }

  std::optional<Statement> appended_to(StepId step, ValueId value, std::string& reason) {
    if (has_axes(statement(step), composit::AxisKind::scan))
      reason = "is a scan, whose elements follow each other";
    else if (readers_[value].size() != 1)
      reason = "is read by " + readers_of(value);
    else if (choice_of(value) == false)
      reason = "is to be kept";
    else if (const StepId reader = *readers_[value].begin(); nest(reader) == nullptr)
      reason = "is needed in memory by " + name_of(reader);
    else if (auto merged = appended(statement(step), statement(reader), reason))
      return merged;
    else
      reason += name_of(reader);
    return std::nullopt;
  }

  // If that fails, sets `reason`, which ends before the reader's name.
  std::optional<Statement> appended(const Statement& reduction, const Statement& reading,
                                    std::string& reason) const {
    const Store& store = reduction.stores[0];
    const auto dimensions = axes_of_dimensions(store.at);
    if (!reading.init.empty()) {
      reason = "is needed whole by ";
      return std::nullopt;
    }
    reason = "is read in part, or in another order, by ";
    if (!dimensions || reading.domain.defined() || reading.axes.size() != dimensions->size() ||
        dimensions->size() != parallel_axes(reduction))
      return std::nullopt;
    // Every load of the result must be at the reading nest's own axes, always the same ones.
    AxisIds axes(reading.axes.size());
    std::optional<Expr> load;
    for (const Expr& part : composit::parts_of(expressions(reading))) {
      if (part.kind() != ExprKind::load || part.number() != store.result) continue;
      if (load && !load->same(part)) return std::nullopt;
      load = part;
    }
    const auto places = axes_of_dimensions(load->arguments());
    if (!places || places->size() != axes.size()) return std::nullopt;
    for (size_t i = 0; i < places->size(); ++i) {
      const AxisId axis = (*places)[i];
      if (reading.axes[axis].extent != reduction.axes[(*dimensions)[i]].extent)
        return std::nullopt;  // a part of it
      axes[axis] = (*dimensions)[i];
    }
    const DType dtype = function_.values[value_of(store)].type.dtype;
    const Expr value = composit::cast(store.value, dtype);
    const Statement moved =
        replaced(with_rounding(reading, value_of(store), dtype), [&](const Expr& part) {
          if (part.kind() == ExprKind::axis) return Expr::axis(axes[part.number()]);
          return Expr();
        });
    const Expr moved_load = Expr::load(store.result, load->dtype(), store.at);
    Statement merged = reduction;
    merged.stores = replaced(moved, [&](const Expr& part) {
                      return part.same(moved_load) ? value : Expr();
                    }).stores;
    return simplified(std::move(merged));
  }

  // Drops stores that no step reads, nests without other stores, and steps that were removed.
  void drop_unused() {
    const auto used = [&](ValueId value) {
      return function_.values[value].role == Role::result || !readers_[value].empty();
    };
    for (StepId i = function_.steps.next(); i-- > 0;) {
      if (removed_.contains(i)) continue;
      const ValueIds written = writes(function_.steps[i]);
      if (std::none_of(written.begin(), written.end(), used)) {
        if (!has_effect(program_, function_.steps[i])) take_out(i);
      } else if (nest(i) != nullptr && !std::all_of(written.begin(), written.end(), used)) {
        remove(i);
        std::erase_if(statement(i).stores, [&](const Store& one) { return !used(value_of(one)); });
        statement(i) = without_unused_accumulators(statement(i));
        add(i);
      }
    }
    Table<StepId, Step> kept;
    for (const StepId i : function_.steps.ids())
      if (!removed_.contains(i)) kept.push_back(std::move(function_.steps[i]));
    function_.steps = std::move(kept);
  }

  const Program& program_;
  const FunctionId number_;
  Routine& function_;
  const FuseOptions& options_;
  Table<ValueId, std::set<StepId>> readers_, writers_;
  std::set<StepId> removed_;
};

}  // namespace

Program fuse(Program program, const FuseOptions& options) {
  expect_bound("fuse", program);
  for (const FunctionId i : program.functions.ids())
    Fuser(program, i, program.functions[i], options).run();
  return program;
}

}  // namespace flashlight::loops
