// A function that is called while the call that it is an argument of lasts: code that takes one is
// compiled once, for all functions.
//
//   void each(int count, FunctionRef<void(int)> f);
//   each(3, [&](int i) { sum += i; });
#pragma once

#include <type_traits>

namespace fl {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<F, FunctionRef>>>
  FunctionRef(const F& f)
      : function_(&f), call_([](const void* function, Args... args) -> R {
          return (*static_cast<const F*>(function))(args...);
        }) {}

  R operator()(Args... args) const { return call_(function_, args...); }

 private:
  const void* function_;
  R (*call_)(const void*, Args...);
};

}  // namespace fl
