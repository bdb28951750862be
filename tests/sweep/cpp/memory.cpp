// Memory that no operator reads or writes, threads, custom operators and functions, aliases.
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>
#include <thread>

#include "tests/sweep/cpp/registry.h"

namespace {

using sweep::Case;
using sweep::make;
using sweep::rows;
using sweep::Values;

constexpr char kLeaves[] = "memory|data_ptr|accessor|constant|number|value|differ|outside|other";

// Planted: computes through an accessor.
SWEEP(memory, accessor_read, refused, kLeaves) {
  auto step = [](at::Tensor x) {
    auto numbers = x.accessor<float, 2>();
    float sum = 0;
    for (int64_t i = 0; i < x.size(0); ++i) sum += numbers[i][i];
    return x * sum;
  };
  return make(step, rows(4));
}

// Planted: fills a new tensor through an accessor.
SWEEP(memory, accessor_write, refused, kLeaves) {
  auto step = [](at::Tensor x) {
    at::Tensor y = torch::zeros({4, 4});
    auto from = x.accessor<float, 2>();
    auto to = y.accessor<float, 2>();
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) to[i][j] = std::max(from[i][j], from[j][i]);
    return y * 2;
  };
  return make(step, rows(4));
}

// Planted: counts in a buffer through an accessor, the same to any graph in each call.
SWEEP(memory, accessor_counts, refused, kLeaves) {
  at::Tensor count = torch::zeros({4});
  auto step = [count](at::Tensor x) {
    count.accessor<float, 1>()[0] += 1;
    return x + count;
  };
  return make(step, rows(8), [count] { return Values{count}; });
}

SWEEP(memory, data_ptr_read, refused, kLeaves) {
  return make([](at::Tensor x) { return x * x.data_ptr<float>()[3]; }, rows(4));
}

SWEEP(memory, data_ptr_write_argument, refused, kLeaves) {
  auto step = [](at::Tensor x) {
    x.data_ptr<float>()[0] = 42;
    return x + 1;
  };
  return make(step, rows(4));
}

SWEEP(memory, data_ptr_write_result, refused, kLeaves) {
  auto step = [](at::Tensor x) {
    at::Tensor y = x * 2;
    float* numbers = y.data_ptr<float>();
    for (int i = 0; i < 16; ++i) numbers[i] += static_cast<float>(i);
    return y;
  };
  return make(step, rows(4));
}

// Asks for addresses, and reads nothing there; nobody can tell that from reading.
SWEEP(memory, data_ptr_compared, either) {
  auto step = [](at::Tensor x) {
    at::Tensor y = x.reshape({16});
    return y.const_data_ptr() == x.const_data_ptr() ? y + 1 : y;
  };
  return make(step, rows(4));
}

SWEEP(memory, memcpy_to_new_tensor, refused, kLeaves) {
  auto step = [](at::Tensor x) {
    at::Tensor y = torch::empty({4, 4});
    std::memcpy(y.mutable_data_ptr(), x.const_data_ptr(), x.nbytes());
    return y.sin();
  };
  return make(step, rows(4));
}

SWEEP(memory, memcpy_to_state, refused, kLeaves) {
  at::Tensor last = torch::zeros({4, 4});
  auto step = [last](at::Tensor x) {
    at::Tensor y = x - last;
    std::memcpy(last.mutable_data_ptr(), x.const_data_ptr(), x.nbytes());
    return y;
  };
  return make(step, rows(8), [last] { return Values{last}; });
}

SWEEP(memory, sort_data, refused, kLeaves) {
  auto step = [](at::Tensor x) {
    at::Tensor y = x.clone();
    std::sort(y.data_ptr<float>(), y.data_ptr<float>() + y.numel());
    return y * 3;
  };
  return make(step, rows(4));
}

