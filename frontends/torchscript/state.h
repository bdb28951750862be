// The state of a TorchScript program while its graph is made: values that the graph computes, and
// memory that the program writes.
//
//   State state;
//   at::Tensor x = state.tensor(value);            // what the program sees: sizes, no elements
//   const Mark mark = state.mark();
//   state.write(x, changed);                       // as by x.copy_(…)
//   const Changes changes = state.undo(mark);      // x is what it was; these are what it became
//
// A value that the graph computes stands in the program as a tensor without elements (of LibTorch's
// meta device): sizes, dtypes and views are LibTorch's own. Numbers are such tensors too, in the
// place of a float, int or bool. All that is known while the graph is made (ints, strings, lists)
// are LibTorch's values, and what a program does with them is done by LibTorch.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "composit/op/call.h"

namespace flashlight::torchscript {

using c10::IValue;

// One step from a tensor to its view: result `output` of an operation whose first argument is the
// tensor.
struct ViewStep {
  std::string op;
  std::vector<composit::ArgumentValue> arguments;  // those after the first
  size_t output = 0;
};

// A tensor that another one stands for, where `selected`, one bool, holds.
struct Alternative {
  composit::LazyTensor selected;
  at::Tensor tensor;
};

struct Mark {
  size_t place = 0;   // in the journal
  uint64_t born = 0;  // what is younger did not exist
};

// The writes since a mark to objects that existed then, with their final content. A tensor that is
// one of several counts as written where it was written itself, not where one of those was.
struct Changes {
  struct Written {
    at::Tensor tensor;
    composit::LazyTensor value;
  };
  struct ChangedList {
    IValue list;
    std::vector<IValue> items;
  };
  std::vector<Written> tensors;
  std::vector<ChangedList> lists;
  bool others = false;  // dicts or attributes of objects
};

class State {
 public:
  // `at` is what the program sees, a tensor without elements where it is absent.
  at::Tensor tensor(const composit::LazyTensor& value, at::Tensor at = {});
  // A tensor that was there before the program ran.
  void outer(const composit::LazyTensor& value, const at::Tensor& at);
  // In the place of a Python number.
  IValue number(const composit::LazyTensor& value);
  at::Tensor view(const composit::LazyTensor& value, at::Tensor at, const at::Tensor& parent,
                  ViewStep step);
  // One of several, as what is computed decides: who writes it, writes the one that is selected.
  at::Tensor either(const composit::LazyTensor& value,
                    const std::vector<Alternative>& alternatives);

  bool knows(const at::Tensor& tensor) const { return find(tensor) != nullptr; }
  bool is_number(const IValue& value) const;
  // The value of a known tensor; it includes writes through other views of the same memory.
  composit::LazyTensor value(const at::Tensor& tensor);
  // Unsupported where the tensor is a view through which composit cannot write, or is frozen.
  void write(const at::Tensor& tensor, const composit::LazyTensor& value);

  // To be called when the program makes a container, and before it changes one. Unsupported where
  // that is not the program's own (a list of a module), or frozen.
  void made(const IValue& container);
  void will_change(const IValue& container);
  // A tensor or list that may be one of others, and it is not known which: none of them can be
  // written any more.
  void freeze(const IValue& value, const std::vector<IValue>& others);
  bool is_frozen(const at::Tensor& tensor) const { return symbol(tensor).content.frozen; }
  bool is_older(const IValue& value, const Mark& mark) const { return born(value) < mark.born; }
  // True if a tensor or container was made since the mark and shares no memory with older ones.
  bool is_own(const IValue& value, const Mark& mark) const;
  bool is_view(const at::Tensor& tensor) const { return symbol(tensor).parent.defined(); }
  std::vector<Alternative> alternatives(const at::Tensor& tensor) const;
  // That of whatever a tensor may be; with a mark, what was made since.
  std::set<const void*> memory(const at::Tensor& tensor, const Mark& since = {}) const;
  void set_items(const IValue& list, const std::vector<IValue>& items);
  // Reads of lists, to tell whether a list that a loop appends to is read there.
  void read(const IValue& list);
  bool was_read(const IValue& list, const Mark& mark) const;

  Mark mark();
  Changes changes(const Mark& mark);
  // The value of a tensor after these changes, which were undone.
  composit::LazyTensor value_after(const Changes& changes, const at::Tensor& tensor);
  void undo(const Mark& mark);
  // The number of values made so far.
  uint64_t values_made() const { return values_made_; }

 private:
  // The content of a symbol that changes when the symbol or the tensor it shows is written.
  struct Content {
    composit::LazyTensor value;
    uint64_t version = 0;
    std::vector<uint64_t> seen;  // versions of the alternatives
    bool frozen = false;
  };
  struct Symbol {
    at::Tensor at;  // keeps the address from being taken by another
    Content content;
    bool number = false;
    uint64_t born = 0;
    at::Tensor parent;  // of a view
    ViewStep step;
    std::vector<Alternative> alternatives;
    std::vector<at::Tensor> maybe;  // of a frozen one: others that it may be
  };
  struct Entry {
    IValue what;
    Content content;  // of a tensor: what it was
    IValue items;     // of a container: a copy of what it held
    bool read = false;
  };
  Symbol* find(const at::Tensor& tensor) const;
  Symbol& symbol(const at::Tensor& tensor) const;
  // Brings it up to date with what it shows.
  Symbol& refreshed(const at::Tensor& tensor);
  std::vector<uint64_t> versions_of(const std::vector<Alternative>& alternatives);
  void set(Symbol& symbol, Content content);
  template <class Visit>
  void for_each_memory(const at::Tensor& tensor, const Visit& visit) const;
  bool counts(const Entry& entry, const Mark& mark) const;
  void add_changes(const Entry& entry, Changes& changes) const;
  uint64_t born(const IValue& value) const;

  std::unordered_map<const void*, std::unique_ptr<Symbol>> symbols_;  // by tensor
  struct Container {
    IValue at;
    uint64_t born = 0;
    bool frozen = false;
  };
  std::unordered_map<const void*, Container> containers_;
  std::vector<Entry> journal_;
  uint64_t clock_ = 0, values_made_ = 0;
};

// The address of a list, dict or object; nullptr for other values.
const void* identity(const IValue& value);
// The value of a variable that was not assigned yet.
IValue uninitialized();
bool is_uninitialized(const IValue& value);

}  // namespace flashlight::torchscript
