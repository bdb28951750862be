#include "flashlight/generate.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "composit/ir/error.h"

namespace flashlight {
namespace {

using composit::UserError;

void check(const GenerateOptions& options) {
  const auto expect = [](bool holds, const std::string& name, const std::string& expected,
                         const auto& received) {
    if (!holds)
      throw UserError(
          c10::str("[generate] ", name, ": expected ", expected, ", received ", received));
  };
  expect(options.max_tokens >= 1, "max_tokens", "at least 1", options.max_tokens);
  expect(options.capacity >= 0, "capacity", "a number of positions, or 0", options.capacity);
  expect(options.temperature >= 0 && std::isfinite(options.temperature), "temperature",
         "a number from 0 on", options.temperature);
  expect(options.top_k >= 0, "top_k", "a number of tokens, or 0", options.top_k);
  expect(options.top_p > 0 && options.top_p <= 1, "top_p", "a probability above 0", options.top_p);
  for (const TokenIds& sequence : options.stop_sequences)
    expect(!sequence.empty(), "stop_sequences", "tokens", "none");
  if (options.generator)
    expect(options.generator->device().is_cpu(), "generator", "one on the CPU",
           c10::str(options.generator->device()));
}

void check(const GenerationState& state, const GenerateOptions& options) {
  const size_t count = state.sequences.size();
  if (count == 0 || state.prompt_lengths.size() != count || state.stops.size() != count)
    throw UserError(c10::str(
        "[generate] expected a prompt at least, and lengths and stops of all, received ", count,
        " sequences, ", state.prompt_lengths.size(), " lengths, ", state.stops.size(), " stops"));
  for (size_t i = 0; i < count; ++i) {
    const TokenIds& sequence = state.sequences[i];
    const auto length = static_cast<int64_t>(sequence.size());
    if (state.prompt_lengths[i] < 1 || state.prompt_lengths[i] > length)
      throw UserError(c10::str("[generate] sequence ", i,
                               ": expected a prompt of a token at least, received ",
                               state.prompt_lengths[i], " of ", length, " tokens"));
    if (options.capacity > 0 && state.prompt_lengths[i] > options.capacity)
      throw UserError(c10::str("[generate] sequence ", i, ": expected at most ", options.capacity,
                               " tokens, for which the cache has positions, received a prompt of ",
                               state.prompt_lengths[i]));
    if (std::any_of(sequence.begin(), sequence.end(), [](int64_t token) { return token < 0; }))
      throw UserError(c10::str("[generate] sequence ", i, ": expected token numbers, received ",
                               *std::min_element(sequence.begin(), sequence.end())));
  }
}

at::Generator generator_of(const GenerateOptions& options) {
  return options.generator ? *options.generator : at::globalContext().defaultGenerator(at::kCPU);
}

bool ends_with(const TokenIds& sequence, int64_t prompt, const TokenIds& end) {
  return static_cast<int64_t>(sequence.size()) - prompt >= static_cast<int64_t>(end.size()) &&
         std::equal(end.rbegin(), end.rend(), sequence.rbegin());
}

}  // namespace

std::string_view name(Stop stop) {
  switch (stop) {
    case Stop::none:
      return "none";
    case Stop::token:
      return "token";
    case Stop::sequence:
      return "sequence";
    case Stop::max_tokens:
      return "max_tokens";
    case Stop::capacity:
      return "capacity";
  }
  COMPOSIT_ASSERT(false, "a reason to stop");
}

Generation::Generation(DecodingStep step, const std::vector<TokenIds>& prompts,
                       GenerateOptions options)
    : step_(std::move(step)), options_(std::move(options)) {
  check(options_);
  state_.sequences = prompts;
  for (const TokenIds& prompt : prompts)
    state_.prompt_lengths.push_back(static_cast<int64_t>(prompt.size()));
  state_.stops.assign(prompts.size(), Stop::none);
  check(state_, options_);
}

Generation::Generation(DecodingStep step, GenerationState state, GenerateOptions options)
    : step_(std::move(step)), options_(std::move(options)), state_(std::move(state)) {
  check(options_);
  check(state_, options_);
  // Other limits than before may let a sequence go on.
  for (size_t i = 0; i < state_.sequences.size(); ++i)
    state_.stops[i] = stop_behind(state_.sequences[i], state_.prompt_lengths[i]);
  if (!draws() || !state_.generator.defined()) return;
  at::Generator generator = generator_of(options_);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state_.generator);
}

