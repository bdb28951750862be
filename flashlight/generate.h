// Tokens of a language model, one after the other, over any step of decoding: a program, its
// capture, or compiled code.
//
//   flashlight::DecodingStep step = logits_of;      // of tokens at positions
//   flashlight::Generation run(step, {{1, 17, 4}}, {.max_tokens = 100, .temperature = 0.8});
//   while (!run.done()) std::cout << *run.next()[0] << std::flush;
//
//   auto sequences = flashlight::generate(step, {{1, 17, 4}, {1, 9}}, {.max_tokens = 20});
//
// The step keeps keys and values of what it was given (a cache that it writes in place). It gets
// tokens and their positions, (sequences, T) of int64, and gives the logits of each sequence's last
// token, (sequences, vocabulary), or of all, (sequences, T, vocabulary). The first call has the
// prompts; shorter ones are filled up behind their end, where later tokens are written, so prompts
// of different lengths need the logits of all tokens. It runs in the caller's grad mode.
//
// Without a temperature the token of the largest logit is taken. Otherwise it is drawn as this
// does, where `logits` are float32 or float64, and LibTorch draws the same tokens from a generator
// in the same state:
//
// ```text
//   x = logits / temperature
//   x = x.masked_fill(x < x.topk(k).values[:, -1:], -inf)             # top_k
//   sorted, order = x.sort(-1, descending=True, stable=True)          # top_p
//   p = sorted.softmax(-1); drop = p.cumsum(-1) - p >= top_p
//   x = x.masked_fill(drop.scatter(-1, order, drop), -inf)
//   token = x.softmax(-1).multinomial(1, generator=generator)
// ```
//
// All sequences draw at each step, those that have stopped, too.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace flashlight {

// `tokens` and `positions` (sequences, T) of int64 -> logits: see above.
using DecodingStep =
    std::function<at::Tensor(const at::Tensor& tokens, const at::Tensor& positions)>;
// Token numbers of a sequence.
using TokenIds = std::vector<int64_t>;

// Options of `generate`.
struct GenerateOptions {
  int64_t max_tokens = 0;  // that each sequence gets; at least 1
  // Positions of the step's cache: a sequence stops where it is full. 0: the step refuses then.
  int64_t capacity = 0;
  double temperature = 0;                     // 0: the largest logit
  int64_t top_k = 0;                          // draws from so many tokens; 0: from all
  double top_p = 1;                           // and from the fewest that have this probability
  TokenIds stop_tokens = {};                  // stop a sequence, as its last token
  std::vector<TokenIds> stop_sequences = {};  // the same by several tokens in a row
  // Draws from it; none: from LibTorch's default CPU generator.
  std::optional<at::Generator> generator = std::nullopt;
};

// The reason why a sequence gets no more tokens.
enum class Stop : uint8_t { none, token, sequence, max_tokens, capacity };
// "token", "max_tokens", …
std::string_view name(Stop stop);

// What a generation needs to go on: with the cache as it is, or, where `cached` is false, with
// another one, which gets all tokens again.
struct GenerationState {
  std::vector<TokenIds> sequences = {};      // prompts, and what was generated
  std::vector<int64_t> prompt_lengths = {};  // tokens of each prompt
  std::vector<Stop> stops = {};              // why sequences have stopped
  bool cached = false;        // all but the last token of each have been through the step
  at::Tensor generator = {};  // its state; undefined where nothing is drawn
};

// A generation that goes on token by token. What throws (a step that is interrupted) leaves it as
// it was: `next` may be called again. Not for several threads at once.
class Generation {
 public:
  // UserError for prompts that are empty or do not fit the cache, and for options out of range.
  Generation(DecodingStep step, const std::vector<TokenIds>& prompts, GenerateOptions options);
  // Goes on from `state`, with the same tokens as the generation that it is of. The generator of
  // `options` gets its state.
  Generation(DecodingStep step, GenerationState state, GenerateOptions options);

  // True if all sequences have stopped.
  bool done() const;
  // Runs the step once: the next token of each sequence; nothing for those that had stopped.
  // UserError where none goes on, and where the step gives no logits, or NaN.
  std::vector<std::optional<int64_t>> next();

  // Prompts and what was generated, by sequence.
  const std::vector<TokenIds>& sequences() const { return state_.sequences; }
  // The reason why a sequence has stopped, if it has.
  Stop stop(size_t sequence) const { return state_.stops.at(sequence); }
  // As it is now; the generator's state is a copy.
  GenerationState state() const;

 private:
  struct Call {
    at::Tensor tokens, positions;
  };
  Call next_call() const;
  at::Tensor last_logits(const at::Tensor& logits, const Call& call) const;
  at::Tensor sampled(const at::Tensor& logits) const;
  void expect_logits(const at::Tensor& wrong, const std::string& received) const;
  Stop stop_behind(const TokenIds& sequence, int64_t prompt) const;
  bool draws() const { return options_.temperature > 0; }

  DecodingStep step_;
  GenerateOptions options_;
  GenerationState state_;
};

// Called behind each step with the next token of each sequence; false interrupts.
using OnTokens = std::function<bool(const std::vector<std::optional<int64_t>>& tokens)>;

// Generates until all sequences have stopped: prompts and what was generated. UserError as of
// Generation.
std::vector<TokenIds> generate(const DecodingStep& step, const std::vector<TokenIds>& prompts,
                               const GenerateOptions& options, const OnTokens& on_tokens = nullptr);

}  // namespace flashlight
