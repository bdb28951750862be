// Graphs of well-known models, made by hand: operations, scopes, parameters and types as a capture
// has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/graph.h"

namespace composit::test {

// Builds a graph as a module tree would: inside a Scope "encoder", linear("fc1", x, 64) reads
// "encoder.fc1.weight".
class ModelGraph {
 public:
  class Scope {
   public:
    Scope(ModelGraph& model, const std::string& name);
    ~Scope() { model_.scope_.resize(length_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ModelGraph& model_;
    size_t length_;
  };

  LazyTensor user_input(const std::string& name, DType dtype, Dims sizes);
  LazyTensor parameter(const std::string& name, Dims sizes, InputKind kind = InputKind::parameter);
  LazyTensor call(std::string_view op, const LazyTensors& operands, Dims sizes,
                  Attributes attributes = {});

  LazyTensor linear(const std::string& name, const LazyTensor& x, int64_t features,
                    bool bias = true);
  LazyTensor conv(const std::string& name, const LazyTensor& x, int64_t channels, int64_t kernel,
                  int64_t stride = 1);
  LazyTensor layer_norm(const std::string& name, const LazyTensor& x);
  LazyTensor group_norm(const std::string& name, const LazyTensor& x);
  LazyTensor batch_norm(const std::string& name, const LazyTensor& x);
  LazyTensor same(std::string_view op,
                  const LazyTensors& operands);  // output like operand 0

  Graph finish(LazyTensors outputs, std::vector<Mutation> mutations = {}) const;

 private:
  friend class Scope;
  std::string path(const std::string& name) const;
  std::string scope_;
  LazyTensors inputs_;
};

Graph perceptron_graph();
Graph bert_graph(int layers, int64_t width = 768);
Graph resnet50_graph();
Graph unet_graph(int blocks_per_level = 3,
                 int transformer_depth = 2);  // more than 3,000 nodes
Graph chain_graph(int length);                // without scopes

}  // namespace composit::test