bool Generation::done() const {
  return std::all_of(state_.stops.begin(), state_.stops.end(),
                     [](Stop stop) { return stop != Stop::none; });
}

GenerationState Generation::state() const {
  GenerationState copy = state_;
  if (draws()) {
    at::Generator generator = generator_of(options_);
    const std::lock_guard lock(generator.mutex());
    copy.generator = generator.get_state();
  }
  return copy;
}

// All tokens of each sequence, filled up with zeros, where the cache has none of them; else the
// last one. A sequence that has stopped gives one that the cache has, once more.
Generation::Call Generation::next_call() const {
  const auto count = static_cast<int64_t>(state_.sequences.size());
  size_t width = 1;
  if (!state_.cached)
    for (const TokenIds& sequence : state_.sequences) width = std::max(width, sequence.size());
  if (!state_.cached && options_.capacity > 0)
    width = std::min(width, static_cast<size_t>(options_.capacity));
  Call call = {at::zeros({count, static_cast<int64_t>(width)}, at::kLong),
               at::zeros({count, static_cast<int64_t>(width)}, at::kLong)};
  auto tokens = call.tokens.accessor<int64_t, 2>(),
       positions = call.positions.accessor<int64_t, 2>();
  for (int64_t i = 0; i < count; ++i) {
    const TokenIds& sequence = state_.sequences[static_cast<size_t>(i)];
    const size_t back = state_.stops[static_cast<size_t>(i)] == Stop::none || sequence.size() < 2
                            ? 1
                            : 2,
                 first = state_.cached ? sequence.size() - back : 0;
    for (size_t j = 0; j < width; ++j) {
      const auto column = static_cast<int64_t>(j);
      if (first + j < sequence.size()) tokens[i][column] = sequence[first + j];
      positions[i][column] = static_cast<int64_t>(first + j);
    }
  }
  return call;
}

at::Tensor Generation::last_logits(const at::Tensor& logits, const Call& call) const {
  const int64_t count = call.tokens.size(0), width = call.tokens.size(1);
  const bool of_all = logits.defined() && logits.dim() == 3;
  if (!logits.defined() || !logits.is_floating_point() || logits.dim() < 2 || logits.dim() > 3 ||
      logits.size(0) != count || (of_all && logits.size(1) != width) || logits.size(-1) < 1)
    throw UserError(c10::str(
        "[generate] expected logits of a step, [", count, ", vocabulary] or [", count, ", ", width,
        ", vocabulary] of floats, received ",
        logits.defined() ? c10::str(logits.sizes(), " of ", logits.scalar_type()) : "none"));
  at::Tensor last = logits;
  if (of_all) {
    const at::Tensor ends = at::empty({count}, at::kLong);
    for (int64_t i = 0; i < count; ++i)
      ends.accessor<int64_t, 1>()[i] =
          std::min<int64_t>(static_cast<int64_t>(state_.sequences[static_cast<size_t>(i)].size()),
                            width) -
          1;
    last = logits.index({at::arange(count), ends});
  } else {
    for (const TokenIds& sequence : state_.sequences)
      if (width > 1 && static_cast<int64_t>(sequence.size()) != width)
        throw UserError(c10::str("[generate] expected logits of all tokens, [", count, ", ", width,
                                 ", vocabulary], since prompts have different lengths, received ",
                                 logits.sizes()));
  }
  if (!at::isReducedFloatingType(last.scalar_type())) return last;
  return last.to(at::kFloat);
}

