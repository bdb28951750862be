#include "tests/flashlight/scalar/random_program.h"

#include <random>

#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"

namespace flashlight::test {

using composit::LazyTensor;
using composit::LazyTensors;

template <>
LazyTensor number<LazyTensor>(double value) {
  return composit::full({}, value, composit::DType::float64);
}
template <>
LazyTensor least<LazyTensor>(const LazyTensor& x, const LazyTensor& y) {
  return minimum(x, y);
}
template <>
LazyTensor largest<LazyTensor>(const LazyTensor& x, const LazyTensor& y) {
  return maximum(x, y);
}

namespace {

// ---- random -------------------------------------------------------------------------------------

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  // A block that sees `visible` variables.
  Block block(size_t visible, size_t results, int depth) {
    Block block;
    for (size_t i = 0, count = 1 + below(4); i < count; ++i) {
      block.statements.push_back(statement(visible, depth));
      visible += made_by(block.statements.back());
    }
    for (size_t i = 0; i < results; ++i) block.results.push_back(recent(visible));
    return block;
  }

 private:
  size_t below(size_t count) { return random_() % count; }
  // The last variables more often.
  size_t recent(size_t visible) { return visible - 1 - std::min(below(visible), below(visible)); }
  static size_t made_by(const Statement& statement) {
    if (statement.kind < Kind::branch) return 1;
    return statement.kind == Kind::over_slots || statement.kind == Kind::repeat ? 3 : 2;
  }

  Statement statement(size_t visible, int depth) {
    Statement s{.kind = static_cast<Kind>(below(depth > 0 ? 12 : 8)),
                .a = recent(visible),
                .b = recent(visible),
                .value = std::uniform_real_distribution<double>(0.25, 1.5)(random_),
                .trips = static_cast<int64_t>(below(4)),
                .reverse = below(2) == 0};
    if (s.kind == Kind::branch)
      s.blocks = {block(visible, 2, depth - 1), block(visible, 2, depth - 1)};
    if (s.kind == Kind::repeat) s.blocks = {block(visible + 2, 3, depth - 1)};
    if (s.kind == Kind::until) s.blocks = {block(visible + 2, 2, depth - 1)};
    if (s.kind == Kind::over_slots) {
      s.blocks = {block(visible + 3, 3, depth - 1)};
      s.trips = kSlots;
    }
    return s;
  }

  std::mt19937_64 random_;
};

// ---- text ---------------------------------------------------------------------------------------

class Printer {
 public:
  std::string run(const Program& program) {
    write(program.block, kInputs, "");
    return "auto f = [](auto v0, auto v1, auto v2, auto xs) {\n" + text_ + "};\n";
  }

 private:
  static std::string v(size_t number) { return "v" + std::to_string(number); }

  void write(const Block& block, size_t visible, const std::string& indent) {
    for (const Statement& statement : block.statements)
      visible = write(statement, visible, indent + "  ");
    text_ += indent + "  return {";
    for (size_t i = 0; i < block.results.size(); ++i)
      text_ += (i == 0 ? "" : ", ") + v(block.results[i]);
    text_ += "};\n";
  }

