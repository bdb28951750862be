// Text of Python functions as TorchScript's graphs.
//
//   const Functions functions = functions_of("def f(x: float) -> float:\n    return x * x\n",
//   "f.py"); functions.unit->find_function("f")->graph();
//
// LibTorch's compiler refuses functions that call themselves. Here such a call becomes a node
// `flashlight::call`, whose attribute `name` says of what; the function is compiled under another
// name, functions.recursive[name].
#pragma once

#include <torch/csrc/jit/api/compilation_unit.h>

#include <map>
#include <memory>
#include <string>

namespace flashlight::torchscript {

inline constexpr const char* kRecursiveCall = "flashlight::call";

struct Functions {
  std::shared_ptr<torch::jit::CompilationUnit> unit;
  std::map<std::string, torch::jit::Function*> recursive;  // by the name in the text
  std::vector<std::string> names;                          // as in the text

  // nullptr: there is none.
  torch::jit::Function* find(const std::string& name) const;
};

// `torch` and its functions, its dtypes as torch.float64, torch.nn.functional and `F` as far as
// these are operators, and `math` are known. UserError with place for what LibTorch does not
// compile.
Functions functions_of(const std::string& text, const std::string& file);

}  // namespace flashlight::torchscript
