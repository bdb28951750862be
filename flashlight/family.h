// A program for all sizes: captures of it at several sizes, made one.
//
//   auto family = flashlight::trace_family(bert, example(ids_2x16), example(ids_3x23),
//                                          example(ids_5x12));
//   at::Tensor y = family(ids_4x21);                    // the bits of bert(ids_4x21)
//   for (const std::string& line : family.assumptions()) std::cout << line << '\n';
//   flashlight::CheckReport report = family.check(ids_1x9);    // runs the program there
//   auto captured = family.at({{"batch", 4}, {"tokens", 21}});   // a Capture
//
// The program runs once per example. Its graphs have to be alike but for integers, and each integer
// that differs follows from sizes by a formula (composit/family/unify.h). A call binds the family
// to the sizes of its arguments, which have to lie within what was shown, and replays. Sizes at the
// ends of that range, and formulas, are *fitted* until a check there: `assumptions` says which
// sizes were shown, which were checked, and what is fitted.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "composit/family/bind.h"
#include "composit/family/cases.h"
#include "composit/op/size_range.h"
#include "flashlight/check.h"
#include "flashlight/trace.h"

namespace flashlight {

// A size that is declared: its name, and the range in which the family has to hold.
using composit::SizeRange;

// A number of the program that is no size and that the caller chooses: a learning rate under a
// schedule, the weight of a loss.
//
//   FamilySettings settings;
//   settings.numbers = {{"lr", [&] { return adam.lr(); }, [&](double lr) { adam.lr(lr); }}};
struct FamilyNumber {
  std::string name;  // a word
  // As it is in the program now: read before each run of it, and before each call of the family.
  // Absent: examples and calls give it.
  std::function<double()> get = nullptr;
  // Sets it, for examples that choose it: see Example::with.
  std::function<void(double number)> set = nullptr;
};

// Options of `trace_family`.
struct FamilySettings {
  // Names of the sizes that differ between examples, in the order of arguments and axes: "batch",
  // "tokens". Empty: they are called by argument and axis.
  std::vector<std::string> names = {};
  TraceSettings trace = {};  // of each example
  // What the program asks of numbers that it reads on the host, where C++ compares them:
  // composit::predicate("model.cpp:12", "> 0"). See composit/family/predicates.h.
  std::vector<composit::Predicate> predicates = {};
  // Numbers that are no sizes and no arguments.
  std::vector<FamilyNumber> numbers = {};
  // For families that choose their examples themselves: see `trace_family` with a function of
  // sizes.
  std::vector<SizeRange> ranges = {};
  // True: where the program writes nothing and draws nothing, each example is replayed by the
  // family, and has to give the program's bits. False: their graphs alone are compared.
  bool replay_examples = true;
};

// A family whose types are not known: tensors in, tensors out.
class FamilyBase {
 public:
  // `numbers`: by example, those that are no sizes and no arguments. UserError where the captures
  // are not one program at several sizes and numbers: see composit::unify_cases.
  FamilyBase(std::vector<CaptureBase> examples, const FamilySettings& settings,
             std::vector<composit::NumberValues> numbers = {});

  // A family that chooses its examples: three small ones, more where `unify` asks for them, and
  // checks at both ends of each range. `arguments_at` gives arguments of these sizes; `capture`
  // runs the program on them. UserError where a range has less than three sizes from 2 on, or does
  // not hold.
  using ArgumentsAt = std::function<FlatValues(const composit::SizeValues& sizes)>;
  using CaptureOf = std::function<CaptureBase(const FlatValues& arguments)>;
  static FamilyBase over(const ArgumentsAt& arguments_at, const CaptureOf& capture,
                         const FamilySettings& settings);

  // The graph of the first example, and formulas; of the first case where there are several.
  const composit::Family& family() const;
  // A family for each structure that the program has, and the conditions that choose between them.
  const composit::Cases& cases() const;
  // The sizes of these arguments. UserError where they are those of no size.
  composit::SizeValues sizes_of(const std::vector<at::Tensor>& arguments) const;
  // The same with the sizes that depend on values, for which the program's replay runs that far.
  composit::SizeValues sizes_of_call(const std::vector<at::Tensor>& arguments) const;
  // A capture at these sizes; made once. It has the present numbers in it, if there are any.
  // UserError outside of what was shown or checked.
  CaptureBase at(const composit::SizeValues& sizes) const;
  // The same, made anew and not kept. Several threads may ask.
  CaptureBase fresh_at(const composit::SizeValues& sizes) const;

