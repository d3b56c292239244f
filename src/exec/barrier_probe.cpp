#include "exec/barrier_probe.h"

#include <string>

#include "base/error.h"
#include "exec/runtime.h"
#include "stablehlo/builder.h"

namespace torch_pjrt {
namespace {

// How often the optimized form of a program mentions tanh that computes it twice, perhaps with a barrier between.
size_t count_tanh(bool has_barrier) {
  stablehlo::Builder b;
  const TensorType type{DType::kF32, {64, 64}};
  const stablehlo::Value x = b.parameter(type);
  // Behind a product, so that it is not fused away into a kernel of its user.
  const auto compute = [&](stablehlo::Value y) {
    return b.dot_general(b.tanh(y), y, {.lhs_contracting = {1}, .rhs_contracting = {0}});
  };
  const stablehlo::Value first = compute(x);
  const stablehlo::Value second = compute(has_barrier ? b.optimization_barrier({x, first})[0] : x);
  const pjrt::Executable program = Runtime::get().client().compile(b.finish({first, second}), {});
  const std::string code = program.optimized_program().code;
  size_t count = 0;
  for (size_t at = code.find("tanh"); at != std::string::npos; at = code.find("tanh", at + 1)) ++count;
  return count;
}

bool probe() {
  if (!Runtime::get().is_cpu()) return false;
  try {
    return count_tanh(/*has_barrier=*/true) <= count_tanh(/*has_barrier=*/false);
  } catch (const Error&) {
    // A plugin that does not show its programs.
    return false;
  }
}

}  // namespace

bool merges_across_barriers() {
  static const bool answer = probe();
  return answer;
}

}  // namespace torch_pjrt
