#include "frontends/torchscript/state.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "frontends/torchscript/place.h"
#include "frontends/torchscript/views.h"
#include "tracer/convert.h"

namespace flashlight::torchscript {
namespace {

using composit::LazyTensor;

struct Uninitialized : torch::CustomClassHolder {};

at::Tensor without_elements(const LazyTensor& value) {
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

[[noreturn]] void refuse_frozen(const char* what) {
  throw Unsupported(std::string("a write to a ") + what +
                    " that is one or another, as what is computed decides; write to a copy of it");
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

at::Tensor State::tensor(const LazyTensor& value, at::Tensor at) {
  if (!at.defined()) at = without_elements(value);
  auto symbol = std::make_unique<Symbol>();
  symbol->at = at;
  symbol->content.value = value;
  symbol->born = ++clock_;
  ++values_made_;
  symbols_[at.unsafeGetTensorImpl()] = std::move(symbol);
  return at;
}

void State::outer(const LazyTensor& value, const at::Tensor& at) {
  tensor(value, at);
  symbol(at).born = 0;
}

IValue State::number(const LazyTensor& value) {
  const at::Tensor made = tensor(value);
  symbol(made).number = true;
  return made;
}

at::Tensor State::view(const LazyTensor& value, at::Tensor at, const at::Tensor& parent,
                       ViewStep step) {
  const at::Tensor made = tensor(value, std::move(at));
  Symbol& view = symbol(made);
  view.parent = parent;
  view.step = std::move(step);
  view.content.version = refreshed(parent).content.version;
  return made;
}

at::Tensor State::either(const LazyTensor& value, const std::vector<Alternative>& alternatives) {
  const at::Tensor made = tensor(value);
  Symbol& one = symbol(made);
  one.alternatives = alternatives;
  one.content.seen = versions_of(alternatives);
  return made;
}

bool State::is_number(const IValue& value) const {
  const Symbol* found = value.isTensor() ? find(value.toTensor()) : nullptr;
  return found != nullptr && found->number;
}

std::vector<Alternative> State::alternatives(const at::Tensor& tensor) const {
  return symbol(tensor).alternatives;
}

void State::set(Symbol& symbol, Content content) {
  journal_.push_back({symbol.at, symbol.content, {}, false});
  symbol.content = std::move(content);
}

std::vector<uint64_t> State::versions_of(const std::vector<Alternative>& alternatives) {
  std::vector<uint64_t> versions;
  for (const Alternative& one : alternatives)
    versions.push_back(refreshed(one.tensor).content.version);
  return versions;
}

State::Symbol& State::refreshed(const at::Tensor& tensor) {
  Symbol& wanted = symbol(tensor);
  if (wanted.parent.defined()) {
    const Content& shows = refreshed(wanted.parent).content;
    if (wanted.content.version != shows.version)
      set(wanted, {shown(shows.value, wanted.step), shows.version, {}, wanted.content.frozen});
  } else if (!wanted.alternatives.empty()) {
    std::vector<uint64_t> versions = versions_of(wanted.alternatives);
    if (versions == wanted.content.seen) return wanted;
    LazyTensor now = wanted.content.value;
    for (const Alternative& one : wanted.alternatives)
      now = composit::where(one.selected, value(one.tensor), now);
    set(wanted, {now, ++clock_, std::move(versions), wanted.content.frozen});
  }
  return wanted;
}

LazyTensor State::value(const at::Tensor& tensor) { return refreshed(tensor).content.value; }

void State::write(const at::Tensor& tensor, const LazyTensor& value) {
  Symbol& written = symbol(tensor);
  if (written.content.frozen) refuse_frozen("tensor");
  if (written.parent.defined()) {
    write(written.parent, with_view_written(this->value(written.parent), written.step, value));
    set(written, {value, refreshed(written.parent).content.version, {}});
    return;
  }
  for (const Alternative& one : written.alternatives)
    write(one.tensor, composit::where(one.selected, value, this->value(one.tensor)));
  set(written, {value, ++clock_, versions_of(written.alternatives)});
}

void State::made(const IValue& container) {
  if (const void* address = identity(container)) containers_[address] = {container, ++clock_};
}

void State::will_change(const IValue& container) {
  const void* address = identity(container);
  if (address == nullptr) return;
  const auto found = containers_.find(address);
  if (found == containers_.end())
    throw Unsupported("a list, dict or object that belongs to a module is changed");
  if (found->second.frozen) refuse_frozen("list or dict");
  journal_.push_back({container, {}, content_of(container), false});
}

// The symbols whose memory the tensor may show.
template <class Visit>
void State::for_each_memory(const at::Tensor& tensor, const Visit& visit) const {
  std::vector<Symbol*> open = {&symbol(tensor)};
  std::set<const Symbol*> seen;
  while (!open.empty()) {
    Symbol* one = open.back();
    open.pop_back();
    if (!seen.insert(one).second) continue;
    if (one->parent.defined()) {
      open.push_back(find(one->parent));
      continue;
    }
    visit(*one);
    for (const Alternative& other : one->alternatives) open.push_back(find(other.tensor));
    for (const at::Tensor& other : one->maybe) open.push_back(find(other));
  }
}

std::set<const void*> State::memory(const at::Tensor& tensor, const Mark& since) const {
  std::set<const void*> all;
  for_each_memory(tensor, [&](const Symbol& one) {
    if (one.born >= since.born) all.insert(&one);
  });
  return all;
}

void State::freeze(const IValue& value, const std::vector<IValue>& others) {
  if (!value.isTensor()) {
    containers_.at(identity(value)).frozen = true;
    for (const IValue& other : others)
      if (const auto found = containers_.find(identity(other)); found != containers_.end())
        found->second.frozen = true;
    return;
  }
  for (const IValue& other : others)
    if (other.isTensor()) symbol(value.toTensor()).maybe.push_back(other.toTensor());
  for_each_memory(value.toTensor(), [&](Symbol& one) {
    Content frozen = one.content;
    frozen.frozen = true;
    set(one, std::move(frozen));
  });
}

bool State::is_own(const IValue& value, const Mark& mark) const {
  if (!value.isTensor()) return born(value) > mark.born;
  const Symbol& now = symbol(value.toTensor());
  return now.born > mark.born && !now.parent.defined() && !now.content.frozen &&
         now.alternatives.empty();
}

void State::set_items(const IValue& list, const std::vector<IValue>& items) {
  will_change(list);
  auto now = list.toList();
  now.clear();
  for (const IValue& item : items) now.push_back(item);
}

void State::read(const IValue& list) {
  if (list.isList()) journal_.push_back({list, {}, {}, true});
}

bool State::was_read(const IValue& list, const Mark& mark) const {
  return std::any_of(
      journal_.begin() + static_cast<int64_t>(mark.place), journal_.end(),
      [&](const Entry& entry) { return entry.read && identity(entry.what) == identity(list); });
}

Mark State::mark() { return {journal_.size(), ++clock_}; }

uint64_t State::born(const IValue& value) const {
  if (value.isTensor()) return symbol(value.toTensor()).born;
  const auto found = containers_.find(identity(value));
  return found == containers_.end() ? 0 : found->second.born;
}

void State::add_changes(const Entry& entry, Changes& changes) const {
  if (entry.what.isTensor()) {
    const Symbol& now = symbol(entry.what.toTensor());
    const bool written = now.content.version != entry.content.version;
    if (written && !now.parent.defined()) changes.tensors.push_back({now.at, now.content.value});
  } else if (entry.what.isList()) {
    changes.lists.push_back({entry.what, entry.what.toList().vec()});
  } else {
    changes.others = true;
  }
}

bool State::counts(const Entry& entry, const Mark& mark) const {
  return !entry.read && is_older(entry.what, mark);
}

Changes State::changes(const Mark& mark) {
  // The value of one of several tensors depends on writes to each of them.
  for (size_t i = mark.place, size = journal_.size(); i < size; ++i)
    if (const IValue what = journal_[i].what; what.isTensor() && counts(journal_[i], mark))
      refreshed(what.toTensor());
  Changes changes;
  std::set<const void*> seen;
  for (size_t i = mark.place; i < journal_.size(); ++i) {
    const Entry& entry = journal_[i];
    const void* address =
        entry.what.isTensor() ? entry.what.unsafeToTensorImpl() : identity(entry.what);
    if (counts(entry, mark) && seen.insert(address).second) add_changes(entry, changes);
  }
  return changes;
}

LazyTensor State::value_after(const Changes& changes, const at::Tensor& tensor) {
  for (const Changes::Written& one : changes.tensors)
    if (one.tensor.is_same(tensor)) return one.value;
  LazyTensor now = value(tensor);
  const Symbol& wanted = symbol(tensor);
  if (wanted.parent.defined()) {
    const LazyTensor parent = value_after(changes, wanted.parent);
    return parent == value(wanted.parent) ? now : shown(parent, wanted.step);
  }
  for (const Alternative& one : wanted.alternatives)
    if (const LazyTensor after = value_after(changes, one.tensor); !(after == value(one.tensor)))
      now = composit::where(one.selected, after, now);
  return now;
}

// Objects made after the mark are kept: only code that ran since can refer to them. Reads are kept,
// too, for the enclosing mark.
void State::undo(const Mark& mark) {
  std::vector<Entry> reads;
  for (size_t i = journal_.size(); i-- > mark.place;) {
    Entry& entry = journal_[i];
    if (entry.read)
      reads.push_back(std::move(entry));
    else if (counts(entry, mark) && entry.what.isTensor())
      symbol(entry.what.toTensor()).content = entry.content;
    else if (counts(entry, mark))
      restore(entry.what, entry.items);
  }
  journal_.resize(mark.place);
  std::move(reads.begin(), reads.end(), std::back_inserter(journal_));
}

}  // namespace flashlight::torchscript
