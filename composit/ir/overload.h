// One visitor made of lambdas: std::visit(Overload{[](int i) {...}, [](auto other) {...}},
// variant).
#pragma once

namespace composit {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

}  // namespace composit
