#include "flashlight/cpp/split.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "composit/ir/scope.h"
#include "flashlight/loops/loop_body.h"
#include "flashlight/loops/names.h"
#include "flashlight/loops/renumber.h"
#include "flashlight/loops/statement.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"
#include "flashlight/text/routine_writer.h"
#include "flashlight/text/weights.h"

namespace flashlight::cpp {

using namespace text;
namespace {

// Lines of the steps of a piece; the head of its function takes some more.
constexpr size_t kLeastLines = 10, kMostLines = 45;

// Steps [begin, end) as a function of their own, in place of which stands a call.
class Outliner {
 public:
  Outliner(Routine& whole, StepId begin, StepId end) : whole_(whole), begin_(begin), end_(end) {}

  // The new function is going to be number `number`.
  Routine run(const std::string& name, FunctionId number) {
    part_.name = name;
    part_.is_part = true;
    part_.is_loop_body = whole_.is_loop_body;
    Invocation call = {number, {}, {}, origin_of(whole_.steps[begin_])};
    std::set<ValueId> written, used_behind;
    for (StepId i = end_; i < whole_.steps.size(); ++i) add(used_behind, whole_.steps[i]);
    for (StepId i; i < begin_; ++i) add(used_behind, whole_.steps[i]);
    for (StepId i = begin_; i < end_; ++i)
      for (ValueId value : writes(whole_.steps[i])) written.insert(value);
    for (StepId i = begin_; i < end_; ++i)
      for (ValueId value : reads(whole_.steps[i]))
        if (!written.contains(value) && !numbers_.contains(value)) take_input(value, call);
    for (ValueId value : written) {
      const bool result = whole_.values[value].role == Role::result || used_behind.contains(value);
      const ValueId inner = take(value, result ? Role::result : Role::temporary);
      if (!result) continue;
      part_.results.push_back(inner);
      call.results.push_back(value);
    }
    for (StepId i = begin_; i < end_; ++i)
      part_.steps.push_back(renumbered(whole_.steps[i], numbers_));
    whole_.steps[begin_] = std::move(call);
    whole_.steps.erase(whole_.steps.begin() + static_cast<std::ptrdiff_t>(begin_) + 1,
                       whole_.steps.begin() + static_cast<std::ptrdiff_t>(end_));
    return std::move(part_);
  }

 private:
  static void add(std::set<ValueId>& values, const Step& step) {
    for (ValueId value : reads(step)) values.insert(value);
    for (ValueId value : writes(step)) values.insert(value);
  }
  ValueId take(ValueId value, Role role) {
    numbers_[value] = part_.values.next();
    part_.values.push_back(whole_.values[value]);
    part_.values.back().role = role;
    return numbers_[value];
  }
  void take_input(ValueId value, Invocation& call) {
    const Role role = whole_.values[value].role;
    const bool kept = role == Role::weight || role == Role::constant;
    const ValueId inner = take(value, kept ? role : Role::argument);
    if (role == Role::constant) return;
    part_.inputs.push_back(inner);
    call.arguments.push_back(value);
  }
  Routine& whole_;
  const StepId begin_, end_;
  Routine part_;
  std::map<ValueId, ValueId> numbers_;  // of values, in the part
};

// The innermost module that contains all of these modules.
std::string common_module(const Routine& function, StepId begin, StepId end) {
  std::string common = origin_of(function.steps[begin]).module;
  for (StepId i = begin; i < end; ++i)
    common = composit::common_scope(common, origin_of(function.steps[i]).module);
  return common;
}

// Function `same`, which stands before it, in place of function `number`.
void replace(Program& program, FunctionId number, FunctionId same) {
  program.functions.erase(program.functions.begin() + static_cast<std::ptrdiff_t>(number));
  const auto change = [&](FunctionId& called) {
    if (called == number) called = same;
    if (called > number) called = FunctionId(called - 1);
  };
  for (Routine& function : program.functions)
    for (Step& step : function.steps) {
      if (auto* call = std::get_if<Invocation>(&step)) change(call->function);
      if (auto* control = std::get_if<Control>(&step))
        for (FunctionId& called : control->functions) change(called);
    }
}

// Which steps to take out of a function that is too long: as many lines as fit for as few arguments
// and results as it takes.
class Choice {
 public:
  // `many`: what is longer than 24 lines may take as many arguments and results as it has lines.
  Choice(const Routine& function, const std::vector<WrittenPiece>& pieces, bool many)
      : function_(function), pieces_(pieces), many_(many), last_(function.values.size()) {
    for (const StepId i : function.steps.ids()) {
      reads_.push_back(reads(function.steps[i]));
      writes_.push_back(writes(function.steps[i]));
      for (const auto* list : {&reads_.back(), &writes_.back()})
        for (ValueId value : *list) last_[value] = i;
    }
    for (const WrittenPiece& piece : pieces) lengths_.push_back(length(piece.code, kIndent));
  }

