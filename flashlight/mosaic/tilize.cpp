#include "flashlight/mosaic/tilize.h"

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "composit/op/affine.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/byte_products.h"
#include "flashlight/mosaic/copies.h"
#include "flashlight/mosaic/depthwise.h"
#include "flashlight/mosaic/product.h"
#include "flashlight/mosaic/sides.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using loops::contains;
using loops::Role;
using loops::Statement;
using Axes = AxisIds;
using Dimensions = std::vector<size_t>;

// Rows whose distance is a multiple of this many bytes meet in a few sets of the first cache: one
// more line between them brings them apart.
constexpr int64_t kCriticalPitch = 1024;
constexpr int64_t kLineBytes = 64;

class Tilizer {
 public:
  Tilizer(loops::Routine& routine, const std::function<bool(ValueId)>& is_frozen,
          const std::map<ValueId, Choice>& choices, bool may_round)
      : routine_(routine),
        choices_(choices),
        may_round_(may_round),
        is_frozen_([this, &is_frozen](ValueId value) {
          const auto copied = copied_from_.find(value);
          return is_frozen(copied == copied_from_.end() ? value : copied->second);
        }) {}

  // Without the program, which is changed in place.
  Tilized run() {
    copy_chosen();
    find_free();
    copy_padded_inputs();
    find_free();
    set_chosen();
    for (const loops::Step& step : routine_.steps)
      if (const auto* nest = std::get_if<loops::Nest>(&step)) vote(*nest);
    elect();
    while (hand_on()) {
    }
    Tilized result = improved();
    if (std::any_of(layouts_.begin(), layouts_.end(),
                    [](const auto& one) { return one.second.tiling.is_blocked(); }))
      unblock_products();
    for (loops::Step& step : routine_.steps)
      if (auto* nest = std::get_if<loops::Nest>(&step)) add_border(*nest);
    set_rows_apart();
    while (hand_on_apart()) {
    }
    std::erase_if(layouts_, [&](const auto& one) {
      return one.second == row_major(routine_.values[one.first].type);
    });
    routine_ = laid_out(std::move(routine_), layouts_);
    result.layouts = layouts_;
    return result;
  }

 private:
  // Temporaries that nests alone touch, and that a tile schema has letters for.
  void find_free() {
    free_.assign(routine_.values.size(), false);
    for (const ValueId i : routine_.values.ids())
      free_[i] = routine_.values[i].role == Role::temporary &&
                 routine_.values[i].type.rank() <= kMostDimensions;
    for (const loops::Step& step : routine_.steps) {
      if (std::holds_alternative<loops::Nest>(step)) continue;
      for (const ValueId value : loops::reads(step)) free_[value] = false;
      for (const ValueId value : loops::writes(step)) free_[value] = false;
    }
  }

  // A product as far as layouts go: what it reads by rows, and its axes.
  struct Sides {
    loops::Contraction of;
    const Expr& rows() const { return of.left; }
    const Expr& domain() const { return of.left_domain; }
    // The dimensions that should be innermost in rows.
    const Axes& inner() const { return is_depthwise(of) ? of.columns : of.terms; }
  };
  std::optional<Sides> sides_of(const loops::Nest& nest) const {
    auto contraction = mosaic::sides_of(nest);
    if (!contraction || contraction->left.kind() != ExprKind::load ||
        contraction->right.kind() != ExprKind::load)
      return std::nullopt;
    if (!is_depthwise(*contraction))
      choose_rows(*contraction, nest.statement.stores[0].at, is_frozen_);
    return Sides{*contraction};
  }

  // ---- choices ----------------------------------------------------------------------------------

