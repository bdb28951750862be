#include "flashlight/mosaic/equal_steps.h"

#include <algorithm>
#include <map>

#include "composit/ir/flat_map.h"
#include "flashlight/loops/renumber.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using composit::Hash;
using composit::Hasher;
using loops::Statement;

class KeyMaker {
 public:
  KeyMaker(const loops::Routine& routine, const std::function<bool(ValueId value)>& is_frozen)
      : routine_(routine), is_frozen_(is_frozen) {}

  StepKey run(const Statement& statement) {
    for (const composit::Axis& axis : statement.axes) {
      hasher_.add(static_cast<uint64_t>(axis.extent));
      hasher_.add(static_cast<uint64_t>(axis.kind));
    }
    for (const size_t count : {statement.init.size(), statement.body.size(),
                               statement.combine.size(), statement.stores.size()})
      hasher_.add(count);
    const std::vector<Expr> roots = loops::expressions(statement);
    for (const Expr& part : composit::parts_of(roots)) add(part);
    for (const Expr& root : roots) hasher_.add(root.defined() ? *parts_.find(root.hash()) : Hash{});
    for (const composit::Store& store : statement.stores) {
      hasher_.add(place_of(loops::value_of(store)));
      hasher_.add(store.at.size());
      hasher_.add(store.add ? 1 : 0);
    }
    return {hasher_.finish(), std::move(values_)};
  }

 private:
  // The hash of a part in which values are numbered as they come.
  void add(const Expr& part) {
    Hasher hasher;
    const bool is_load = part.kind() == ExprKind::load;
    bool has_loads = is_load;
    for (const Expr& argument : part.arguments()) {
      const Hash& hash = *parts_.find(argument.hash());
      has_loads |= !(hash == argument.hash());
      hasher.add(hash);
    }
    if (!has_loads) {
      parts_.insert(part.hash(), part.hash());
      return;
    }
    hasher.add(static_cast<uint64_t>(part.kind()));
    hasher.add(static_cast<uint64_t>(part.dtype()));
    hasher.add(is_load ? place_of(loops::value_of(part)) : static_cast<uint64_t>(part.function()));
    parts_.insert(part.hash(), hasher.finish());
  }

  uint64_t place_of(ValueId value) {
    const auto found = std::find(values_.begin(), values_.end(), value);
    if (found != values_.end()) return static_cast<uint64_t>(found - values_.begin());
    const loops::Value& one = routine_.values[value];
    hasher_.add(static_cast<uint64_t>(one.type.dtype));
    hasher_.add(static_cast<uint64_t>(one.role));
    hasher_.add(one.type.sizes.size());
    for (const int64_t size : one.type.sizes) hasher_.add(static_cast<uint64_t>(size));
    hasher_.add(is_frozen_(value) ? 1 : 0);
    values_.push_back(value);
    return values_.size() - 1;
  }

  const loops::Routine& routine_;
  const std::function<bool(ValueId value)>& is_frozen_;
  Hasher hasher_;
  ValueIds values_;
  composit::FlatMap<Hash, Hash> parts_;
};

}  // namespace

StepKey step_key(const loops::Routine& routine, const loops::Nest& nest,
                 const std::function<bool(ValueId value)>& is_frozen) {
  return KeyMaker(routine, is_frozen).run(nest.statement);
}

std::optional<Product> ProductsOnce::of(const loops::Nest& nest) {
  const StepKey key = step_key(routine_, nest, is_frozen_);
  const auto [known, is_new] = known_.try_emplace(key.hash);
  if (is_new) known->second = {key.values, product_of(routine_, nest, is_frozen_, joins_batch_)};
  const auto& [values, product] = known->second;
  return product ? std::optional(with_values(*product, values, key.values)) : std::nullopt;
}

Product with_values(Product product, const ValueIds& from, const ValueIds& to) {
  std::map<ValueId, ValueId> numbers;
  for (size_t i = 0; i < from.size(); ++i) numbers[from[i]] = to[i];
  loops::Step step = loops::Nest{.statement = std::move(product.statement), .origin = {}};
  product.statement = std::get<loops::Nest>(loops::renumbered(std::move(step), numbers)).statement;
  product.left = numbers.at(product.left);
  product.right = numbers.at(product.right);
  return product;
}

}  // namespace flashlight::mosaic
