// A random program as data: calls of operators on numbered tensors, which runs, prints as C++, and
// shrinks.
//
//   Program program = generate(seed, options);
//   Run run = execute(program, make_inputs(program, 1));
//   std::cout << to_cpp(program);
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace flashlight::fuzz {

// Tensor number `index` of the program; -1: an absent one.
struct Var {
  int index = -1;
};
using Vars = std::vector<Var>;
// An argument of an operator: a tensor, a list of tensors, anything else.
using Argument = std::variant<Var, Vars, c10::IValue>;

// Calls `op` of the dispatcher, or one of the things a program does without it: `cpp::data`
// (x.data()), `cpp::set_data`, `cpp::drop` (ends the tensor's life), `cpp::manual_seed`,
// `cpp::grad` (gradients of the sum of a tensor with respect to others).
struct Call {
  std::string op;
  std::vector<Argument> arguments;
  int first = 0;  // number of the first tensor it makes
  int count = 0;
};

enum class Layout { contiguous, transposed, every_second, offset, alias };

struct InputSpec {
  std::vector<int64_t> sizes;
  c10::ScalarType dtype = c10::ScalarType::Float;
  Layout layout = Layout::contiguous;  // alias: the input before it, reversed in its axes
  bool requires_grad = false;
};

struct Program {
  std::vector<InputSpec> inputs;  // tensors 0, 1, …
  std::vector<Call> calls;
  bool grad = false;
  bool chains = true;
};

std::vector<at::Tensor> make_inputs(const Program& program, uint64_t seed);

// Tensors by number (undefined where their call threw) and which calls threw.
struct Run {
  std::vector<at::Tensor> tensors;
  std::vector<bool> threw;
  using Sizes = std::vector<std::vector<int64_t>>;
  Sizes sizes;  // of all that was made, when it was made
  std::vector<at::Tensor> defined() const;
};
Run execute(const Program& program, const std::vector<at::Tensor>& inputs);
// Appends what the call makes; false when it threw. A call of an undefined tensor makes undefined
// tensors.
bool execute(const Call& call, std::vector<at::Tensor>& tensors);

// A test body: `expect_replays(Program{…})`.
std::string to_cpp(const Program& program);

}  // namespace flashlight::fuzz
