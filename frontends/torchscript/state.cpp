#include "frontends/torchscript/state.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "frontends/torchscript/views.h"
#include "tracer/convert.h"

namespace flashlight::torchscript {
namespace {

using composit::Tensor;

struct Uninitialized : torch::CustomClassHolder {};

at::Tensor without_elements(const Tensor& value) {
  return at::empty(value.sizes(),
                   at::TensorOptions(tracer::to_c10(value.dtype())).device(at::kMeta));
}

// A copy of what a container holds; items are the same values.
IValue content_of(const IValue& container) {
  if (container.isList()) return container.toList().copy();
  if (container.isGenericDict()) return container.toGenericDict().copy();
  return c10::ivalue::Tuple::create(container.toObjectRef().slots());
}

void restore(const IValue& container, const IValue& content) {
  if (container.isList()) {
    auto list = container.toList();
    list.clear();
    for (const IValue& item : content.toListRef()) list.push_back(item);
  } else if (container.isGenericDict()) {
    auto dict = container.toGenericDict();
    dict.clear();
    for (const auto& item : content.toGenericDict()) dict.insert(item.key(), item.value());
  } else {
    const auto object = container.toObject();
    const auto& slots = content.toTupleRef().elements();
    for (size_t i = 0; i < slots.size(); ++i) object->setSlot(i, slots[i]);
  }
}

}  // namespace

const void* identity(const IValue& value) {
  const bool container = value.isList() || value.isGenericDict() || value.isObject();
  return container ? value.internalToPointer() : nullptr;
}

IValue uninitialized() {
  static const IValue value = IValue::make_capsule(c10::make_intrusive<Uninitialized>());
  return value;
}

bool is_uninitialized(const IValue& value) {
  return value.isCapsule() &&
         dynamic_cast<const Uninitialized*>(value.toCapsule().get()) != nullptr;
}

State::Symbol* State::find(const at::Tensor& tensor) const {
  const auto found = symbols_.find(tensor.unsafeGetTensorImpl());
  return found == symbols_.end() ? nullptr : found->second.get();
}

State::Symbol& State::symbol(const at::Tensor& tensor) const {
  Symbol* found = find(tensor);
  COMPOSIT_ASSERT(found != nullptr, "a tensor of the program has no value");
  return *found;
}

State::Symbol& State::base_of(Symbol& symbol) const {
  Symbol* base = &symbol;
  while (base->parent.defined()) base = find(base->parent);
  return *base;
}

at::Tensor State::tensor(const Tensor& value, at::Tensor at) {
  if (!at.defined()) at = without_elements(value);
  auto symbol = std::make_unique<Symbol>();
  symbol->at = at;
  symbol->value = value;
  symbol->born = ++clock_;
  ++values_made_;
  symbols_[at.unsafeGetTensorImpl()] = std::move(symbol);
  return at;
}

void State::outer(const Tensor& value, const at::Tensor& at) {
  tensor(value, at);
  symbol(at).born = 0;
}

IValue State::number(const Tensor& value) {
  const at::Tensor made = tensor(value);
  symbol(made).number = true;
  return made;
}

at::Tensor State::view(const Tensor& value, at::Tensor at, const at::Tensor& parent,
                       ViewStep step) {
  const at::Tensor made = tensor(value, std::move(at));
  Symbol& view = symbol(made);
  view.parent = parent;
  view.step = std::move(step);
  view.version = base_of(view).version;
  return made;
}

bool State::is_number(const IValue& value) const {
  const Symbol* found = value.isTensor() ? find(value.toTensor()) : nullptr;
  return found != nullptr && found->number;
}

bool State::is_view(const at::Tensor& tensor) const {
  const Symbol* found = find(tensor);
  return found != nullptr && found->parent.defined();
}

void State::set(Symbol& symbol, const Tensor& value, uint64_t version) {
  journal_.push_back({symbol.at, symbol.value, symbol.version, {}, false});
  symbol.value = value;
  symbol.version = version;
}

Tensor State::value(const at::Tensor& tensor) {
  Symbol& wanted = symbol(tensor);
  const uint64_t version = base_of(wanted).version;
  if (wanted.version != version && wanted.parent.defined()) {
    set(wanted, shown(value(wanted.parent), wanted.step), version);
  }
  return wanted.value;
}

void State::write(const at::Tensor& tensor, const Tensor& value) {
  Symbol& written = symbol(tensor);
  if (written.parent.defined()) {
    write(written.parent, with_view_written(this->value(written.parent), written.step, value));
    set(written, value, base_of(written).version);
  } else {
    set(written, value, ++clock_);
  }
}

void State::made(const IValue& container) {
  if (const void* address = identity(container)) containers_[address] = {container, ++clock_};
}

void State::will_change(const IValue& container) {
  if (identity(container) != nullptr)
    journal_.push_back({container, {}, 0, content_of(container), false});
}

void State::set_items(const IValue& list, const std::vector<IValue>& items) {
  will_change(list);
  auto now = list.toList();
  now.clear();
  for (const IValue& item : items) now.push_back(item);
}

void State::read(const IValue& list) {
  if (list.isList()) journal_.push_back({list, {}, 0, {}, true});
}

bool State::was_read(const IValue& list, const Mark& mark) const {
  return std::any_of(
      journal_.begin() + static_cast<int64_t>(mark.place), journal_.end(),
      [&](const Entry& entry) { return entry.read && identity(entry.what) == identity(list); });
}

Mark State::mark() { return {journal_.size(), ++clock_}; }

uint64_t State::born(const Entry& entry) const {
  if (entry.what.isTensor()) return symbol(entry.what.toTensor()).born;
  const auto found = containers_.find(identity(entry.what));
  return found == containers_.end() ? 0 : found->second.second;
}

void State::add_changes(const Entry& entry, Changes& changes) const {
  if (entry.what.isTensor()) {
    const Symbol& now = symbol(entry.what.toTensor());
    if (!now.parent.defined()) changes.tensors.push_back({now.at, now.value});
  } else if (entry.what.isList()) {
    changes.lists.push_back({entry.what, entry.what.toList().vec()});
  } else {
    changes.others = true;
  }
}

// What is younger than the mark stays as it is: whoever has it, has it from what ran since.
Changes State::undo(const Mark& mark) {
  Changes changes;
  std::set<const void*> seen;
  const auto counts = [&](const Entry& entry) { return !entry.read && born(entry) < mark.born; };
  for (size_t i = mark.place; i < journal_.size(); ++i) {
    const Entry& entry = journal_[i];
    const void* address =
        entry.what.isTensor() ? entry.what.unsafeToTensorImpl() : identity(entry.what);
    if (counts(entry) && seen.insert(address).second) add_changes(entry, changes);
  }
  for (size_t i = journal_.size(); i-- > mark.place;) {
    const Entry& entry = journal_[i];
    if (!counts(entry)) continue;
    if (entry.what.isTensor()) {
      Symbol& symbol = this->symbol(entry.what.toTensor());
      symbol.value = entry.value;
      symbol.version = entry.version;
    } else {
      restore(entry.what, entry.content);
    }
  }
  // Reads stay: whoever encloses the mark asks for them.
  std::vector<Entry> reads;
  for (size_t i = mark.place; i < journal_.size(); ++i)
    if (journal_[i].read) reads.push_back(std::move(journal_[i]));
  journal_.resize(mark.place);
  std::move(reads.begin(), reads.end(), std::back_inserter(journal_));
  return changes;
}

}  // namespace flashlight::torchscript