  // The same family, for which these numbers are what the program has for them: `with({{"lr",
  // 0.05}})(x)`. The number of the call is "calls"; unless it is given, calls are counted.
  // UserError for a name that no number has.
  FamilyBase with(composit::NumberValues numbers) const;
  // The present numbers: those of `with`, those among arguments of this structure, and what
  // FamilySettings::numbers reads. UserError where one is not known.
  composit::NumberValues numbers_now(const Structure& arguments) const;
  // Runs `run` as the next call, with the present numbers in the order of `number_names`. Where
  // calls are counted they come one after the other, and one that throws does not count. UserError
  // where the program has put other tensors in the place of its state.
  using Run = std::function<FlatValues(const std::vector<double>& numbers)>;
  FlatValues run_call(const Structure& arguments, const Run& run) const;
  // Numbers that callers give or that are counted, by name.
  std::vector<std::string> number_names() const;
  // A capture at these sizes whose further arguments are the numbers, float64 tensors without axes.
  // UserError as of `at`, and of composit::with_number_inputs.
  CaptureBase with_number_inputs_at(const composit::SizeValues& sizes) const;
  // Names of state that the program makes anew in each call, and of such that has another size
  // then.
  const std::vector<std::string>& state_names() const;
  const std::vector<std::string>& growing_state() const;
  // UserError where these are not of the structure of the examples' arguments, but for numbers.
  void expect_arguments(const Structure& structure) const;

  // Binds to the sizes of the arguments and replays, with the present numbers.
  FlatValues call(const FlatValues& arguments) const;
  FlatValues call(const std::vector<at::Tensor>& arguments) const;
  // Runs the program on arguments of any sizes and compares: its graph with the family's there, but
  // for what changes no value; its results with those of a replay, bit for bit. If all is equal,
  // the sizes count as checked, and the range of each grows to them. Where a size is 1, LibTorch
  // leaves out operators that do nothing there, and equal results do. Where it is another program,
  // a family without numbers refuses these sizes from then on, until it is extended.
  CheckReport check_flat(const FlatValues& arguments) const;
  CheckReport check_flat(const std::vector<at::Tensor>& arguments) const;
  // The same, with a capture of the program on these arguments by `run`.
  using RunAgain = std::function<CaptureBase(const FlatValues& arguments)>;
  CheckReport check_flat(const FlatValues& arguments, const RunAgain& run) const;
  // UserError where a check at these sizes found another program; `at` and calls ask for that.
  void expect_not_refuted(const composit::SizeValues& sizes) const;
  // UserError where the program's modules or the modes that it runs in changed since its last
  // example or check; calls ask for that.
  void expect_unchanged() const;
  // The first difference between a capture of the program and the family at its sizes; empty if
  // their graphs are equal. Nothing runs, and no range grows. UserError for arguments of no size of
  // the family.
  std::string difference_from(const CaptureBase& there) const;
  // One example more, with the numbers that it had. UserError, and the family stays what it was,
  // where it does not belong to it.
  void extend(CaptureBase example, composit::NumberValues numbers = {});
  // Runs the program on these arguments and extends the family.
  void extend_at(const FlatValues& arguments);

  // Writes a folder, as CaptureBase::save: the first example, formulas and sizes. UserError where
  // the program leaves gradients in `.grad`, which a saved capture does not.
  void save(const std::filesystem::path& folder) const;
  // What `save` writes. Its arrays share memory with the tensors.
  composit::SavedCapture saved() const;
  // Loads a family that does not know its program. UserError for other folders.
  static FamilyBase load(const std::filesystem::path& folder);
  // The family of a saved one; `folder` is what errors call it.
  static FamilyBase of_saved(const composit::SavedCapture& saved,
                             const std::filesystem::path& folder);

  // A line for each size (shown, checked), for each formula that is no plain size, and what the
  // capture at the first example's sizes assumes.
  std::vector<std::string> assumptions() const;
  const Structure& argument_structure() const;