// `wrong`: a bool for each sequence. What one gives that has stopped is nobody's.
void Generation::expect_logits(const at::Tensor& wrong, const std::string& received) const {
  for (size_t i = 0; i < state_.stops.size(); ++i)
    if (state_.stops[i] == Stop::none && wrong[static_cast<int64_t>(i)].item<bool>())
      throw UserError(
          c10::str("[generate] expected logits, received ", received, " for sequence ", i));
}

at::Tensor Generation::sampled(const at::Tensor& logits) const {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const at::Tensor largest = logits.amax(-1);  // NaN where one is
  expect_logits(largest.isnan(), "NaN");
  expect_logits(largest.eq(kNever), "-inf for all tokens");
  if (!draws()) return logits.argmax(-1);
  const at::Tensor stopped = at::zeros({logits.size(0), 1}, at::kBool);
  for (size_t i = 0; i < state_.stops.size(); ++i)
    stopped.select(0, static_cast<int64_t>(i)).fill_(state_.stops[i] != Stop::none);
  at::Tensor x = logits.masked_fill(stopped.to(logits.device()), 0) / options_.temperature;
  if (options_.top_k > 0 && options_.top_k < x.size(-1)) {
    const at::Tensor least = std::get<0>(x.topk(options_.top_k)).slice(-1, -1);
    x = x.masked_fill(x < least, kNever);
  }
  if (options_.top_p < 1) {
    const auto [sorted, order] = x.sort(/*stable=*/true, -1, /*descending=*/true);
    const at::Tensor p = sorted.softmax(-1), drop = p.cumsum(-1) - p >= options_.top_p;
    x = x.masked_fill(drop.scatter(-1, order, drop), kNever);
  }
  const at::Tensor p = x.softmax(-1);
  expect_logits(p.isnan().any(-1),
                c10::str("numbers that are infinite at a temperature of ", options_.temperature));
  return p.multinomial(1, /*replacement=*/false, generator_of(options_)).squeeze(-1);
}

Stop Generation::stop_behind(const TokenIds& sequence, int64_t prompt) const {
  const auto length = static_cast<int64_t>(sequence.size());
  if (length == prompt) return Stop::none;
  const auto is_last = [&](int64_t token) { return token == sequence.back(); };
  if (std::any_of(options_.stop_tokens.begin(), options_.stop_tokens.end(), is_last))
    return Stop::token;
  for (const TokenIds& end : options_.stop_sequences)
    if (ends_with(sequence, prompt, end)) return Stop::sequence;
  if (length - prompt >= options_.max_tokens) return Stop::max_tokens;
  return options_.capacity > 0 && length > options_.capacity ? Stop::capacity : Stop::none;
}

std::vector<std::optional<int64_t>> Generation::next() {
  if (done()) throw UserError("[generate] expected a sequence that goes on: all have stopped");
  const Call call = next_call();
  const at::Tensor of_step = step_(call.tokens, call.positions);
  const at::NoGradGuard no_grad;  // behind it: captures know the mode of their program
  const at::Tensor logits = last_logits(of_step, call);
  const size_t count = state_.sequences.size();
  const at::Tensor drawn = sampled(logits);
  std::vector<std::optional<int64_t>> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    if (state_.stops[i] != Stop::none) continue;
    tokens[i] = drawn[static_cast<int64_t>(i)].item<int64_t>();
    state_.sequences[i].push_back(*tokens[i]);
    state_.stops[i] = stop_behind(state_.sequences[i], state_.prompt_lengths[i]);
  }
  state_.cached = true;
  return tokens;
}

std::vector<TokenIds> generate(const DecodingStep& step, const std::vector<TokenIds>& prompts,
                               const GenerateOptions& options, const OnTokens& on_tokens) {
  Generation run(step, prompts, options);
  while (!run.done()) {
    const std::vector<std::optional<int64_t>> tokens = run.next();
    if (on_tokens && !on_tokens(tokens)) break;
  }
  return run.sequences();
}

}  // namespace flashlight
