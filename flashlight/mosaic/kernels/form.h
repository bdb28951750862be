// Forms of kernels: each is one row, in a file of its own in this folder.
//
//   kernel.form->name;                        // "winograd"
//   const KernelText text = kernel.form->write(plan, kernel);
//
// To add one: a file with its row and the data of its kernels, a line in forms.h, and a way to it:
// a ProductForm in products.cpp for another algorithm of products, or a branch in plan.cpp.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/text/code.h"

namespace flashlight::mosaic {

// The packed weights that a kernel reads: fl::first_panel.
struct Panels {
  ValueId value;
  bool by_columns;  // fl::Split
  int64_t columns, terms;
};

// A kernel as a function of C++. Equal kernels have equal functions, whatever layers they are for.
struct KernelText {
  std::string name;  // what it may be called: "product_gelu_128x3072x768"
  // Without name and heading (describe.h). None where `name` is a function of the runtime.
  std::optional<text::Function> function = {};
  ValueIds values;                     // of the plan, as arguments
  bool by_pointer = false;             // they are passed as pointers to their first elements
  std::string first;                   // argument before them: "team", "team.part(128)"
  std::vector<std::string> last = {};  // arguments behind them: "arena + 4096", "*generator"
  std::optional<Panels> panels = {};
  bool takes_next = false;  // the last argument is what the next kernel reads first: fl::Upcoming
};

// Instantiations of the runtime's templates, by unit of compilation.
using Units = std::map<std::string, std::set<std::string>>;

struct KernelForm {
  using Names = std::vector<std::string>;  // by value
  const char* name;
  // Values in memory that it reads or writes, packed ones included; some twice. And those that it
  // writes, each once.
  ValueIds (*touched)(const Plan&, const Kernel&);
  ValueIds (*written)(const Plan&, const Kernel&);
  // The nest from the outside in, how threads divide it, and tiles.
  std::string (*loops)(const Plan&, const Kernel&, const Names&);
  KernelText (*write)(const Plan&, const Kernel&);

  // See in_place.h; none: it may not.
  bool (*may_overwrite)(const Plan&, const Kernel&, ValueId result, ValueId operand) = nullptr;
  // Additions, multiplications and functions; and those of products alone, which the profile
  // counts.
  int64_t (*flops)(const Plan&, const Kernel&) = nullptr;
  int64_t (*product_operations)(const Kernel&) = nullptr;
  // Remarks that `loops` does not make.
  std::string (*note)(const Kernel&, const Names&) = nullptr;
  // The instantiations of the runtime that it needs beside the header.
  void (*add_units)(const Plan&, const Kernel&, Units&) = nullptr;
  // The order in which it packs, by the value that holds the packed elements.
  std::optional<TileSchema> (*packed_schema)(const Plan&, const Kernel&, ValueId) = nullptr;
  // Its steps touch values where their statements say.
  bool follows_steps = false;
};

// The data of a kernel of that form.
template <class Data>
const Data& data_of(const Kernel& kernel) {
  return static_cast<const Data&>(*kernel.data);
}

// The values that steps read and write, and those that they write and that live outside of the
// kernel.
ValueIds touched_by_steps(const Plan& plan, const Kernel& kernel);
ValueIds written_by_steps(const Plan& plan, const Kernel& kernel);
// The operations of a statement: those of its expressions at every point.
int64_t flops_of(const loops::Statement& statement);
// "gelu": the operation that a step is for, as an identifier.
std::string operation_name(const Plan& plan, StepId step);

}  // namespace flashlight::mosaic
