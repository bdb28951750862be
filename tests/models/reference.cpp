#include "tests/models/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <stdexcept>

#include "examples/models/safetensors.h"

namespace models {
namespace {

constexpr double kFloat32Factor = 4.0;
const double kFloat64Factor = std::ldexp(1.0, -20);

std::string reference_folder() {
  const char* folder = std::getenv("FLASHLIGHT_MODELS_REFERENCE");
  if (folder == nullptr) {
    throw std::runtime_error("FLASHLIGHT_MODELS_REFERENCE must name what make_reference.py wrote");
  }
  return folder;
}

std::string prefix_of(torch::ScalarType dtype) {
  return dtype == torch::kFloat64 ? "float64." : "float32.";
}

double max_difference(const torch::Tensor& left, const torch::Tensor& right) {
  return (left.to(torch::kFloat64) - right.to(torch::kFloat64)).abs().max().item<double>();
}

/// `rounding` is the error of the original in float32, by which the error of `value` is measured.
void expect_close(const torch::Tensor& value, const torch::Tensor& exact, double rounding,
                  double factor, const std::string& what) {
  ASSERT_EQ(value.sizes(), exact.sizes()) << what;
  const double ratio = max_difference(value, exact) / rounding;
  std::cout << what << ": error " << ratio << " times the original's in float32, at most " << factor
            << "\n";
  EXPECT_LE(ratio, factor) << what;
}

void expect_outputs(const Reference& reference, const Run& run, torch::ScalarType dtype,
                    double factor) {
  const torch::NoGradGuard no_grad;
  const Tensors actual = run(reference.inputs(dtype));
  const Tensors exact = reference.outputs(torch::kFloat64);
  const Tensors rounded = reference.outputs(torch::kFloat32);
  ASSERT_FALSE(exact.empty());
  for (const auto& [name, value] : exact) {
    ASSERT_EQ(actual.count(name), 1) << "nothing computed for " << name;
    ASSERT_EQ(actual.at(name).scalar_type(), dtype) << name;
    const double rounding = max_difference(rounded.at(name), value);
    ASSERT_GT(rounding, 0.0) << name << " tells nothing: float32 is exact";
    expect_close(actual.at(name), value, rounding, factor, prefix_of(dtype) + name);
  }
}

// Module::to(kFloat64) would convert indices as well.
std::vector<torch::Tensor> parameters_and_buffers(const torch::nn::Module& model) {
  std::vector<torch::Tensor> tensors = model.parameters();
  for (const torch::Tensor& buffer : model.buffers()) tensors.push_back(buffer);
  return tensors;
}

}  // namespace

Reference::Reference(const std::string& name)
    : folder_(reference_folder() + "/" + name),
      tensors_(read_safetensors(folder_ + "/io.safetensors")) {}

Tensors Reference::inputs(torch::ScalarType dtype) const {
  Tensors inputs = with_prefix("input.");
  for (auto& [name, tensor] : inputs) {
    if (tensor.is_floating_point()) tensor = tensor.to(dtype);
  }
  return inputs;
}

Tensors Reference::outputs(torch::ScalarType dtype) const { return with_prefix(prefix_of(dtype)); }

Tensors Reference::with_prefix(const std::string& prefix) const {
  Tensors result;
  for (const auto& [name, tensor] : tensors_) {
    if (name.starts_with(prefix)) result.emplace(name.substr(prefix.size()), tensor);
  }
  return result;
}

void expect_agrees(const Reference& reference, torch::nn::Module& model, const Run& run) {
  model.eval();
  expect_outputs(reference, run, torch::kFloat32, kFloat32Factor);
  for (torch::Tensor& tensor : parameters_and_buffers(model))
    if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(torch::kFloat64));
  expect_outputs(reference, run, torch::kFloat64, kFloat64Factor);
}

void expect_agrees(const Reference& reference, const Run& run) {
  expect_outputs(reference, run, torch::kFloat32, kFloat32Factor);
  expect_outputs(reference, run, torch::kFloat64, kFloat64Factor);
}

}  // namespace models
