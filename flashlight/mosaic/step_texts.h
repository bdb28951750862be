// The texts of a program's steps at all sizes, each compiled once: what differs between sizes is
// data of a call.
//
//   StepTexts texts("bert", {});
//   const OpenProgram at_17 = open_steps(plan_at_17), at_250 = open_steps(plan_at_250);
//   texts.see(at_17);
//   texts.see(at_250);                   // where numbers of a step differ, they are data
//   texts.compile({&at_17, &at_250});
//   texts.find(open_steps(plan_at_100));    // no compiler: its steps are of these texts
//
// The plan at a size is made as always, and so are the texts of its steps. A step runs compiled
// code that has the same text and, where that has constants, the same numbers; all other numbers
// are passed. So nothing is guessed: a step whose text differs in anything else needs the compiler.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flashlight/mosaic/open_steps.h"
#include "flashlight/runtime/steps.hpp"
#include "flashlight/toolchain/library.h"

namespace flashlight::mosaic {

// The text of a step, whose numbers are constants or data.
struct StepText {
  std::string name;           // "step_9f…": that of what decides the text, in all processes
  std::string kernel, entry;  // definitions before the entry, and its body
  Units tiles;                // instantiations of the runtime
};
// The definition of its entry in a namespace. `entry`: its head up to the name, as "void enter".
std::string text_of(const StepText& step, const std::string& space, const std::string& entry);

// A step as code, and what is passed to it.
struct ReadyStep {
  fl::StepEntry* enter = nullptr;
  std::shared_ptr<const toolchain::Library> library;
  std::vector<int64_t> numbers = {};
  std::shared_ptr<const StepText> text = {};
};
struct ReadySteps {
  std::vector<ReadyStep> prepare, run;  // as in the OpenProgram
};

class StepTexts {
 public:
  // `flags` of the compiler, behind the backend's own.
  explicit StepTexts(std::vector<std::string> flags) : flags_(std::move(flags)) {}

  // Compares the numbers of each step with those at other sizes. Each size is shown once.
  void see(const OpenProgram& at);
  // True if a step's text was seen at one size only: which numbers are data is not known yet.
  bool has_news(const OpenProgram& at) const;
  // The steps as code, if all are compiled.
  std::optional<ReadySteps> find(const OpenProgram& at) const;
  // Compiles the steps that are not. UserError as of the compiler.
  void compile(const std::vector<const OpenProgram*>& programs);
  // How often a compiler ran.
  size_t compilations() const { return compilations_; }

 private:
  struct Code {  // compiled
    std::vector<bool> is_data;
    std::vector<int64_t> constants;  // elsewhere
    fl::StepEntry* enter;
    std::shared_ptr<const toolchain::Library> library;
    std::shared_ptr<const StepText> text;
    bool fits(const std::vector<int64_t>& numbers) const;
  };
  struct Seen {
    std::vector<int64_t> numbers;  // first
    bool again = false;
  };
  struct Text {
    std::vector<bool> is_data;
    std::unordered_map<std::string, Seen> sites;
    std::vector<Code> codes;
    const Code* find(const std::vector<int64_t>& numbers) const;
  };
  struct Unit;
  std::optional<std::vector<ReadyStep>> find(const std::vector<OpenStep>& steps) const;
  void add_missing(const OpenProgram& program, std::map<std::string, Unit>& missing) const;

  const std::vector<std::string> flags_;
  std::unordered_map<composit::Hash, Text> texts_;  // by OpenStep::key
  size_t compilations_ = 0;
};

}  // namespace flashlight::mosaic
