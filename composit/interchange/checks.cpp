#include "composit/interchange/checks.h"

#include <map>
#include <optional>
#include <vector>

#include "composit/interchange/values.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "composit/ops/native.h"

namespace composit::interchange {
namespace {

constexpr std::string_view kChecked = "interchange::checked";

class Checks {
 public:
  Checks(std::string_view both, bool drops) : both_(both), drops_(drops) {}

  void run(Lowered& lowered) {
    Graph::Parts parts = without(lowered.graph, false).parts();
    for (const std::string& what : order_) {
      parts.outputs.push_back(holds_.at(what));
      lowered.guards.push_back(what);
    }
    lowered.graph = Graph(std::move(parts));
  }

 private:
  Graph without(const Graph& graph, bool inside) {
    const Graph plain =
        rebuild_regions(graph, [this](const Graph& region) { return without(region, true); });
    return rebuild(plain, [&](const Node& node, const LazyTensors& operands) {
      std::optional<Replacement> replacement;
      if (!is_check(node)) return replacement;
      note(node, operands[1], inside);
      replacement = Replacement{.outputs = {operands[0]}};
      return replacement;
    });
  }

  void note(const Node& node, const LazyTensor& holds, bool inside) {
    const std::string& what = node.attribute("what").as<std::string>();
    if (is_true(holds) || (inside && drops_)) return;
    if (inside)
      throw UserError("within a branch or a loop nobody can ask whether " + what + place_of(node));
    LazyTensor& all = holds_[what];
    if (!all) order_.push_back(what);
    all =
        all ? results_of(both_.str(), {all, holds}, {}, {tensor_type(DType::bool_, {})})[0] : holds;
  }

  bool is_true(const LazyTensor& x) const {
    if (x.node->op() == ops::kConstant)
      return elements<int64_t>(x.node->attribute("value").as<Array>()) == std::vector<int64_t>{1};
    return x.node->op() == both_ && is_true(x.node->operands()[0]) &&
           is_true(x.node->operands()[1]);
  }

  const Symbol both_;
  const bool drops_;
  std::map<std::string, LazyTensor> holds_;
  std::vector<std::string> order_;
};

}  // namespace

LazyTensor checked(const LazyTensor& x, const LazyTensor& holds, const std::string& what) {
  return results_of(kChecked, {x, holds}, {attribute("what", what)},
                    {tensor_type(x.dtype(), x.sizes())})[0];
}

bool is_check(const Node& node) {
  static const Symbol op(kChecked);
  return node.op() == op;
}

void guard_checks(Lowered& lowered, std::string_view both, bool drops) {
  Checks(both, drops).run(lowered);
}

}  // namespace composit::interchange
