// Places in the user's text, and errors that name them:
//
//   model.py:3:11: aten::foo is not among composit's operations
//       y = torch.foo(x)
//           ^~~~~~~~~~~~
#pragma once

#include <torch/csrc/jit/frontend/source_range.h>

#include <string>

#include "composit/ir/error.h"

namespace flashlight::torchscript {

// An error whose text begins with its place. `unsupported`: to be followed by what is supported.
class PlacedError : public composit::UserError {
 public:
  explicit PlacedError(const std::string& what, bool unsupported = false)
      : composit::UserError(what), unsupported_(unsupported) {}
  bool unsupported() const { return unsupported_; }

 private:
  bool unsupported_;
};

// The error for code that is not in the subset.
class Unsupported : public composit::UserError {
 public:
  using composit::UserError::UserError;
};

// "model.py:3:11", columns from 1; "<no place>" where the program does not say.
std::string place_of(const torch::jit::SourceRange& range);
// `what` with place, line and caret.
std::string with_place(const torch::jit::SourceRange& range, const std::string& what);
// The error for `what`, a value that the graph computes but that is needed while the graph is made.
Unsupported not_known(const std::string& what);
// The subset in a few lines.
const std::string& supported();

// The message of LibTorch's compiler about a text, in the form above.
std::string compile_error(const std::string& text);

// LibTorch's message without its own stack.
std::string message_of(const std::exception& error);

// `work`; what it throws gets the place.
template <class Work>
auto at_place(const torch::jit::SourceRange& range, Work work) {
  try {
    return work();
  } catch (const PlacedError&) {
    throw;
  } catch (const Unsupported& error) {
    throw PlacedError(with_place(range, error.what()), /*unsupported=*/true);
  } catch (const composit::UserError& error) {
    throw PlacedError(with_place(range, error.what()));
  } catch (const composit::InternalError&) {
    throw;
  } catch (const std::exception& error) {
    throw PlacedError(with_place(range, message_of(error)));
  }
}

// `work`, a call at `range`; its errors say so.
template <class Work>
auto called_at(const torch::jit::SourceRange& range, Work work) {
  try {
    return work();
  } catch (const PlacedError& error) {
    throw PlacedError(error.what() + ("\n  called from " + place_of(range)), error.unsupported());
  }
}

// `work`; its errors end with what is supported, where they are about that.
template <class Work>
auto with_subset(Work work) {
  try {
    return work();
  } catch (const PlacedError& error) {
    if (!error.unsupported()) throw;
    throw composit::UserError(std::string(error.what()) + "\n" + supported());
  }
}

}  // namespace flashlight::torchscript