  // The number of variables there are then.
  size_t write(const Statement& s, size_t visible, const std::string& indent) {
    const std::string a = v(s.a), b = v(s.b);
    const std::string simple[] = {std::to_string(s.value),
                                  a + " + " + b,
                                  a + " - " + b,
                                  a + " * " + b,
                                  "sin(" + a + ")",
                                  "tanh(" + a + ")",
                                  "min(" + a + ", " + b + ")",
                                  "max(" + a + ", " + b + ")"};
    if (s.kind < Kind::branch) {
      text_ += indent + "auto " + v(visible) + " = " + simple[static_cast<size_t>(s.kind)] + ";\n";
      return visible + 1;
    }
    const std::string made = v(visible) + ", " + v(visible + 1);
    if (s.kind == Kind::branch) {
      text_ += indent + "auto [" + made + "] = " + a + " < " + b + " ? [&] {\n";
      write(s.blocks[0], visible, indent);
      text_ += indent + "}() : [&] {\n";
      write(s.blocks[1], visible, indent);
      text_ += indent + "}();\n";
      return visible + 2;
    }
    const bool until = s.kind == Kind::until, slots = s.kind == Kind::over_slots;
    text_ += indent + "auto [" + made + (until ? "" : ", " + v(visible + 2)) + "] = " +
             (until   ? "until(" + std::to_string(s.value) + ", "
              : slots ? "over_slots(xs, "
                      : "repeat(") +
             std::to_string(s.trips) + (s.reverse && slots ? ", reversed" : "") + ", " + a + ", " +
             b + ", [&](auto " + v(visible) + ", auto " + v(visible + 1) +
             (slots ? ", auto " + v(visible + 2) : "") + ") {\n";
    write(s.blocks[0], visible + (slots ? 3 : 2), indent);
    text_ += indent + "});\n";
    return visible + (until ? 2 : 3);
  }

  std::string text_;
};

// ---- tensors ------------------------------------------------------------------------------------

class GraphRun {
 public:
  explicit GraphRun(LazyTensor sequence) : sequence_(std::move(sequence)) {}

  LazyTensors operator()(const Block& block, LazyTensors variables) const {
    for (const Statement& statement : block.statements)
      for (const LazyTensor& made : values(statement, variables)) variables.push_back(made);
    LazyTensors results;
    for (size_t result : block.results) results.push_back(variables[result]);
    return results;
  }

 private:
  LazyTensors values(const Statement& s, const LazyTensors& variables) const {
    const LazyTensor &a = variables[s.a], &b = variables[s.b];
    const auto branch = [&](size_t i) {
      return [&, i](const LazyTensors&) { return (*this)(s.blocks[i], variables); };
    };
    switch (s.kind) {
      case Kind::branch:
        return cond(a < b, branch(0), branch(1));
      case Kind::over_slots:
      case Kind::repeat:
        return scanned(s, variables);
      case Kind::until:
        return looped(s, variables);
      default:
        return {simple(s, a, b)};
    }
  }

  static LazyTensors with(LazyTensors variables, const LazyTensors& more) {
    variables.insert(variables.end(), more.begin(), more.end());
    return variables;
  }

  LazyTensors scanned(const Statement& s, const LazyTensors& variables) const {
    const composit::ScanBody body = [&](const LazyTensors& carried, const LazyTensors& slots) {
      const LazyTensors given = (*this)(s.blocks[0], with(with(variables, carried), slots));
      return composit::ScanStep{{given[0], given[1]}, {given[2]}};
    };
    const LazyTensors sequences =
        s.kind == Kind::over_slots ? LazyTensors{sequence_} : LazyTensors{};
    const composit::ScanStep step =
        composit::scan(body, {variables[s.a], variables[s.b]}, sequences,
                       {.reverse = s.reverse, .length = s.trips});
    return {step.carried[0], step.carried[1], sum(step.outputs[0])};
  }

  LazyTensors looped(const Statement& s, const LazyTensors& variables) const {
    const LazyTensor none = composit::full({}, 0, composit::DType::int64);
    LazyTensors end = composit::while_loop(
        [&](const LazyTensors& v) {
          return logical_and(v[2] < s.trips, logical_and(v[0]<s.value, v[0]> - s.value));
        },
        [&](const LazyTensors& v) {
          return with((*this)(s.blocks[0], with(variables, {v[0], v[1]})), {v[2] + 1});
        },
        {variables[s.a], variables[s.b], none}, {.limit = s.trips});
    end.pop_back();
    return end;
  }

  LazyTensor sequence_;
};

}  // namespace

Program random_program(uint64_t seed) { return {Maker(seed).block(kInputs, 2, 3)}; }

std::string print(const Program& program) { return Printer().run(program); }

LazyTensors run(const Program& program, const LazyTensors& inputs, const LazyTensor& sequence) {
  return GraphRun(sequence)(program.block, inputs);
}

}  // namespace flashlight::test
