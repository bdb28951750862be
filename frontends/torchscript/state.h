// What a TorchScript program holds while its graph is made: values that the graph computes, and
// memory that the program writes.
//
//   State state;
//   at::Tensor x = state.tensor(value);            // what the program sees: sizes, no elements
//   const Mark mark = state.mark();
//   state.write(x, changed);                       // as by x.copy_(…)
//   const Changes changes = state.undo(mark);      // x is what it was; `changes` says what
//   happened
//
// A value that the graph computes stands in the program as a tensor without elements (of LibTorch's
// meta device): sizes, dtypes and views are LibTorch's own. Numbers are such tensors too, in the
// place of a float, int or bool. All that is known while the graph is made (ints, strings, lists)
// are LibTorch's values, and what a program does with them is done by LibTorch.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "composit/op/call.h"

namespace flashlight::torchscript {

using c10::IValue;

// How a view comes from the tensor it shows: result `output` of an operation, whose first argument
// is the tensor.
struct ViewStep {
  std::string op;
  std::vector<composit::ArgumentValue> arguments;  // behind the first
  size_t output = 0;
};

struct Mark {
  size_t place = 0;   // in the journal
  uint64_t born = 0;  // what is younger did not exist
};

// What was written since a mark, to what existed then, with what it held at the end.
struct Changes {
  struct Written {
    at::Tensor tensor;
    composit::Tensor value;
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
  at::Tensor tensor(const composit::Tensor& value, at::Tensor at = {});
  // A tensor that was there before the program ran.
  void outer(const composit::Tensor& value, const at::Tensor& at);
  // In the place of a Python number.
  IValue number(const composit::Tensor& value);
  at::Tensor view(const composit::Tensor& value, at::Tensor at, const at::Tensor& parent,
                  ViewStep step);

  bool knows(const at::Tensor& tensor) const { return find(tensor) != nullptr; }
  bool is_number(const IValue& value) const;
  bool is_view(const at::Tensor& tensor) const;
  // Of a tensor it knows; after writes through other views of the same memory, too.
  composit::Tensor value(const at::Tensor& tensor);
  // UserError where the tensor is a view through which composit cannot write.
  void write(const at::Tensor& tensor, const composit::Tensor& value);

  // To be called when a container is made, and before one is changed.
  void made(const IValue& container);
  void will_change(const IValue& container);
  void set_items(const IValue& list, const std::vector<IValue>& items);
  // Reads of lists, to tell whether a list that a loop appends to is read there.
  void read(const IValue& list);
  bool was_read(const IValue& list, const Mark& mark) const;

  Mark mark();
  Changes undo(const Mark& mark);
  // How many values were made so far.
  uint64_t values_made() const { return values_made_; }

 private:
  struct Symbol {
    at::Tensor at;  // keeps the address from being taken by another
    composit::Tensor value;
    bool number = false;
    uint64_t born = 0, version = 0;
    at::Tensor parent;  // of a view
    ViewStep step;
  };
  struct Entry {
    IValue what;
    composit::Tensor value;  // of a tensor: what it was
    uint64_t version = 0;
    IValue content;  // of a container: a copy of what it held
    bool read = false;
  };
  Symbol* find(const at::Tensor& tensor) const;
  Symbol& symbol(const at::Tensor& tensor) const;
  Symbol& base_of(Symbol& symbol) const;
  void set(Symbol& symbol, const composit::Tensor& value, uint64_t version);
  void add_changes(const Entry& entry, Changes& changes) const;
  uint64_t born(const Entry& entry) const;

  std::unordered_map<const void*, std::unique_ptr<Symbol>> symbols_;  // by tensor
  std::unordered_map<const void*, std::pair<IValue, uint64_t>> containers_;
  std::vector<Entry> journal_;
  uint64_t clock_ = 0, values_made_ = 0;
};

// The address of a list, dict or object; nullptr for other values.
const void* identity(const IValue& value);
// The value of a variable that was not assigned yet.
IValue uninitialized();
bool is_uninitialized(const IValue& value);

}  // namespace flashlight::torchscript