SWEEP(memory, from_blob_of_vector, refused, kLeaves) {
  auto step = [](at::Tensor x) {
    std::vector<float> numbers(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
    std::partial_sum(numbers.begin(), numbers.end(), numbers.begin());
    return torch::from_blob(numbers.data(), {4, 4}).clone() + x;
  };
  return make(step, rows(4));
}

// The caller writes an array of C++ that the program sees as a tensor.
SWEEP(memory, from_blob_written_outside, either) {
  auto numbers = std::make_shared<std::vector<float>>(4);
  auto step = [numbers](at::Tensor x) { return x + torch::from_blob(numbers->data(), {4}); };
  Case result = make(step, rows(6));
  result.before = [numbers](size_t call) { (*numbers)[1] = static_cast<float>(call); };
  return result;
}

// Planted: the program writes the array.
SWEEP(memory, from_blob_written_inside, refused, kLeaves) {
  auto numbers = std::make_shared<std::vector<float>>(4);
  auto step = [numbers](at::Tensor x) {
    (*numbers)[2] += 1;
    return x + torch::from_blob(numbers->data(), {4});
  };
  return make(step, rows(6));
}

SWEEP(memory, item_scale, either) {
  return make([](at::Tensor x) { return x * x.max().item<float>(); }, rows(4));
}

SWEEP(memory, item_branch, either) {
  return make([](at::Tensor x) { return x.sum().item<float>() > 0 ? x.relu() : -x; }, rows(8));
}

SWEEP(memory, thread, either) {
  auto step = [](at::Tensor x) {
    at::Tensor y;
    std::thread worker([&] { y = x.exp(); });
    worker.join();
    return y + 1;
  };
  return make(step, rows(4));
}

SWEEP(memory, thread_writes_state, either) {
  at::Tensor total = torch::zeros({4, 4});
  auto step = [total](at::Tensor x) {
    std::thread worker([&] { total.add_(x); });
    worker.join();
    return total * 2;
  };
  return make(step, rows(20), [total] { return Values{total}; });
}

SWEEP(memory, async, either) {
  torch::nn::Linear left(4, 4), right(4, 4);
  auto step = [left, right](at::Tensor x) mutable {
    torch::NoGradGuard no_grad;
    auto other = std::async(std::launch::async, [&] {
      torch::NoGradGuard no_grad_here;
      return right(x);
    });
    return left(x) + other.get();
  };
  return make(step, rows(4));
}

SWEEP(memory, argument_in_place_is_result, copies) {
  Case result = make([](at::Tensor x) { return x.add_(1); }, rows(5));
  result.after = [](const Values& results) { results[0].mul_(3); };
  return result;
}

SWEEP(memory, result_is_state, copies) {
  at::Tensor total = torch::zeros({4, 4});
  Case result = make([total](at::Tensor x) { return total.add_(x); }, rows(8),
                     [total] { return Values{total}; });
  result.after = [](const Values& results) { results[0].mul_(0.5); };
  return result;
}

SWEEP(memory, view_of_argument, right) {
  Case result = make([](at::Tensor x) { return x.t().slice(0, 1, 3); }, rows(5));
  result.after = [](const Values& results) { results[0].fill_(9); };
  return result;
}

SWEEP(memory, results_alias, right) {
  auto step = [](at::Tensor x) {
    at::Tensor y = x * 2;
    return std::pair(y, y[0]);
  };
  Case result = make(step, rows(5));
  result.after = [](const Values& results) { results[1].zero_(); };
  return result;
}

// A view is written that was made before the trace.
SWEEP(memory, view_from_outside, right) {
  at::Tensor total = torch::zeros({4, 4}), row = total[1];
  auto step = [total, row](at::Tensor x) {
    row.add_(x[0]);
    return total.sum(0);
  };
  return make(step, rows(8), [total] { return Values{total}; });
}

SWEEP(memory, set_data, either) {
  torch::nn::Linear layer(4, 4);
  auto step = [layer](at::Tensor x) mutable {
    layer->weight.set_data(layer->weight.detach() * 0.5);
    return layer(x).detach();
  };
  return make(step, rows(8));
}

// Operators of a library. `smooth` has no backend key: what happens inside is its own.
at::Tensor smooth(const at::Tensor& x) {
  at::Tensor y = x.contiguous().clone();
  auto numbers = y.accessor<float, 2>();
  for (int64_t i = 1; i < y.size(0); ++i) numbers[i][0] = (numbers[i][0] + numbers[i - 1][0]) / 2;
  return y;
}

// Writes its second argument against its schema.
at::Tensor liar(const at::Tensor& x, const at::Tensor& total) {
  at::Tensor alias = total;
  alias.add_(x);
  return x * 2;
}

// The same, where no operator writes.
at::Tensor quiet_liar(const at::Tensor& x, const at::Tensor& total) {
  total.data_ptr<float>()[0] += x.data_ptr<float>()[0];
  return x * 2;
}

TORCH_LIBRARY(sweep_cpp, m) {
  m.def("smooth", smooth);
  m.def("liar", liar);
  m.def("quiet_liar(Tensor x, Tensor total) -> Tensor");
}
TORCH_LIBRARY_IMPL(sweep_cpp, CPU, m) { m.impl("quiet_liar", quiet_liar); }

template <class Function>
auto operator_of(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

SWEEP(memory, custom_operator, right) {
  auto step = [](at::Tensor x) {
    return operator_of<at::Tensor(const at::Tensor&)>("sweep_cpp::smooth").call(x.sin()) + 1;
  };
  return make(step, rows(5));
}

Case writing_against_its_schema(const char* name, bool used) {
  at::Tensor total = torch::zeros({4, 4});
  auto step = [total, name, used](at::Tensor x) {
    using Function = at::Tensor(const at::Tensor&, const at::Tensor&);
    at::Tensor y = operator_of<Function>(name).call(x, total);
    return used ? y + total : x + 0;
  };
  return make(step, rows(8), [total] { return Values{total}; });
}

SWEEP(memory, operator_lies, either) { return writing_against_its_schema("sweep_cpp::liar", true); }

SWEEP(memory, operator_lies_unused, either) {
  return writing_against_its_schema("sweep_cpp::liar", false);
}

SWEEP(memory, operator_lies_by_pointer, either) {
  return writing_against_its_schema("sweep_cpp::quiet_liar", true);
}

SWEEP(memory, operator_lies_by_pointer_unused, either) {
  return writing_against_its_schema("sweep_cpp::quiet_liar", false);
}

struct Square : torch::autograd::Function<Square> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor x) {
    context->save_for_backward({x});
    return x * x;
  }
  static Values backward(torch::autograd::AutogradContext* context, Values gradients) {
    return {context->get_saved_variables()[0] * gradients[0] * 2};
  }
};

SWEEP(memory, custom_function, right) {
  torch::nn::Linear layer(4, 2);
  auto step = [layer](at::Tensor x) mutable {
    layer->zero_grad();
    at::Tensor loss = Square::apply(layer(x)).sum();
    loss.backward();
    torch::NoGradGuard no_grad;
    layer->weight.sub_(layer->weight.grad(), 0.01);
    return loss.detach();
  };
  return make(step, rows(8), [layer] { return layer->parameters(); });
}

}  // namespace
