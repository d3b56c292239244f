// Fused optimizer steps and gradient scaling: the arithmetic of ATen's fused CPU kernels, one node for all parameters.
//
// Learning rates, decays and bias corrections are scalars in float64, as there; each becomes the parameter's compute
// dtype (float32 for the 16-bit floats) where it meets a tensor.
#include <algorithm>
#include <optional>

#include "ops/cast.h"
#include "ops/elementwise.h"
#include "ops/host_call.h"
#include "ops/host_kernel.h"
#include "ops/reduction.h"

namespace torch_pjrt {
namespace {

using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

// A float argument, or a tensor of one element, as a float64 scalar.
Expr scalar(LoweringContext& ctx, std::string_view name) {
  return {ctx.b, ctx.b.reshape(ctx.operand(name, DType::kF64), {})};
}

// The step of parameter `i` as a float64 scalar.
Expr step_of(LoweringContext& ctx, size_t i) {
  return {ctx.b, ctx.b.reshape(ctx.operand("state_steps", i, DType::kF64), {})};
}

void decline_out(const LoweringContext& ctx) {
  if (ctx.overload().ends_with("out")) ctx.decline("out= form");
}

// Reads, for one parameter, items of the list arguments in the compute dtype, and writes new values back in their own
// dtype.
class ParameterStep {
 public:
  ParameterStep(LoweringContext& ctx, size_t i)
      : ctx_(ctx), i_(i), compute_(wide(*ctx.tensor_dtype("self", i))), grad_(ctx.b, read("grads")) {
    if (const auto scale = ctx.optional_tensor("grad_scale")) {
      grad_ = grad_ / number(Expr(ctx.b, ctx.b.reshape(*scale, {})));
    }
  }

  Expr read(std::string_view list) const { return {ctx_.b, ctx_.operand(list, i_, compute_)}; }
  // A float64 scalar in the compute dtype.
  Expr number(const Expr& value) const { return value.convert(compute_); }
  // The gradient without its scale.
  const Expr& unscaled_grad() const { return grad_; }
  // The gradient to descend: negated when maximizing.
  Expr descent_grad() const { return ctx_.flag("maximize") ? -grad_ : grad_; }

  // `result`, or the old value when a non-finite gradient was found.
  Value write(std::string_view list, const Expr& result) const {
    const Expr old(ctx_.b, ctx_.operand(list, i_, *ctx_.tensor_dtype(list, i_)));
    const Expr updated = result.convert(old.dtype());
    const auto found = ctx_.optional_tensor("found_inf");
    if (!found) return updated;
    return select(Expr(ctx_.b, ctx_.b.reshape(*found, {})) == 1.0, old, updated);
  }

 private:
  LoweringContext& ctx_;
  size_t i_;
  DType compute_;
  Expr grad_;
};

// New values of several mutated lists, in the order of the schema.
class ListResults {
 public:
  explicit ListResults(size_t lists) : lists_(lists) {}
  void add(size_t list, Value value) { lists_[list].push_back(value); }
  Values flatten() const {
    Values all;
    for (const Values& list : lists_) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

 private:
  std::vector<Values> lists_;
};

// A step as one call of ATen's kernel, which updates everything in place and reads each element once; XLA makes a loop
// for each updated tensor. The call depends on all gradients, and so on all that reads a parameter before: XLA, which
// orders nothing else, would copy each parameter whose old value goes into a gradient.
class HostStep {
 public:
  HostStep(LoweringContext& ctx) : ctx_(ctx), call_(ctx.b, concat(ctx.name(), "_")) {}

  static bool is_preferred(LoweringContext& ctx, std::initializer_list<std::string_view> lists) {
    if (ctx.size("self") == 0 || ctx.has("grad_scale") || ctx.has("found_inf")) return false;
    const DType dtype = *ctx.tensor_dtype("self", 0);
    for (const std::string_view list : lists) {
      for (size_t i = 0; i < ctx.size(list); ++i) {
        if (ctx.tensor_dtype(list, i) != dtype) return false;
      }
    }
    int64_t num_elements = 0;
    for (const Value& x : ctx.tensors("self")) num_elements += x.numel();
    return prefers_host_optimizer(dtype, num_elements);
  }

  HostStep& updated(std::string_view list) {
    updated_.push_back(list);
    call_.list(ctx_.size(list));
    for (const Value& x : ctx_.tensors(list)) call_.updated(x);
    return *this;
  }
  HostStep& read(std::string_view list) {
    call_.list(ctx_.size(list));
    for (const Value& x : ctx_.tensors(list)) call_.tensor(x);
    return *this;
  }
  HostStep& number(std::string_view name) {
    call_.number(ctx_.b.reshape(ctx_.operand(name, DType::kF64), {}));
    return *this;
  }
  HostStep& flag(std::string_view name) {
    call_.attribute(ctx_.flag(name));
    return *this;
  }