  // Values that the caller gives, takes or keeps get a chosen layout in a copy.
  void copy_chosen() {
    const std::map<ValueId, Choice> choices = choices_;
    for (const auto& [value, choice] : choices) {
      const Role role = routine_.values[value].role;
      if ((!choice.layout && !choice.apart) || role == Role::temporary) continue;
      const ValueId copy =
          add_copy(routine_, value, "has the layout that was chosen for the caller's memory");
      copied_from_[copy] = value;
      if (!touch_instead(routine_, value, copy))
        throw composit::UserError("[mosaic] layout of '" + routine_.values[value].name +
                                  "': no loops touch it, or a call writes it");
      choices_[copy] = choice;
      choices_.erase(value);
    }
  }
  void set_chosen() {
    for (const auto& [value, choice] : choices_) {
      if (!choice.layout && !choice.apart) continue;
      const std::string what = "[mosaic] layout of '" + routine_.values[value].name + "': ";
      if (!free_[value]) throw composit::UserError(what + "it is the memory of a call");
      const composit::Type& type = routine_.values[value].type;
      if (type.rank() == 0) throw composit::UserError(what + "it is one number");
      // Without a choice of the order, products still vote for it.
      if (!choice.layout) continue;
      try {
        layouts_.insert_or_assign(value, in_model_schema(routine_.values[value], *choice.layout));
      } catch (const composit::UserError& error) {
        throw composit::UserError(what + error.what());
      }
    }
  }
  std::optional<int64_t> chosen_apart(ValueId value) const {
    const auto choice = choices_.find(value);
    return choice == choices_.end() ? std::nullopt : choice->second.apart;
  }

  // ---- order ------------------------------------------------------------------------------------

  // Dimensions of an access whose index is one of `axes`, in the order of the axes, innermost.
  static Dimensions with_innermost(const std::vector<Expr>& at, const Axes& axes) {
    Dimensions order, inner;
    for (size_t i = 0; i < at.size(); ++i) {
      const bool wanted = at[i].kind() == ExprKind::axis && contains(axes, axis_of(at[i]));
      (wanted ? inner : order).push_back(i);
    }
    order.insert(order.end(), inner.begin(), inner.end());
    return order;
  }

  void vote(const loops::Nest& nest) {
    const Statement& statement = nest.statement;
    const auto sides = sides_of(nest);
    if (!sides) return;
    const int64_t work = loops::iterations(statement);
    const Expr& rows = sides->rows();
    votes_[value_of(rows)][with_innermost(rows.arguments(), sides->inner())] += work;
    const composit::Store& store = statement.stores[0];
    const bool has_columns = std::any_of(store.at.begin(), store.at.end(), [&](const Expr& index) {
      return index.kind() == ExprKind::axis && contains(sides->of.columns, axis_of(index));
    });
    if (has_columns) votes_[value_of(store)][with_innermost(store.at, sides->of.columns)] += work;
  }

