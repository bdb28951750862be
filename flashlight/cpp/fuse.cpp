#include "flashlight/cpp/fuse.h"

#include <algorithm>
#include <set>

#include "composit/ad/affine.h"
#include "flashlight/cpp/contraction.h"
#include "flashlight/cpp/literal.h"
#include "flashlight/cpp/statement.h"

namespace flashlight::cpp {
namespace {

using composit::Store;

// Distinct parts of one statement's expressions: what is larger stays apart.
constexpr size_t kMaxParts = 240;
// Operations that may be repeated rather than kept in memory: per element, all uses counted.
constexpr double kMaxRepeatedWork = 4;

// So often a copy of a matrix is read that is transposed rather than read across.
constexpr int64_t kLeastRounds = 16;

class Fuser {
 public:
  Fuser(const Program& program, Routine& function, const FuseOptions& options)
      : program_(program), function_(function), options_(options) {}

  void run() {
    count();
    for (size_t i = 0; i < function_.steps.size(); ++i) append_to_reduction(i);
    for (size_t i = 0; i < function_.steps.size(); ++i) inline_step(i);
    for (size_t i = 0; i < function_.steps.size(); ++i) append_to_reduction(i);
    drop_unused();
  }

 private:
  const Nest* nest(size_t step) const {
    return removed_.contains(step) ? nullptr : std::get_if<Nest>(&function_.steps[step]);
  }
  Statement& statement(size_t step) { return std::get<Nest>(function_.steps[step]).statement; }

  void count() {
    readers_.assign(function_.values.size(), {});
    writers_.assign(function_.values.size(), {});
    for (size_t i = 0; i < function_.steps.size(); ++i) add(i);
  }
  void add(size_t step) {
    for (size_t value : reads(function_.steps[step])) readers_[value].insert(step);
    for (size_t value : writes(function_.steps[step])) writers_[value].insert(step);
  }
  void remove(size_t step) {
    for (size_t value : reads(function_.steps[step])) readers_[value].erase(step);
    for (size_t value : writes(function_.steps[step])) writers_[value].erase(step);
  }

  bool is_own(size_t value) const {
    return function_.values[value].role == Role::temporary && writers_[value].size() == 1;
  }

  // Evaluations of `value` if it were computed where it is read.
  int64_t evaluations(size_t value) {
    int64_t count = 0;
    for (size_t reader : readers_[value]) {
      const Statement& reading = statement(reader);
      std::set<std::pair<uint64_t, uint64_t>> loads;
      for (const Expr& part : composit::parts_of(expressions(reading)))
        if (part.kind() == ExprKind::load && part.number() == value)
          loads.insert({part.hash().low, part.hash().high});
      count += static_cast<int64_t>(loads.size()) * iterations_for(reading, value);
    }
    return count;
  }

  // How often `reading` evaluates a load of `value`: a product of matrices asks for each element of
  // a side once.
  static int64_t iterations_for(const Statement& reading, size_t value) {
    const auto product = contraction_of(reading);
    if (!product) return iterations(reading);
    const auto reads_it = [&](const Expr& side) {
      const std::vector<Expr> parts = composit::parts_of({side});
      return std::any_of(parts.begin(), parts.end(), [&](const Expr& part) {
        return part.kind() == ExprKind::load && part.number() == value;
      });
    };
    const bool left = reads_it(product->left), right = !left && reads_it(product->right);
    int64_t count = 1;
    const auto times = [&](const std::vector<size_t>& axes) {
      for (size_t axis : axes) count *= reading.axes[axis].extent.value();
    };
    times(product->batch);
    if (left || !right) times(product->rows);
    if (right || !left) times(product->columns);
    if (left || right) times(product->terms);
    return count;
  }

  bool is_worth_inlining(size_t step, size_t value) {
    const Cost cost = cost_of(statement(step).stores[0].value);
    const Value& read = function_.values[value];
    if (cost.operations == 0) return true;
    if (is_half(read.type.dtype)) return false;  // rounded where it is stored
    const double repeats = static_cast<double>(evaluations(value)) /
                           static_cast<double>(std::max<int64_t>(read.type.numel(), 1));
    if (repeats <= 1) return true;
    return !cost.expensive && repeats * static_cast<double>(cost.operations) <= kMaxRepeatedWork;
  }

  // Whether a product reads rows of one array again and again.
  static bool reads_rows_often(const Statement& reading) {
    const auto product = contraction_of(reading);
    if (!product || product->right.kind() != ExprKind::load || product->columns.empty())
      return false;
    const std::vector<size_t> axes = axes_in(product->right);
    int64_t rounds = 1;
    for (const auto* outside : {&product->batch, &product->outer})
      for (size_t axis : *outside)
        if (!std::count(axes.begin(), axes.end(), axis))
          rounds *= reading.axes[axis].extent.value();
    const std::vector<Expr>& indices = product->right.arguments();
    return rounds >= kLeastRounds && indices.back().kind() == ExprKind::axis &&
           indices.back().number() == product->columns.back();
  }

  void inline_step(size_t step) {
    const Nest* producer = nest(step);
    if (producer == nullptr || !is_elementwise(producer->statement)) return;
    const size_t value = producer->statement.stores[0].result;
    if (!is_own(value) || readers_[value].empty()) return;
    for (size_t reader : readers_[value])
      if (nest(reader) == nullptr) return;
    if (!is_worth_inlining(step, value)) return;
    std::vector<std::pair<size_t, Statement>> changed;
    bool keeps = false;
    for (size_t reader : readers_[value]) {
      Statement now = inlined(producer->statement, statement(reader));
      if (composit::parts_of(expressions(now)).size() > kMaxParts) return;
      if (options_.allows && !options_.allows(statement(reader), now)) return;
      if (reads_rows_often(statement(reader)) && !reads_rows_often(now))
        keeps = true;  // a transposed copy
      else
        changed.emplace_back(reader, std::move(now));
    }
    for (auto& [reader, now] : changed) {
      remove(reader);
      statement(reader) = std::move(now);
      add(reader);
    }
    if (!keeps) take_out(step);
  }

