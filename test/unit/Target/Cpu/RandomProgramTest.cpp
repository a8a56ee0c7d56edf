//===- RandomProgramTest.cpp - Random programs against the interpreter ----===//
//
// Programs of random ops on values that are read several times, whose results
// partly have the names of arguments: what fusion, views, placement in parts of
// other tensors and overwriting in place have to get right together.
//
//===----------------------------------------------------------------------===//

#include "llvm/Support/FormatVariadic.h"

#include <random>

#include "CompareWithInterpreter.h"

using namespace espalier::test;
using llvm::formatv;

namespace {

using Shape = std::vector<int64_t>;

std::string typeOf(const Shape &shape) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f32>";
}

struct Value {
  std::string name;
  Shape shape;
};

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  std::string program() {
    for (int i = 0; i < 3; ++i)
      values.push_back({"%a" + std::to_string(i), {pick(2, 3), 4, 6}});
    size_t arguments = values.size();
    for (int i = 0; i < 14; ++i)
      addOp();
    std::string head = "func.func @first(", results, types, attributes;
    for (size_t i = 0; i < arguments; ++i)
      head += (i ? ", " : "") + values[i].name + ": " +
              typeOf(values[i].shape) + place("a" + std::to_string(i));
    std::vector<bool> taken(arguments, false);
    for (int i = 0; i < 5; ++i) {
      const Value &value = values[values.size() - 1 - pick(0, 7)];
      // The place of an argument of that shape, if there is one left.
      std::string name = "r" + std::to_string(i);
      for (size_t a = 0; a < arguments; ++a)
        if (!taken[a] && values[a].shape == value.shape && pick(0, 1)) {
          name = "a" + std::to_string(a);
          taken[a] = true;
          break;
        }
      results += (i ? ", " : "") + value.name;
      types += (i ? ", " : "") + typeOf(value.shape);
      attributes += (i ? ", " : "") + typeOf(value.shape) + place(name);
    }
    return head + ") -> (" + attributes + ") {\n" + body + "return " + results +
           " : " + types + "\n}\nfunc.func @update() {\n  return\n}\n";
  }