  void elect() {
    for (const auto& [value, orders] : votes_) {
      if (!free_[value] || layouts_.contains(value)) continue;
      const auto most =
          std::max_element(orders.begin(), orders.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      set_order(value, most->first);
    }
  }
  void set_order(ValueId value, const Dimensions& order) {
    layouts_.insert_or_assign(value, in_order(routine_.values[value].type, order));
  }
  Layout& layout_of(ValueId value) {
    return layouts_.try_emplace(value, row_major(routine_.values[value].type)).first->second;
  }

  // Axes of a statement in the order of an access's dimensions in memory.
  Axes axis_order(ValueId value, const std::vector<Expr>& at, const Statement& statement) const {
    const auto layout = layouts_.find(value);
    Axes axes;
    for (size_t i = 0; i < at.size(); ++i) {
      const size_t dimension =
          layout == layouts_.end() ? i : layout->second.tiling.loops()[i].dimension;
      for (const AxisId axis : loops::axes_in(at[dimension]))
        if (statement.axes[axis].kind == composit::AxisKind::parallel && !contains(axes, axis))
          axes.push_back(axis);
    }
    return axes;
  }
  // Dimensions of an access in the order of these axes; those without one stay outside.
  static Dimensions dimensions_by(const Axes& axes, const std::vector<Expr>& at) {
    Dimensions order(at.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto place = [&](size_t dimension) {
      for (size_t i = axes.size(); i-- > 0;)
        if (contains(loops::axes_in(at[dimension]), axes[i])) return i + 1;
      return size_t{0};
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return place(a) < place(b); });
    return order;
  }

  // A value without an order takes it from one that is read or written in the same nest.
  bool hand_on() {
    for (const loops::Step& step : routine_.steps) {
      const auto* nest = std::get_if<loops::Nest>(&step);
      if (nest == nullptr || mosaic::sides_of(*nest)) continue;
      const Statement& statement = nest->statement;
      const composit::Store& store = statement.stores[0];
      for (const Expr& part : composit::parts_of(loops::expressions(statement))) {
        if (part.kind() != ExprKind::load) continue;
        const ValueId from = value_of(part), to = value_of(store);
        if (part.arguments().size() < 2 || store.at.size() < 2) continue;
        const bool forward = layouts_.contains(from) && free_[to] && !layouts_.contains(to),
                   backward = layouts_.contains(to) && free_[from] && !layouts_.contains(from);
        if (forward)
          hand_over(from, part.arguments(), to, store.at, statement);
        else if (backward)
          hand_over(to, store.at, from, part.arguments(), statement);
        if (forward || backward) return true;
      }
    }
    return false;
  }

  void hand_over(ValueId from, const std::vector<Expr>& from_at, ValueId to,
                 const std::vector<Expr>& to_at, const Statement& statement) {
    if (layouts_.at(from).tiling.is_blocked())
      layouts_.insert_or_assign(
          to, in_schema(routine_.values[to].type, handed_on(layouts_.at(from), from_at, to_at)));
    else
      set_order(to, dimensions_by(axis_order(from, from_at, statement), to_at));
  }
  // ---- cost -------------------------------------------------------------------------------------

  // Votes count multiplications. Where another order that somebody votes for, or none, lays out
  // fewer bytes anew, a value gets that one.
  Tilized improved() {
    const LayoutCost cost(routine_, is_frozen_);
    Tilized result = {.program = {}, .row_major_across = cost.across({})};
    for (bool changed = true; changed;) {
      changed = false;
      for (ValueId value; value < free_.size(); ++value) {
        const auto choice = choices_.find(value);
        const bool is_chosen = choice != choices_.end() && choice->second.layout;
        if (free_[value] && !is_chosen && layouts_.contains(value)) changed |= improve(value, cost);
      }
    }
    result.across = cost.across(layouts_);
    return result;
  }
  bool improve(ValueId value, const LayoutCost& cost) {
    const composit::Type& type = routine_.values[value].type;
    std::vector<Layout> candidates = {row_major(type)};
    if (const auto votes = votes_.find(value); votes != votes_.end())
      for (const auto& [order, work] : votes->second) candidates.push_back(in_order(type, order));
    std::map<ValueId, Layout> now = layouts_;
    int64_t least = cost.around(value, now).bytes;
    bool changed = false;
    for (const Layout& candidate : candidates) {
      now.insert_or_assign(value, candidate);
      const int64_t bytes = cost.around(value, now).bytes;
      if (bytes >= least) continue;
      least = bytes;
      layouts_.insert_or_assign(value, candidate);
      changed = true;
    }
    return changed;
  }

  // ---- blocks -----------------------------------------------------------------------------------

  // A product that would be none by its indices into blocks reads and writes copies without them.
  void unblock_products() {
    Table<StepId, loops::Step> steps;
    for (loops::Step& step : routine_.steps) {
      auto* nest = std::get_if<loops::Nest>(&step);
      const auto sides = nest != nullptr ? sides_of(*nest) : std::nullopt;
      std::vector<loops::Step> behind;
      if (sides && is_product_in(*nest, {})) {
        const Expr rows = sides->rows(), columns = sides->of.right;
        for (const Expr& side : {rows, columns}) {
          const ValueId value = value_of(side);
          if (!breaks(*nest, value)) continue;
          const composit::Type& type = routine_.values[value].type;
          const ValueId copy = add_unblocked(
              value, side.same(rows)
                         ? in_order(type, with_innermost(rows.arguments(), sides->inner()))
                         : row_major(type));
          steps.push_back(copying(routine_, value, copy));
          read_instead(*nest, value, copy);
        }
        const composit::Store store = nest->statement.stores[0];
        if (breaks(*nest, value_of(store)) && writes_all(routine_, nest->statement)) {
          const ValueId copy =
              add_unblocked(value_of(store), in_order(routine_.values[value_of(store)].type,
                                                      with_innermost(store.at, sides->of.columns)));
          write_instead(*nest, value_of(store), copy);
          behind.push_back(copying(routine_, copy, value_of(store)));
        }
      }
      steps.push_back(std::move(step));
      for (loops::Step& one : behind) steps.push_back(std::move(one));
    }
    routine_.steps = std::move(steps);
  }
  ValueId add_unblocked(ValueId value, const Layout& layout) {
    const ValueId copy =
        add_copy(routine_, value,
                 "is in an order that a product works by, whose own are blocks that it cannot");
    copied_from_[copy] = value;
    free_.push_back(true);
    layouts_.insert_or_assign(copy, layout);
    return copy;
  }
  bool breaks(const loops::Nest& nest, ValueId value) const {
    const auto layout = layouts_.find(value);
    return layout != layouts_.end() && layout->second.tiling.is_blocked() &&
           (has_border_in_blocks(nest, *layout) || !is_product_in(nest, {*layout}));
  }
  bool has_border_in_blocks(const loops::Nest& nest,
                            const std::pair<const ValueId, Layout>& blocked) const {
    const auto sides = sides_of(nest);
    const auto border = sides && sides->rows().number() == blocked.first
                            ? border_of(nest.statement, *sides)
                            : std::nullopt;
    for (size_t i = 0; border && i < border->before.size(); ++i)
      if (blocked.second.tiling.is_blocked(i) && border->before[i] + border->after[i] > 0)
        return true;
    return false;
  }
  // True if the statement is a product when values have these layouts. Its padding does not matter:
  // it becomes zeros around a value.
  bool is_product_in(loops::Nest nest, const std::map<ValueId, Layout>& layouts) const {
    const auto sides = sides_of(nest);
    if (sides && border_of(nest.statement, *sides)) nest.statement.domain = Expr();
    loops::Routine one;
    one.values = routine_.values;
    one.steps.push_back(std::move(nest));
    one = laid_out(std::move(one), layouts);
    return product_of(one, std::get<loops::Nest>(one.steps.front()), is_frozen_).has_value();
  }

  // ---- borders ----------------------------------------------------------------------------------

  // The layout with borders as wide as a product reads its rows beyond their ends; nothing if its
  // domain says anything else than that rows end there.
  std::optional<Layout> border_of(const Statement& statement, const Sides& sides) const {
    const Expr& rows = sides.rows();
    composit::IndexAnalysis analysis(statement.axes);
    const composit::Type& type = routine_.values[value_of(rows)].type;
    if (type.rank() > kMostDimensions) return std::nullopt;
    std::vector<composit::Affine> at;
    for (const Expr& index : rows.arguments()) {
      const auto affine = analysis.affine(index);
      if (!affine) return std::nullopt;
      at.push_back(*affine);
    }
    for (const Expr& predicate : composit::conjuncts(sides.domain())) {
      const auto bound = composit::bound_of(predicate, analysis);
      bool is_border = false;
      for (size_t i = 0; bound && i < at.size(); ++i) {
        const composit::Affine last = {{}, type.sizes[i] - 1};
        is_border |= *bound == at[i] || bound->plus(at[i]) == widened(last, at[i]);
      }
      if (!is_border) return std::nullopt;
    }
    Layout layout = row_major(type);
    layout.fill = padding_of(statement);
    for (size_t i = 0; i < at.size(); ++i) {
      const composit::Range range = analysis.range(at[i]);
      layout.before[i] = std::max<int64_t>(0, -range.low);
      layout.after[i] = std::max<int64_t>(0, range.high - (type.sizes[i] - 1));
    }
    return layout;
  }
  static composit::Affine widened(composit::Affine constant, const composit::Affine& like) {
    constant.coefficients.assign(like.coefficients.size(), 0);
    return constant;
  }

  // Padding of what the caller gave is the padding of a copy.
  void copy_padded_inputs() {
    Table<StepId, loops::Step> steps;
    std::map<ValueId, ValueId> copies;
    for (loops::Step& step : routine_.steps) {
      auto* nest = std::get_if<loops::Nest>(&step);
      const auto sides = nest != nullptr ? sides_of(*nest) : std::nullopt;
      const bool padded = sides && sides->domain().defined() && !free_[value_of(sides->rows())] &&
                          border_of(nest->statement, *sides);
      if (padded) {
        const ValueId value = value_of(sides->rows());
        if (!copies.contains(value)) {
          copies[value] =
              add_copy(routine_, value, "has zeros around it, which the caller's memory has not");
          steps.push_back(copying(routine_, value, copies[value]));
        }
        read_instead(*nest, value, copies[value]);
      }
      steps.push_back(std::move(step));
    }
    routine_.steps = std::move(steps);
  }

  void add_border(loops::Nest& nest) {
    Statement& statement = nest.statement;
    const auto sides = sides_of(nest);
    if (!sides || !sides->domain().defined() || !free_[value_of(sides->rows())]) return;
    const auto border = border_of(statement, *sides);
    if (!border) return;
    if (!add_border_of(*border, layout_of(value_of(sides->rows())))) return;
    statement.domain = composit::without_conjuncts(statement.domain, sides->domain());
  }

  // ---- pitch ------------------------------------------------------------------------------------

  void set_rows_apart() {
    for (const auto& [value, choice] : choices_) {
      if (!choice.apart) continue;
      layout_of(value).apart = *choice.apart;
    }
    for (const loops::Step& step : routine_.steps) {
      const auto* nest = std::get_if<loops::Nest>(&step);
      const auto sides = nest != nullptr ? sides_of(*nest) : std::nullopt;
      if (!sides) continue;
      const ValueId value = value_of(sides->rows());
      const composit::Type& type = routine_.values[value].type;
      if (!free_[value] || type.rank() < 2 || chosen_apart(value)) continue;
      Layout& layout = layout_of(value);
      if (layout.tiling.is_blocked()) continue;
      const size_t innermost = layout.tiling.loops().back().dimension;
      const auto item = static_cast<int64_t>(composit::item_size(type.dtype));
      // A line of what it may be rounded to.
      const bool rounds = may_round_ && type.dtype == composit::DType::float32;
      if (layout.after[innermost] == 0 && type.sizes[innermost] * item % kCriticalPitch == 0)
        layout.apart = kLineBytes / (rounds ? item / 2 : item);
    }
  }

  // Gives a value that is read at the index where another one is written rows of the same pitch, so
  // that one may be written over the other.
  bool hand_on_apart() {
    bool changed = false;
    for (const loops::Step& step : routine_.steps) {
      const auto* nest = std::get_if<loops::Nest>(&step);
      if (nest == nullptr) continue;
      const composit::Store& store = nest->statement.stores[0];
      for (const Expr& part : composit::parts_of({store.value}))
        if (part.kind() == ExprKind::load && are_same(part.arguments(), store.at))
          changed |= set_equally_apart(value_of(part), value_of(store));
    }
    return changed;
  }
  static bool are_same(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Expr& x, const Expr& y) { return x.same(y); });
  }
  bool set_equally_apart(ValueId a, ValueId b) {
    const composit::Type &type = routine_.values[a].type, &other = routine_.values[b].type;
    if (!free_[a] || !free_[b] || chosen_apart(a) || chosen_apart(b) || type.dtype != other.dtype ||
        type.sizes != other.sizes || (!layouts_.contains(a) && !layouts_.contains(b)))
      return false;
    Layout &x = layout_of(a), &y = layout_of(b);
    const int64_t apart = std::max(x.apart, y.apart);
    if (x.apart == y.apart || !(x.tiling == y.tiling) || has_border(x) || has_border(y))
      return false;
    x.apart = y.apart = apart;
    return true;
  }

  loops::Routine& routine_;
  std::map<ValueId, Choice> choices_;
  const bool may_round_;
  std::map<ValueId, ValueId> copied_from_;
  const std::function<bool(ValueId)> is_frozen_;
  std::vector<bool> free_;
  std::map<ValueId, std::map<Dimensions, int64_t>> votes_;
  std::map<ValueId, Layout> layouts_;
};

}  // namespace

Tilized tilize(loops::Program program, const std::function<bool(ValueId value)>& is_frozen,
               const std::map<ValueId, Choice>& choices, bool may_round) {
  Tilized result = Tilizer(program.functions.back(), is_frozen, choices, may_round).run();
  result.program = std::move(program);
  return result;
}

}  // namespace flashlight::mosaic
