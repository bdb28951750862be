#include "tests/frontends/torchscript/random_text.h"

#include <random>
#include <vector>

namespace flashlight::test {
namespace {

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  std::string text() {
    text_ = "def f(x: Tensor, y: Tensor, u: float, n: int):\n";
    indent_ = 4;
    line("a, b, c = x.clone(), y * 0.5, x * y");
    line("v, k, m = 0.5, 1, 0");
    line("xs = [a * 2]");
    for (int i = 0; i < 5; ++i) statement();
    line(kResults);
    return text_;
  }

 private:
  static constexpr const char* kResults = "return a, b, c, u, v, k, m, xs";

  int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  template <class... T>
  std::string one_of(T... choices) {
    const std::vector<std::string> all = {choices...};
    return all[static_cast<size_t>(below(static_cast<int>(all.size())))];
  }
  void line(const std::string& text) { text_ += std::string(indent_, ' ') + text + "\n"; }

  // Another number each time: LibTorch shares equal expressions, also where one of the results is
  // written in place.
  std::string fresh() { return std::to_string(0.5 + 0.001 * ++numbers_); }
  std::string tensor() { return one_of("a", "b", "c", "x", "xs[-1]", "xs[0]"); }
  std::string place() { return one_of("a", "b", "c"); }
  std::string number() { return one_of("u", "v", "0.25", "float(k)", "float(a[1])"); }
  std::string index() { return one_of("0", "1", "-1", "2"); }
  std::string condition() {
    return one_of("u > " + number(), "v < 0.3", "bool(" + tensor() + ".sum() > " + number() + ")",
                  "n > 2", "k % 2 == 0", "u > 0 and v < 1", "not (u < v) or n == 3",
                  "bool(" + tensor() + "[" + index() + "] > 0)");
  }

  int one_of_assignments() {
    const std::vector<int> cases = {0, 1, 2, 7, 8, 9};
    return cases[static_cast<size_t>(below(static_cast<int>(cases.size())))];
  }

  void simple() {
    // Composit refuses most of these where values decide: rarely.
    if (below(undecided_ ? 40 : 8) == 0) {
      // Another name. In a loop that wrote a view of the variable before (b[0] = 1; b = a),
      // LibTorch does not write to the tensor that it then is in the next trip, which Python does.
      if (below(2) == 0) return line(place() + " = " + place() + (viewed_ ? ".clone()" : ""));
      return line("xs.append(" + one_of("a * " + fresh(), "c") + ")");
    }
    // Nor what a loop both assigns and writes.
    const int choice = in_loops_ > 0 && below(4) > 0 ? one_of_assignments() : below(11);
    viewed_ = viewed_ || (in_loops_ > 0 && choice >= 4 && choice <= 6);
    switch (choice) {
      case 0:
        return line(place() + " = torch.tanh(" + tensor() + " * " + tensor() + " + " + number() +
                    ")");
      case 1:
        return line(place() + " = " + tensor() + " * " + fresh() + " - " + number() + " * " +
                    tensor());
      case 2:
        return line(place() + " = " + tensor() + " * " + fresh());
      case 3:
        return line(place() + " += 0.1 * " + tensor());
      case 4:
        return line(place() + "[" + index() + "] = " + one_of("u", "float(k)", tensor() + "[2]"));
      case 5:
        return line(place() + "[1:] *= 0.5");
      case 6:
        return line(place() + ".view(3)[" + index() + "] += 0.1");
      case 7:
        return line("u = math.sin(" + number() + " + " + number() + ")");
      case 8:
        return line("v = " +
                    one_of("u * v", "v - 0.25", "float(torch.tanh(b).sum())", "min(u, v)"));
      case 9:
        return line(one_of("k += 1", "m = k * 2 - m", "m += 1", "k = m"));
      default:
        return line(place() + ".mul_(0.5)");
    }
  }

  void block(int statements) {
    indent_ += 4;
    ++depth_;
    for (int i = 0; i < statements; ++i) statement();
    --depth_;
    indent_ -= 4;
  }

  void branch() {
    const bool outer = undecided_;
    undecided_ = true;
    line("if " + condition() + ":");
    block(1 + below(3));
    if (below(2) == 0) {
      line("elif " + condition() + ":");
      block(1 + below(2));
    }
    if (below(3) > 0) {
      line("else:");
      block(1 + below(3));
    }
    undecided_ = outer;
  }

  // At most as many trips as there are letters in the name of the counter.
  void loop() {
    const std::string counter = std::string("i") + std::to_string(loops_++);
    const bool counted = below(2) == 0;
    if (counted) {
      line("for " + counter + " in range(" + one_of("3", "n", "k", "2", "1, 4") + "):");
    } else {
      line(counter + " = 0");
      line("while " + counter + " < 3 and (" + condition() + "):");
    }
    ++in_loops_;
    indent_ += 4;
    if (!counted) line(counter + " += 1");
    if (below(3) == 0) line("u += " + one_of("0.1 * " + counter, "float(x[" + counter + " % 3])"));
    indent_ -= 4;
    block(1 + below(3));
    if (--in_loops_ == 0) viewed_ = false;
  }

  void statement() {
    const int choice = below(10);
    if (depth_ < 3 && choice < 3) return branch();
    if (depth_ < 2 && choice == 3) return loop();
    if (depth_ > 0 && choice == 4) {
      line("if " + condition() + ":");
      indent_ += 4;
      line(in_loops_ > 0 && below(4) > 0 ? one_of("break", "continue") : kResults);
      indent_ -= 4;
      return;
    }
    simple();
  }

  std::mt19937_64 random_;
  std::string text_;
  size_t indent_ = 0;
  int depth_ = 0, loops_ = 0, in_loops_ = 0, numbers_ = 0;
  bool undecided_ = false;
  bool viewed_ = false;  // a loop around has written a view
};

}  // namespace

std::string random_text(uint64_t seed) { return Writer(seed).text(); }

}  // namespace flashlight::test