  // An empty range where there is nothing to gain.
  std::pair<StepId, StepId> run() const {
    std::pair<StepId, StepId> best;
    double least = 1e9;
    for (size_t first = 0; first < pieces_.size(); ++first) {
      const StepId begin = first == 0 ? StepId() : pieces_[first - 1].steps.back() + 1;
      size_t lines = 0;
      for (size_t last = first; last < pieces_.size(); ++last) {
        lines += lengths_[last];
        if (lines > kMostLines && last > first) break;
        const StepId end = pieces_[last].steps.back() + 1;
        const bool whole = end - begin == function_.steps.size();
        if (lines < kLeastLines || whole || is_call(begin, end)) continue;
        const size_t passed = interface_of(begin, end);
        if (passed > (many_ ? std::clamp(lines, kMostPassed, kMostLines) : kMostPassed)) continue;
        const double cost = 4 * static_cast<double>(passed) - static_cast<double>(lines);
        if (cost >= least) continue;
        least = cost;
        best = {begin, end};
      }
    }
    return best;
  }

 private:
  // More arguments and results than that are hard to read.
  static constexpr size_t kMostPassed = 24;

  bool is_call(StepId begin, StepId end) const {
    return end - begin == 1 && std::holds_alternative<Invocation>(function_.steps[begin]);
  }

  size_t interface_of(StepId begin, StepId end) const {
    std::set<ValueId> written, passed;
    for (StepId i = begin; i < end; ++i) written.insert(writes_[i].begin(), writes_[i].end());
    for (StepId i = begin; i < end; ++i)
      for (ValueId value : reads_[i]) {
        const Role role = function_.values[value].role;
        if (!written.contains(value) && role != Role::weight && role != Role::constant)
          passed.insert(value);
      }
    for (ValueId value : written)
      if (last_[value] >= end || function_.values[value].role == Role::result) passed.insert(value);
    return passed.size();
  }

  const Routine& function_;
  const std::vector<WrittenPiece>& pieces_;
  std::vector<size_t> lengths_;  // by piece
  const bool many_;
  Table<ValueId, StepId> last_;  // the last step that touches it
  Table<StepId, ValueIds> reads_, writes_;
};

// Steps in the order in which their loops run. Another order may be scheduled in another way.
void put_in_order(Routine& function) {
  constexpr int kAttempts = 4;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const StepIds order = order_of_steps(schedule_of(function));
    if (std::is_sorted(order.begin(), order.end())) return;
    Table<StepId, Step> steps;
    for (const StepId step : order) steps.push_back(function.steps[step]);
    function.steps = std::move(steps);
  }
}

// Makes functions of parts of those that are too long.
class Splitter {
 public:
  Splitter(Program& program, const SplitOptions& options) : program_(program), options_(options) {
    for (const Routine& function : program.functions) names_.insert(identifier(function.name));
  }