 private:
  struct State;
  struct Case {
    const composit::Family& family;
    const CaptureBase& example;  // the first of it
  };
  explicit FamilyBase(std::shared_ptr<State> state) : state_(std::move(state)) {}
  struct Comparison;
  // A capture that waits for its numbers; made once.
  CaptureBase open_at(const composit::SizeValues& sizes) const;
  CaptureBase fresh_open_at(const composit::SizeValues& sizes) const;
  Case case_number(size_t number) const;
  Case case_of(const composit::SizeValues& sizes) const;
  Comparison compared(const CaptureBase& there, composit::NumberValues numbers) const;
  void set_checked(const Comparison& comparison) const;
  std::shared_ptr<State> state_;
  composit::NumberValues numbers_;  // of `with`
};

namespace detail {

// The arguments of a call of the family, as a `Tuple` of the types that its program takes.
// UserError where they are of another structure than the examples', but for numbers.
template <class Tuple, class... Values>
FlatValues flatten_for(const FamilyBase& family, Values&&... values) {
  FlatValues flat;
  const Tuple tuple(std::forward<Values>(values)...);
  flat.structure = flatten(tuple, flat.tensors);
  family.expect_arguments(flat.structure);
  return flat;
}

}  // namespace detail

template <class Signature = void>
class Family;

// Tensors in, tensors out, in the order of the structure.
template <>
class Family<void> : public FamilyBase {
 public:
  // A typed view of any family.
  explicit Family(FamilyBase base) : FamilyBase(std::move(base)) {}
  // The tensors of the result.
  template <class... Tensors>
  std::vector<at::Tensor> operator()(const Tensors&... tensors) const {
    return call(std::vector<at::Tensor>{tensors...}).tensors;
  }
  // See FamilyBase::with.
  Family with(composit::NumberValues numbers) const {
    return Family(FamilyBase::with(std::move(numbers)));
  }
};

// A family whose types are known: called and checked like the program.
template <class Result, class... Arguments>
class Family<Result(Arguments...)> : public FamilyBase {
 public:
  using FamilyBase::FamilyBase;
  // `base` must have these types.
  explicit Family(FamilyBase base) : FamilyBase(std::move(base)) {}

  // The program's result: see FamilyBase::call.
  template <class... Values>
  Result operator()(Values&&... values) const {
    const FlatValues results = call(flatten_arguments(std::forward<Values>(values)...));
    if constexpr (!std::is_void_v<Result>)
      return unflatten<Result>(results.structure, results.tensors);
  }
  // See FamilyBase::with.
  Family with(composit::NumberValues numbers) const {
    return Family(FamilyBase::with(std::move(numbers)));
  }
  // Compares with the program on these values: see FamilyBase::check_flat.
  template <class... Values>
  CheckReport check(Values&&... values) const {
    return check_flat(flatten_arguments(std::forward<Values>(values)...));
  }
  // A capture at these sizes.
  Capture<Result(Arguments...)> at(const composit::SizeValues& sizes) const {
    return Capture<Result(Arguments...)>(FamilyBase::at(sizes));
  }
  // Runs the program on these values, one example more.
  template <class... Values>
  void extend(Values&&... values) {
    extend_at(flatten_arguments(std::forward<Values>(values)...));
  }

 private:
  template <class... Values>
  FlatValues flatten_arguments(Values&&... values) const {
    return detail::flatten_for<std::tuple<std::decay_t<Arguments>...>>(
        *this, std::forward<Values>(values)...);
  }
};

// Loads a family as tensors in, tensors out.
inline Family<> load_family(const std::filesystem::path& folder) {
  return Family<>(FamilyBase::load(folder));
}

// The inputs of one run, as the program takes them.
template <class... Values>
struct Example {
  std::tuple<Values...> inputs;             // as the program takes them
  composit::NumberValues numbers = {};      // that the program has in this run
  std::function<void()> prepare = nullptr;  // runs before it
  // The same example at another number. The program gets it by FamilyNumber::set; where there is
  // none, it has it already.
  Example with(const std::string& name, double number) const {
    Example other = *this;
    other.numbers[name] = number;
    return other;
  }
  // The same example behind `prepare`, which brings the program into another state: as many tokens
  // of its cache, say.
  Example after(std::function<void()> prepare) const {
    Example other = *this;
    other.prepare = std::move(prepare);
    return other;
  }
};

namespace detail {

// Numbers of a run: those of an example are set, and put back at the end.
class NumbersOfRun {
 public:
  // UserError where the program has another number than the example says, and nobody can set it.
  NumbersOfRun(const std::vector<FamilyNumber>& numbers, const composit::NumberValues& example);
  ~NumbersOfRun();
  NumbersOfRun(const NumbersOfRun&) = delete;
  NumbersOfRun& operator=(const NumbersOfRun&) = delete;
  const composit::NumberValues& values() const { return values_; }