  void take_out(size_t step) {
    remove(step);
    removed_.insert(step);
  }

  // `reading` with loads of what `producer` stores replaced by its value there.
  Statement inlined(const Statement& producer, const Statement& reading) const {
    const Store& store = producer.stores[0];
    const std::vector<size_t> axes = *axes_of_dimensions(store.at);
    const Expr value = composit::cast(store.value, function_.values[store.result].type.dtype);
    const Statement moved = replaced(reading, [&](const Expr& part) {
      if (part.kind() != ExprKind::load || part.number() != store.result) return Expr();
      return composit::replace(value, [&](const Expr& leaf) {
        if (leaf.kind() != ExprKind::axis) return Expr();
        const auto dimension = std::find(axes.begin(), axes.end(), leaf.number()) - axes.begin();
        return part[static_cast<size_t>(dimension)];
      });
    });
    return simplified(without_tests_of_known(moved));
  }

  // Indices that are known are known not to count from the end.
  Statement without_tests_of_known(const Statement& statement) const {
    return replaced(statement, [&](const Expr& part) {
      const bool tested = part.is(composit::Function::lt) && composit::is_literal(part[1], 0) &&
                          part[0].kind() == ExprKind::load;
      if (!tested) return Expr();
      const auto range = range_of(function_.values[part[0].number()].constant);
      return range && range->first >= 0 ? Expr::literal(false, composit::DType::bool_) : Expr();
    });
  }

  // Where the elements of a reduction's result are used one by one, and by one nest only, that nest
  // becomes what the reduction does with its accumulator.
  void append_to_reduction(size_t step) {
    while (true) {
      const Nest* producer = nest(step);
      if (producer == nullptr || producer->statement.init.empty() ||
          has_axes(producer->statement, composit::AxisKind::scan))
        return;
      const std::vector<Store>& stores = producer->statement.stores;
      if (stores.size() != 1 || stores[0].add || !is_own(stores[0].result)) return;
      const size_t value = stores[0].result;
      if (readers_[value].size() != 1) return;
      const size_t reader = *readers_[value].begin();
      if (nest(reader) == nullptr) return;
      const auto merged = appended(producer->statement, statement(reader));
      if (!merged) return;
      remove(reader);
      take_out(step);
      statement(reader) = *merged;
      add(reader);
      step = reader;
    }
  }

  std::optional<Statement> appended(const Statement& reduction, const Statement& reading) const {
    const Store& store = reduction.stores[0];
    const auto dimensions = axes_of_dimensions(store.at);
    if (!dimensions || !reading.init.empty() || reading.domain.defined() ||
        is_half(function_.values[store.result].type.dtype) ||
        reading.axes.size() != dimensions->size() || dimensions->size() != parallel_axes(reduction))
      return std::nullopt;
    // Every load of the result must be at the reading nest's own axes, always the same ones.
    std::vector<size_t> axes(reading.axes.size());
    std::optional<Expr> load;
    for (const Expr& part : composit::parts_of(expressions(reading))) {
      if (part.kind() != ExprKind::load || part.number() != store.result) continue;
      if (load && !load->same(part)) return std::nullopt;
      load = part;
    }
    const auto places = axes_of_dimensions(load->arguments());
    if (!places || places->size() != axes.size()) return std::nullopt;
    for (size_t i = 0; i < places->size(); ++i) {
      const size_t axis = (*places)[i];
      if (reading.axes[axis].extent != reduction.axes[(*dimensions)[i]].extent)
        return std::nullopt;  // a part of it
      axes[axis] = (*dimensions)[i];
    }
    const Expr value = composit::cast(store.value, function_.values[store.result].type.dtype);
    const Statement moved = replaced(reading, [&](const Expr& part) {
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

  // Stores that nobody reads, nests without others, and places of those that moved.
  void drop_unused() {
    const auto used = [&](size_t value) {
      return function_.values[value].role == Role::result || !readers_[value].empty();
    };
    for (size_t i = function_.steps.size(); i-- > 0;) {
      if (removed_.contains(i)) continue;
      const std::vector<size_t> written = writes(function_.steps[i]);
      if (std::none_of(written.begin(), written.end(), used)) {
        if (!has_effect(program_, function_.steps[i])) take_out(i);
      } else if (nest(i) != nullptr && !std::all_of(written.begin(), written.end(), used)) {
        remove(i);
        std::erase_if(statement(i).stores, [&](const Store& one) { return !used(one.result); });
        statement(i) = without_unused_accumulators(statement(i));
        add(i);
      }
    }
    std::vector<Step> kept;
    for (size_t i = 0; i < function_.steps.size(); ++i)
      if (!removed_.contains(i)) kept.push_back(std::move(function_.steps[i]));
    function_.steps = std::move(kept);
  }

  const Program& program_;
  Routine& function_;
  const FuseOptions& options_;
  std::vector<std::set<size_t>> readers_, writers_;
  std::set<size_t> removed_;
};

}  // namespace

void fuse(Program& program, const FuseOptions& options) {
  for (Routine& function : program.functions) Fuser(program, function, options).run();
}

}  // namespace flashlight::cpp