  // The items of these lists, among which are all that are updated, in the same order.
  Values emit(std::initializer_list<std::string_view> returned) {
    const Values updated = call_.none().none().emit();  // neither scale nor found_inf
    Values all;
    auto next = updated.begin();
    for (const std::string_view list : returned) {
      const bool is_updated = std::find(updated_.begin(), updated_.end(), list) != updated_.end();
      const Values same = is_updated ? Values() : ctx_.tensors(list);
      const auto begin = is_updated ? next : same.begin();
      const auto end = begin + static_cast<std::ptrdiff_t>(ctx_.size(list));
      all.insert(all.end(), begin, end);
      if (is_updated) next = end;
    }
    return all;
  }

 private:
  LoweringContext& ctx_;
  HostCall call_;
  std::vector<std::string_view> updated_;
};

Values host_sgd(LoweringContext& ctx) {
  HostStep step(ctx);
  step.updated("self").read("grads").updated("momentum_buffer_list");
  step.number("weight_decay").number("momentum").number("lr").number("dampening");
  step.flag("nesterov").flag("maximize").flag("is_first_step");
  return step.emit({"self", "grads", "momentum_buffer_list"});
}

Values lower_fused_sgd(LoweringContext& ctx) {
  decline_out(ctx);
  if (HostStep::is_preferred(ctx, {"self", "grads", "momentum_buffer_list"})) return host_sgd(ctx);
  const bool has_momentum = ctx.size("momentum_buffer_list") > 0;
  const Expr lr = scalar(ctx, "lr");
  const Expr weight_decay = scalar(ctx, "weight_decay");
  const Expr momentum = scalar(ctx, "momentum");
  const Expr kept_grad = 1.0 - scalar(ctx, "dampening");
  ListResults results(3);
  for (size_t i = 0; i < ctx.size("self"); ++i) {
    const ParameterStep step(ctx, i);
    const Expr param = step.read("self");
    Expr grad = step.descent_grad() + param * step.number(weight_decay);
    if (has_momentum) {
      const Expr buffer = ctx.flag("is_first_step") ? grad
                                                    : step.read("momentum_buffer_list") * step.number(momentum) +
                                                          grad * step.number(kept_grad);
      grad = ctx.flag("nesterov") ? grad + buffer * step.number(momentum) : buffer;
      results.add(2, step.write("momentum_buffer_list", buffer));
    }
    results.add(0, step.write("self", param - step.number(lr) * grad));
    results.add(1, step.write("grads", step.unscaled_grad()));
  }
  return results.flatten();
}

Values host_adam(LoweringContext& ctx) {
  HostStep step(ctx);
  step.updated("self").read("grads").updated("exp_avgs").updated("exp_avg_sqs");
  if (ctx.flag("amsgrad")) {
    step.updated("max_exp_avg_sqs");
  } else {
    step.read("max_exp_avg_sqs");
  }
  step.read("state_steps").number("lr").number("beta1").number("beta2").number("weight_decay").number("eps");
  step.flag("amsgrad").flag("maximize");
  return step.emit({"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"});
}

// Adam, and AdamW, whose weight decay shrinks the parameter instead of joining the gradient.
Values lower_fused_adam(LoweringContext& ctx) {
  decline_out(ctx);
  if (HostStep::is_preferred(ctx, {"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"})) {
    return host_adam(ctx);
  }
  const bool is_adamw = ctx.name() == "aten::_fused_adamw";
  const bool amsgrad = ctx.flag("amsgrad");
  const Expr lr = scalar(ctx, "lr");
  const Expr beta1 = scalar(ctx, "beta1");
  const Expr beta2 = scalar(ctx, "beta2");
  const Expr weight_decay = scalar(ctx, "weight_decay");
  const Expr eps = scalar(ctx, "eps");
  ListResults results(5);
  for (size_t i = 0; i < ctx.size("self"); ++i) {
    const ParameterStep step(ctx, i);
    const Expr count = step_of(ctx, i);
    const Expr step_size = lr / (1.0 - power(beta1, count));
    const Expr correction2_sqrt = sqrt(1.0 - power(beta2, count));
    Expr param = step.read("self");
    Expr grad = step.descent_grad();
    if (is_adamw) {
      param = param * step.number(1.0 - lr * weight_decay);
    } else {
      grad = grad + param * step.number(weight_decay);
    }
    const Expr exp_avg = lerp(step.read("exp_avgs"), grad, step.number(1.0 - beta1));
    const Expr exp_avg_sq = step.number(beta2) * step.read("exp_avg_sqs") + step.number(1.0 - beta2) * grad * grad;
    Expr second_moment = exp_avg_sq;
    if (amsgrad) {
      second_moment = maximum(step.read("max_exp_avg_sqs"), exp_avg_sq);
      results.add(4, step.write("max_exp_avg_sqs", second_moment));
    }
    const Expr denominator = sqrt(second_moment) / step.number(correction2_sqrt) + step.number(eps);
    results.add(0, step.write("self", param - step.number(step_size) * exp_avg / denominator));
    results.add(1, step.write("grads", step.unscaled_grad()));
    results.add(2, step.write("exp_avgs", exp_avg));
    results.add(3, step.write("exp_avg_sqs", exp_avg_sq));
  }
  return results.flatten();
}

Values lower_fused_adagrad(LoweringContext& ctx) {
  decline_out(ctx);
  const Expr lr = scalar(ctx, "lr");
  const Expr lr_decay = scalar(ctx, "lr_decay");
  const Expr weight_decay = scalar(ctx, "weight_decay");
  const Expr eps = scalar(ctx, "eps");
  // The overload with a number as lr declares its steps mutated, though the kernel only reads them.
  const bool returns_steps = ctx.overload() != "tensor_lr";
  ListResults results(4);
  for (size_t i = 0; i < ctx.size("self"); ++i) {
    const ParameterStep step(ctx, i);
    const Expr param = step.read("self");
    const Expr decayed_lr = lr / (1.0 + (step_of(ctx, i) - 1.0) * lr_decay);
    const Expr grad = step.descent_grad() + param * step.number(weight_decay);
    const Expr state_sum = step.read("state_sums") + grad * grad;
    const Expr update = step.number(decayed_lr) * grad / (sqrt(state_sum) + step.number(eps));
    results.add(0, step.write("self", param - update));
    results.add(1, step.write("grads", step.unscaled_grad()));
    results.add(2, step.write("state_sums", state_sum));
    if (returns_steps) results.add(3, ctx.operand("state_steps", i, *ctx.tensor_dtype("state_steps", i)));
  }
  return results.flatten();
}

// GradScaler: scales the gradients by inv_scale and sets found_inf to 1 when any of them is not finite.
Values lower_unscale(LoweringContext& ctx) {
  decline_out(ctx);
  const Value inverse_scale = ctx.tensor("inv_scale");
  Expr found(ctx.b, ctx.b.reshape(ctx.tensor("found_inf"), {}));
  Values results;
  for (const Value& grad : ctx.tensors("self")) {
    const Expr x(ctx.b, ctx.b.convert(grad, wide(grad.dtype())));
    const Expr scale(ctx.b, ctx.b.convert(ctx.b.reshape(inverse_scale, {}), x.dtype()));
    const Expr non_finite(ctx.b, ctx.b.logical_not(ctx.b.is_finite(x)));
    const Expr any = ReductionDims(x.dims()).reduce(Reduction::kOr, non_finite);
    found = select(any, 1.0, found);
    results.push_back((x * scale).convert(grad.dtype()));
  }
  results.push_back(ctx.b.reshape(found, ctx.tensor("found_inf").dims()));
  return results;
}

// GradScaler: shrinks the scale after a non-finite gradient, grows it after `growth_interval` steps without one.
Values lower_update_scale(LoweringContext& ctx) {
  decline_out(ctx);
  const Expr scale(ctx.b, ctx.tensor("self"));
  const Expr tracker(ctx.b, ctx.tensor("growth_tracker"));
  const Expr failed = Expr(ctx.b, ctx.b.reshape(ctx.tensor("found_inf"), scale.dims())) != 0.0;
  const Expr successful = tracker + 1.0;
  const Expr grows = successful == static_cast<double>(ctx.integer("growth_interval"));
  const Expr grown = scale * Expr(ctx.b, ctx.operand("scale_growth_factor", scale.dtype()));
  const Expr shrunk = scale * Expr(ctx.b, ctx.operand("scale_backoff_factor", scale.dtype()));
  const Expr can_grow = grows & Expr(ctx.b, ctx.b.is_finite(grown));
  return {select(failed, shrunk, select(can_grow, grown, scale)), select(failed | grows, 0.0, successful)};
}

}  // namespace

const OpTable& optimizer_ops() {
  static const OpTable table = {
      {"aten::_fused_sgd", lower_fused_sgd},
      {"aten::_fused_adam", lower_fused_adam},
      {"aten::_fused_adamw", lower_fused_adam},
      {"aten::_fused_adagrad", lower_fused_adagrad},
      {"aten::_amp_foreach_non_finite_check_and_unscale", lower_unscale},
      {"aten::_amp_update_scale", lower_update_scale},
  };
  return table;
}

}  // namespace torch_pjrt
