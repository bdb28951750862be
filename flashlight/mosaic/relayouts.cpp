#include "flashlight/mosaic/relayouts.h"

#include "composit/op/affine.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/kernels/pack.h"
#include "flashlight/mosaic/layout_cost.h"

namespace flashlight::mosaic {
namespace {

using loops::Statement;

class Finder {
 public:
  explicit Finder(const Plan& plan) : plan_(plan) {}

  std::vector<Relayout> run() {
    for (const bool once : {true, false}) {
      const std::vector<Kernel>& kernels = once ? plan_.prepare : plan_.run;
      for (size_t i = 0; i < kernels.size(); ++i) {
        next_ = {.once = once, .kernel = i};
        enter(kernels[i]);
      }
    }
    return std::move(found_);
  }

 private:
  int64_t bytes(ValueId value) const { return plan_.routine.values[value].type.nbytes(); }
  void add(Relayout::Kind kind, ValueId from, ValueId to, int64_t bytes) {
    next_.kind = kind;
    next_.from = from;
    next_.to = to;
    next_.bytes = bytes;
    found_.push_back(next_);
  }

  void enter(const Kernel& kernel) {
    if (kernel.form == &kPack) {
      const auto& pack = data_of<PackData>(kernel);
      add(Relayout::Kind::pack, pack.product.right, pack.packed, bytes(pack.packed));
    }
    if (!kernel.form->follows_steps) return;
    for (const StepId step : kernel.steps)
      if (const auto* nest = std::get_if<loops::Nest>(&plan_.routine.steps[step])) enter(*nest);
  }

  void enter(const loops::Nest& nest) {
    const Statement& statement = nest.statement;
    const composit::Store& store = statement.stores[0];
    const ValueIds across = NestCost(plan_.routine, nest, [this](ValueId value) {
                              return plan_.frozen[value];
                            }).across({});
    const bool moves = statement.init.empty() && statement.stores.size() == 1 && !store.add &&
                       store.value.kind() == composit::ExprKind::load;
    if (!moves) {
      for (const ValueId value : across)
        add(Relayout::Kind::reorder, value, value_of(store), bytes(value));
    } else if (is_one_to_one(flat(plan_.routine, statement))) {
      const composit::DType dtype = plan_.routine.values[value_of(store)].type.dtype;
      add(across.empty() ? Relayout::Kind::copy : Relayout::Kind::retile, value_of(store.value),
          value_of(store),
          loops::iterations(statement) * static_cast<int64_t>(composit::item_size(dtype)));
    }
  }
  // A statement that picks elements by computed indices, or repeats them, is no relayout.
  static bool is_one_to_one(const Statement& statement) {
    composit::IndexAnalysis analysis(statement.axes);
    const composit::Store& store = statement.stores[0];
    const auto from = analysis.affine(store.value[0]), to = analysis.affine(store.at[0]);
    return from && to && from->axes() == to->axes();
  }

  const Plan& plan_;
  std::vector<Relayout> found_;
  Relayout next_;
};

}  // namespace

std::vector<Relayout> relayouts_of(const Plan& plan) { return Finder(plan).run(); }

std::string name_of(Relayout::Kind kind) {
  switch (kind) {
    case Relayout::Kind::pack:
      return "pack";
    case Relayout::Kind::retile:
      return "retile";
    case Relayout::Kind::copy:
      return "copy";
    case Relayout::Kind::reorder:
      return "reorder";
  }
  return "";
}

}  // namespace flashlight::mosaic