  // True if it changed function `number`, as that was written. The part that was taken out gets
  // this number, and the function the next one.
  bool run(FunctionId number, const Schedule& schedule, const std::vector<WrittenPiece>& pieces) {
    const StepIds order = order_of_steps(schedule);
    if (!std::is_sorted(order.begin(), order.end())) return share_less(number, pieces);
    if (open_loop(number, pieces, kMostLines)) return true;
    const Routine& function = program_.functions[number];
    auto [begin, end] = Choice(function, pieces, false).run();
    if (begin == end) {
      if (open_loop(number, pieces, kLeastLines)) return true;
      std::tie(begin, end) = Choice(function, pieces, true).run();
    }
    if (begin == end) return share_less(number, pieces);
    const std::string name = name_of(function, begin, end, "_part");
    renumber_callees(program_, number);
    insert(number, Outliner(program_.functions[number], begin, end).run(name, number));
    return true;
  }

 private:
  // Steps of a loop that is as long as a function, or somewhat less.
  static constexpr size_t kFewSteps = 12;

  // Loops of more than `lines` lines become calls of their bodies, or shorter.
  bool open_loop(FunctionId number, const std::vector<WrittenPiece>& pieces, size_t lines) {
    for (const WrittenPiece& piece : pieces)
      if (piece.steps.size() > 1 && length(piece.code, kIndent) > lines) {
        if (options_.loop_bodies && take_loop(number, piece.steps)) return true;
        Routine& function = program_.functions[number];
        if (function.most_steps_in_loop > kFewSteps) {
          function.most_steps_in_loop = kFewSteps;
          return true;
        }
      }
    return false;
  }

  // Allows half as many steps in a loop as the longest one has, if no steps can be taken out.
  bool share_less(FunctionId number, const std::vector<WrittenPiece>& pieces) {
    Routine& function = program_.functions[number];
    size_t most = 0;
    for (const WrittenPiece& piece : pieces)
      if (std::holds_alternative<Nest>(function.steps[piece.steps[0]]))
        most = std::max(most, piece.steps.size());
    if (most < 2) return false;
    function.most_steps_in_loop = most / 2;
    return true;
  }

  bool take_loop(FunctionId number, const StepIds& steps) {
    Routine function = program_.functions[number];
    const std::string name = name_of(function, steps.front(), steps.back() + 1, "_body");
    auto body = extract_loop_body(function, steps, name, number);
    if (!body) return false;
    renumber_callees(program_, number);
    program_.functions[number] = std::move(function);
    insert(number, std::move(*body));
    return true;
  }

  std::string name_of(const Routine& function, StepId begin, StepId end, const char* suffix) {
    const std::string module = common_module(function, begin, end);
    return composit::unused_name(
        module.empty() ? identifier(function.name) + suffix : identifier(module), names_);
  }
  void insert(FunctionId number, Routine part) {
    program_.functions.insert(program_.functions.begin() + static_cast<std::ptrdiff_t>(number),
                              std::move(part));
  }

  Program& program_;
  const SplitOptions options_;
  std::set<std::string> names_;
};

}  // namespace

Program split_long_functions(Program program, const SplitOptions& options) {
  Splitter splitter(program, options);
  Table<FunctionId, ScheduledRoutine> scheduled;
  std::map<std::string, FunctionId> bodies;  // of functions by what they do
  for (FunctionId i; i < program.functions.size();) {
    const std::vector<WeightStruct> structs = plan_weights(program);
    put_in_order(program.functions[i]);
    scheduled.resize(i);
    scheduled.push_back(scheduled_routine(program.functions[i], program.functions, scheduled));
    RoutineWriter ordered(program, i, structs, scheduled);
    const text::Function written = ordered.write();
    const bool too_long = line_count(definition(written)) > kMaxFunctionLines;
    if (too_long && splitter.run(i, scheduled[i].schedule, ordered.pieces())) continue;
    const bool last = i + 1 == program.functions.size();
    const auto [same, is_new] = bodies.emplace(text_without_name(written), i);
    if (!is_new && !last) {
      replace(program, i, same->second);
      continue;
    }
    ++i;
  }
  return program;
}

}  // namespace flashlight::cpp
