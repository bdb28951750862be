// Models with bytes that are not what was written: refused as UserError, or legal graphs.
//
//   survives_changes(model({{node("Relu", {"x"}, {"y"})}, {x_of({2})}, {y_of({2})}}));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "composit/eval/evaluate.h"
#include "composit/interchange/onnx.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/native.h"
#include "tests/interchange/onnx_models.h"
#include "tests/io/temporary_folder.h"

namespace composit::onnx::test {

inline constexpr int64_t kSmall = 1 << 11;  // elements of a graph that is evaluated

// A loop of many trips is a legal one that takes long.
inline bool is_short(const Node& node) {
  if (node.op() != Symbol("composit::while_loop")) return true;
  const auto* limit = node.find_attribute("limit")->get_if<int64_t>();
  return limit != nullptr && *limit <= 1000;
}

inline bool is_small(const Graph& graph) {
  int64_t all = 0;
  for (const NodePtr& node : graph.nodes()) {
    if (!is_short(*node)) return false;
    for (const Type& type : node->outputs()) {
      if (!is_defined(type) || type.numel() > kSmall) return false;
      all += type.numel();
    }
  }
  return all <= kSmall;
}

// Reads, and where that is asked for and possible evaluates. True if it is a model.
inline bool survives(const std::string& bytes, bool evaluates) {
  const composit::test::MemoryFile file;
  file.write(bytes);
  try {
    const SavedCapture capture = load_onnx(file.path());
    verify(capture.graph);
    if (!evaluates || !is_small(capture.graph)) return true;
    EXPECT_EQ(parse(print(capture.graph)), capture.graph) << print(capture.graph);
    std::vector<Array> arguments;
    for (const LazyTensor& input : capture.graph.inputs()) {
      const Array& held = input.node->held();
      const std::vector<double> zeros(static_cast<size_t>(input.numel()));
      arguments.push_back(held.defined() ? held : array_of(input.type(), zeros));
    }
    evaluate(capture.graph, arguments);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

inline void survives_changes(const std::string& bytes) {
  ASSERT_TRUE(survives(bytes, true));
  size_t read = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      SCOPED_TRACE("byte " + std::to_string(i) + " ^ " + std::to_string(change));
      read += survives(changed, i % 5 == 0) ? 1 : 0;
    }
  for (size_t size = 0; size < bytes.size(); size += 3) survives(bytes.substr(0, size), false);
  EXPECT_GT(read, 0U);
}

inline Message ints(std::string_view name, const std::vector<int64_t>& values) {
  return tensor(name, DType::int64, {static_cast<int64_t>(values.size())}, values);
}
inline Message list(std::string_view name, const std::vector<int64_t>& values) {
  Message message;
  message.text(field::name, name);
  for (const int64_t value : values) message.integer(field::ints, value);
  message.integer(field::type, field::kInts);
  return message;
}
inline Message weight(std::string_view name, const Dims& sizes) {
  const Type type = composit::tensor_type(DType::float32, sizes);
  return tensor(name, DType::float32, sizes,
                std::vector<float>(static_cast<size_t>(type.numel()), 0.25F));
}

}  // namespace composit::onnx::test
