// What compiled graphs of one program at several sizes share: text, where the backend can; packed
// weights; and the same of their derivatives.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "composit/ir/error.h"
#include "composit/op/backend.h"
#include "flashlight/compiled_graph.h"
#include "flashlight/prepared_code.h"

namespace flashlight {

// The options of a backend's compiler for these settings.
composit::CompileOptions compile_options(const CompileSettings& settings);

// Thrown where a graph is not to wait for a compiler.
class CompilerWanted : public composit::UserError {
 public:
  CompilerWanted() : UserError("[compile] expected sizes that no compiler has to run for") {}
};

class SharedCode {
 public:
  // `shown`: the program's graph at some sizes.
  SharedCode(std::vector<composit::SizedGraph> shown, const CompileSettings& settings);

  // UserError as of CompiledGraph; CompilerWanted where a compiler would have to run, and may not.
  composit::Compiled at(const composit::Graph& graph, bool may_compile) const {
    if (may_compile) return code_->at(graph);
    if (auto made = code_->at_once(graph)) return *made;
    throw CompilerWanted();
  }
  const std::shared_ptr<SharedPreparations>& preparations() const { return preparations_; }
  const std::vector<composit::SizedGraph>& shown() const { return shown_; }
  // How often a compiler ran, derivatives included.
  size_t compilations() const;
  // The text of all sizes; empty where there is none.
  const std::string& source() const { return code_->source(); }

  // The same for the derivative for these inputs, which `make` makes once.
  template <class Make>
  std::shared_ptr<SharedCode> derivative(const std::vector<bool>& wanted, const Make& make) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<SharedCode>& one = derivatives_[wanted];
    if (!one) one = make();
    return one;
  }

 private:
  std::vector<composit::SizedGraph> shown_;
  std::shared_ptr<composit::SizedCode> code_;
  std::shared_ptr<SharedPreparations> preparations_ = std::make_shared<SharedPreparations>();
  mutable std::mutex mutex_;
  std::map<std::vector<bool>, std::shared_ptr<SharedCode>> derivatives_;  // by wanted inputs
};

}  // namespace flashlight