 private:
  composit::NumberValues values_;
  std::vector<std::function<void()>> put_back_;
};

}  // namespace detail

// The inputs of one run: see Example.
template <class... Values>
Example<std::decay_t<Values>...> example(Values&&... values) {
  return {{std::forward<Values>(values)...}, {}, nullptr};
}

// Runs `program` on each example, and makes a family of the captures. UserError as of `trace` and
// of FamilyBase.
template <class T, class... Values, class... Others>
auto trace_family(const FamilySettings& settings, T&& program, const Example<Values...>& first,
                  const Others&... others) {
  TraceSettings trace_settings = settings.trace;
  if (!settings.predicates.empty()) trace_settings.source_lines = true;
  trace_settings.seen_once = true;  // examples are each other's second looks
  std::vector<CaptureBase> captures;
  std::vector<composit::NumberValues> numbers;
  const auto capture = [&](const auto& one) {
    if (one.prepare) one.prepare();
    const detail::NumbersOfRun of_run(settings.numbers, one.numbers);
    numbers.push_back(of_run.values());
    return std::apply(
        [&](const auto&... values) { return trace(trace_settings, program, values...); },
        one.inputs);
  };
  auto typed = capture(first);
  captures.push_back(typed);
  (captures.push_back(capture(others)), ...);
  const auto of_type = [&]<class Signature>(const Capture<Signature>&) {
    return Family<Signature>(std::move(captures), settings, std::move(numbers));
  };
  return of_type(typed);
}
template <class T, class... Values, class... Others>
requires(!std::is_base_of_v<FamilySettings, std::decay_t<T>>) auto trace_family(
    T&& program, const Example<Values...>& first, const Others&... others) {
  return trace_family(FamilySettings{}, std::forward<T>(program), first, others...);
}

// The same for a function of sizes that gives the inputs of an example as a tuple:
//
//   auto family = flashlight::trace_family(
//       {.ranges = {{"batch", 1, 8}, {"tokens", 1, 512}}}, model, [](const composit::SizeValues&
//       sizes) {
//         return std::tuple(torch::randint(0, 99, {sizes.at("batch"), sizes.at("tokens")}));
//       });
//
// The family chooses the sizes of its examples, and is checked at both ends of the ranges and at
// some sizes between them (composit/family/examples.h).
template <class T, class InputsAt>
requires std::is_invocable_v<InputsAt, const composit::SizeValues&>
auto trace_family(const FamilySettings& settings, T&& program, const InputsAt& inputs_at) {
  using Tuple = std::decay_t<std::invoke_result_t<InputsAt, const composit::SizeValues&>>;
  TraceSettings trace_settings = settings.trace;
  if (!settings.predicates.empty()) trace_settings.source_lines = true;
  trace_settings.seen_once = true;
  const auto capture = [&](const Tuple& inputs) {
    return std::apply(
        [&](const auto&... values) { return trace(trace_settings, program, values...); }, inputs);
  };
  const auto base = FamilyBase::over(
      [&](const composit::SizeValues& sizes) {
        FlatValues flat;
        const Tuple inputs = inputs_at(sizes);
        flat.structure = flatten(inputs, flat.tensors);
        return flat;
      },
      [&](const FlatValues& arguments) -> CaptureBase {
        return capture(unflatten<Tuple>(arguments.structure, arguments.tensors));
      },
      settings);
  const auto of_type = [&]<class Signature>(const Capture<Signature>*) {
    return Family<Signature>(base);
  };
  return of_type(static_cast<decltype(capture(std::declval<Tuple>()))*>(nullptr));
}

}  // namespace flashlight