private:
  int64_t pick(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  }
  const Value &any() { return values[pick(0, int64_t(values.size()) - 1)]; }
  static std::string place(const std::string &name) {
    return formatv(" {{espalier.name = \"{0}\", espalier.role = \"x\"}", name);
  }
  void add(const Shape &shape, const std::string &op) {
    std::string name = "%v" + std::to_string(values.size());
    body += name + " = " + op + "\n";
    values.push_back({name, shape});
  }

  void addOp() {
    static constexpr void (Generator::*makers[])() = {
        &Generator::addMap,     &Generator::addMap,    &Generator::addMap,
        &Generator::addReduce,  &Generator::addMove,   &Generator::addSlice,
        &Generator::addConcat,  &Generator::addPads,   &Generator::addContract,
        &Generator::addSoftmax, &Generator::addReshape};
    (this->*makers[pick(0, std::size(makers) - 1)])();
  }

  /// One or two operands, the second perhaps a smaller one.
  void addMap() {
    Value a = any(), b = any();
    bool fits = a.shape.size() >= b.shape.size();
    for (size_t i = 0; fits && i < b.shape.size(); ++i) {
      int64_t size = b.shape[b.shape.size() - 1 - i];
      fits = size == 1 || size == a.shape[a.shape.size() - 1 - i];
    }
    if (!fits)
      b = a;
    const char *ops[] = {"arith.addf %u, %v", "arith.mulf %u, %v",
                         "arith.maximumf %u, %v", "arith.subf %v, %u"};
    add(a.shape,
        formatv(
            "nn.map {0}, {1} : ({2}, {3}) -> {2} {{\n^bb0(%u: f32, %v: f32):\n"
            "  %1 = {4} : f32\n  %2 = math.tanh %1 : f32\n"
            "  nn.yield %{5} : f32\n}",
            a.name, b.name, typeOf(a.shape), typeOf(b.shape), ops[pick(0, 3)],
            pick(1, 2)));
  }
  void addReduce() {
    Value a = any();
    Shape shape = a.shape;
    int64_t dim = pick(0, int64_t(shape.size()) - 1);
    shape[dim] = 1;
    add(shape, formatv("nn.reduce {0} {1} dims = [{2}] : {3} -> {4}",
                       pick(0, 1) ? "sum" : "max", a.name, dim, typeOf(a.shape),
                       typeOf(shape)));
  }
  void addMove() {
    Value a = any();
    std::vector<int64_t> order(a.shape.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = int64_t(i);
    std::shuffle(order.begin(), order.end(), random);
    Shape shape;
    std::string text;
    for (int64_t dim : order) {
      shape.push_back(a.shape[dim]);
      text += (text.empty() ? "" : ", ") + std::to_string(dim);
    }
    add(shape, formatv("nn.transpose {0} [{1}] : {2} -> {3}", a.name, text,
                       typeOf(a.shape), typeOf(shape)));
  }
  void addReshape() {
    Value a = any();
    Shape shape;
    if (a.shape.size() < 3) {
      shape = a.shape;
      shape.insert(shape.begin(), 1);
    } else {
      shape = {a.shape[0] * a.shape[1]};
      shape.insert(shape.end(), a.shape.begin() + 2, a.shape.end());
    }
    add(shape, formatv("nn.reshape {0} : {1} -> {2}", a.name, typeOf(a.shape),
                       typeOf(shape)));
  }
  std::string zeros(size_t rank, int64_t dim, int64_t value) {
    std::string text;
    for (size_t i = 0; i < rank; ++i)
      text += (i ? ", " : "") +
              std::to_string(int64_t(i) == dim ? value : int64_t{0});
    return text;
  }
  void addSlice() {
    Value a = any();
    Shape shape = a.shape;
    int64_t dim = pick(0, int64_t(shape.size()) - 1);
    int64_t offset = pick(0, shape[dim] - 1);
    shape[dim] = pick(1, shape[dim] - offset);
    std::string ones = "1";
    for (size_t i = 1; i < shape.size(); ++i)
      ones += ", 1";
    add(shape,
        formatv("nn.slice {0} offsets = [{1}] strides = [{2}] : {3} -> {4}",
                a.name, zeros(shape.size(), dim, offset), ones, typeOf(a.shape),
                typeOf(shape)));
  }
  void addConcat() {
    Value a = any();
    Shape shape = a.shape;
    int64_t dim = pick(0, int64_t(shape.size()) - 1);
    shape[dim] *= 2;
    // One of the two computed for this alone.
    add(a.shape, formatv("nn.map {0} : ({1}) -> {1} {{\n^bb0(%u: f32):\n"
                         "  %1 = math.exp %u : f32\n  nn.yield %1 : f32\n}",
                         a.name, typeOf(a.shape)));
    add(shape, formatv("nn.concat {0}, {1} dim = {2} : ({3}, {3}) -> {4}",
                       values.back().name, a.name, dim, typeOf(a.shape),
                       typeOf(shape)));
  }
  void addPads() {
    Value a = any();
    Shape shape = a.shape;
    int64_t dim = pick(0, int64_t(shape.size()) - 1), size = shape[dim];
    shape[dim] *= 2;
    for (int part = 0; part < 2; ++part)
      add(shape,
          formatv("nn.pad {0} low = [{1}] high = [{2}] value = 0.0 : f32 : "
                  "{3} -> {4}",
                  a.name, zeros(shape.size(), dim, part * size),
                  zeros(shape.size(), dim, (1 - part) * size), typeOf(a.shape),
                  typeOf(shape)));
    add(shape,
        formatv("nn.map {0}, {1} : ({2}, {2}) -> {2} {{\n"
                "^bb0(%u: f32, %v: f32):\n  %1 = arith.addf %u, %v : f32\n"
                "  nn.yield %1 : f32\n}",
                values[values.size() - 2].name, values.back().name,
                typeOf(shape)));
  }
  void addContract() {
    Value a = any();
    static const char *const equations[] = {"", "a,a->", "ab,cb->ca",
                                            "abc,adc->dab", "abcd,aecd->bea"};
    if (a.shape.size() > 4)
      return;
    Shape shape;
    const Shape &s = a.shape;
    switch (s.size()) {
    case 2:
      shape = {s[0], s[0]};
      break;
    case 3:
      shape = {s[1], s[0], s[1]};
      break;
    case 4:
      shape = {s[1], s[1], s[0]};
      break;
    default:
      break;
    }
    if (s.size() < 2)
      return;
    add(shape, formatv("nn.contract \"{0}\" {1}, {1} : {2}, {2} -> {3}",
                       equations[s.size()], a.name, typeOf(s), typeOf(shape)));
  }
  void addSoftmax() {
    Value a = any();
    add(a.shape,
        formatv("nn.softmax {0} : {1} -> {1}", a.name, typeOf(a.shape)));
  }

  std::mt19937 random;
  std::vector<Value> values;
  std::string body;
};

} // namespace

TEST(RandomProgram, ComputesWhatTheInterpreterDoes) {
  for (unsigned seed = 0; seed < 120 && !HasFailure(); ++seed) {
    std::string text = Generator(seed).program();
    SCOPED_TRACE(text);
    compareProgram(text, "first", {.tolerance = 3e-5, .scale = 0.5});
  }
}
