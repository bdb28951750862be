// Typed ids: values, steps, axes and functions are numbered, each kind with a type of its own.
//
//   for (const ValueId value : function.values.ids()) print(function.values[value]);
//   const ValueId made = function.values.add({type, Role::temporary, "copy"});
//
// An Id converts to size_t, so that it indexes any parallel list. A size_t becomes an Id only
// explicitly, and the tables of a program take only their own kind of Id.
#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace flashlight::loops {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  explicit constexpr Id(size_t index) : index_(index) {}
  constexpr operator size_t() const { return index_; }  // NOLINT(google-explicit-constructor)
  constexpr Id& operator++() {
    ++index_;
    return *this;
  }
  constexpr Id operator--(int) {
    const Id before = *this;
    --index_;
    return before;
  }
  constexpr Id& operator+=(size_t count) {
    index_ += count;
    return *this;
  }
  template <std::integral Count>
  friend constexpr Id operator+(Id id, Count count) {
    return Id(id.index_ + static_cast<size_t>(count));
  }
  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  size_t index_ = 0;
};
// Ids of different kinds do not compare.
template <class A, class B>
bool operator==(Id<A>, Id<B>) = delete;
template <class A, class B>
bool operator<=>(Id<A>, Id<B>) = delete;

using ValueId = Id<struct ValueTag>;        // of a function
using StepId = Id<struct StepTag>;          // of a function, in the order in which they run
using AxisId = Id<struct AxisTag>;          // of a statement
using FunctionId = Id<struct FunctionTag>;  // of a program
using SizeId = Id<struct SizeTag>;          // of a program's named sizes

using ValueIds = std::vector<ValueId>;
using StepIds = std::vector<StepId>;
using AxisIds = std::vector<AxisId>;
using FunctionIds = std::vector<FunctionId>;

// The ids of a list's entries, for range-for loops, which also reach entries added meanwhile.
template <class I, class List>
class IdRange {
 public:
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = I;
    using pointer = const I*;
    using reference = I;
    using iterator_category = std::input_iterator_tag;
    Iterator(I id, const List& list) : id_(id), list_(&list) {}
    I operator*() const { return id_; }
    Iterator& operator++() {
      ++id_;
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return id_ >= list_->size(); }

   private:
    I id_;
    const List* list_;
  };
  explicit IdRange(const List& list) : list_(list) {}
  Iterator begin() const { return Iterator(I(), list_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  const List& list_;
};

// A list that only one kind of Id indexes.
template <class I, class T>
class Table : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  T& operator[](I id) { return std::vector<T>::operator[](id); }
  const T& operator[](I id) const { return std::vector<T>::operator[](id); }
  T& at(I id) { return std::vector<T>::at(id); }
  const T& at(I id) const { return std::vector<T>::at(id); }

  IdRange<I, std::vector<T>> ids() const { return IdRange<I, std::vector<T>>(*this); }
  // The id of the entry that is added next.
  I next() const { return I(this->size()); }
  I add(T one) {
    const I id = next();
    this->push_back(std::move(one));
    return id;
  }
};

template <class T>
bool contains(const std::vector<T>& list, std::type_identity_t<T> one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}
template <class T>
bool overlap(const std::vector<T>& a, const std::vector<T>& b) {
  return std::any_of(a.begin(), a.end(), [&](T one) { return contains(b, one); });
}

}  // namespace flashlight::loops
