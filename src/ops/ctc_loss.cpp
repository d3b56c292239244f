// Connectionist temporal classification (Graves et al., 2006): sums over all alignments of a target with a sequence, by
// one loop over the steps forward, for the loss, and one backward, for its gradient. All in logarithms.
//
// T steps, N sequences, C classes; a target of up to S labels has L = 2 S + 1 states: its labels with blanks around.
#include <algorithm>
#include <limits>

#include "ops/indexing.h"
#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// log(exp(x) + exp(y) + exp(z))
Expr log_sum(const Expr& x, const Expr& y, const Expr& z) {
  const Expr largest = maximum(maximum(x, y), z);
  const Expr shift = select(largest == -kInfinity, 0.0, largest);
  return log(exp(x - shift) + exp(y - shift) + exp(z - shift)) + shift;
}

struct Alignments {
  explicit Alignments(LoweringContext& ctx)
      : b(ctx.b),
        log_probs(b, ctx.tensor("log_probs")),
        steps(log_probs.value().dim(0)),
        batch(log_probs.value().dim(1)),
        input_lengths(read_lengths(ctx, "input_lengths")),
        target_lengths(read_lengths(ctx, "target_lengths")),
        targets(padded_targets(ctx)),
        states(2 * targets.value().dim(1) + 1),
        state_numbers(b, b.iota({DType::kS32, {batch, states}}, 1)),
        labels(labels_of_states(static_cast<double>(ctx.integer("blank", 0)))),
        label_probs(b, gather_along(b, log_probs, 2, all_labels())) {}

  // [T, N, L] s32: the label of every state, for each step.
  Value all_labels() const { return b.broadcast_in_dim(labels, {steps, batch, states}, {1, 2}); }

  // pred [N, L]: whether a path may come here from two states before, past a blank.
  Expr may_skip() const {
    const Expr before = shifted(labels, 2, -1.0);
    return (state_numbers > 1.0) & (labels != before);
  }
  // `x` [N, L] moved up by `by` states, or down when that is negative; `fill` comes in.
  Expr shifted(const Expr& x, int64_t by, double fill) const {
    const Value value = b.constant(fill, x.dtype());
    return {b, b.pad(x, value, {0, by}, {0, -by})};
  }
  Expr at_step(const Expr& sequence, Value step) const {
    const Value zero = b.constant(0, DType::kS32);
    return {b, b.reshape(b.dynamic_slice(sequence, {step, zero, zero}, {1, batch, states}), {batch, states})};
  }
  // The last states of a target: its last label and the blank after it. An empty target has the blank alone.
  Expr is_last_state() const {
    const Expr last = target_lengths * 2.0;
    return (state_numbers == last) | ((state_numbers == last - 1.0) & (target_lengths > 0.0));
  }
  // Runs `next` from one end of the steps to the other; [T, N, L] of all its values.
  template <typename Next>
  Value scan(bool from_the_end, const Next& next) const {
    const Value none = b.splat(-kInfinity, {log_probs.dtype(), {batch, states}});
    const Value all = b.splat(-kInfinity, {log_probs.dtype(), {steps, batch, states}});
    const Value zero = b.constant(0, DType::kS32);
    const auto condition = [&](const Values& state) {
      return Values{b.compare(Comparison::kLt, state[0], b.constant(steps, DType::kS32))};
    };
    return b.while_loop({zero, none, all}, condition, [&](const Values& state) {
      const Expr count(b, state[0]);
      const Expr step = from_the_end ? static_cast<double>(steps - 1) - count : count;
      const Value value = next(step, Expr(b, state[1]));
      return Values{count + 1.0, value, b.dynamic_update_slice(state[2], b.unsqueeze(value, 0), {step, zero, zero})};
    })[2];
  }

  Expr read_lengths(LoweringContext& ctx, std::string_view name) const {
    Value value;
    if (ctx.is_tensor(name)) {
      value = ctx.operand(name, DType::kS32);
    } else {
      value = b.dense(std::vector<int64_t>(ctx.ints(name)), {DType::kS32, {batch}});
    }
    return {b, b.reshape(value, {batch, 1})};
  }

  // [N, S] s32. Given one after the other, targets are looked up where they begin.
  Expr padded_targets(LoweringContext& ctx) const {
    const Expr given(b, ctx.operand("targets", DType::kS32));
    if (given.value().rank() == 2) return given;
    int64_t longest = given.value().numel();
    if (!ctx.is_tensor("target_lengths")) {
      longest = 0;
      for (const int64_t length : ctx.ints("target_lengths")) longest = std::max(longest, length);
    }
    const Expr starts = Expr(b, torch_pjrt::scan(b, Reduction::kAdd, target_lengths, 0)) - target_lengths;
    const Expr position = Expr(b, b.iota({DType::kS32, {batch, longest}}, 1)) + starts;
    return {b, take_rows(b, given, 0, position)};
  }

  Expr labels_of_states(double blank) const {
    if (targets.value().dim(1) == 0) return {b, b.splat(blank, {DType::kS32, {batch, 1}})};
    const Value spread = b.pad(targets, b.constant(blank, DType::kS32), {0, 1}, {0, 1}, {0, 1});
    // What pads a target is any number.
    const Expr last = Expr(b, spread).like(static_cast<double>(log_probs.value().dim(2) - 1));
    return minimum(maximum(Expr(b, spread), 0.0), last);
  }

  Builder& b;
  const Expr log_probs;  // [T, N, C]
  const int64_t steps, batch;
  const Expr input_lengths, target_lengths;  // [N, 1] s32
  const Expr targets;                        // [N, S] s32
  const int64_t states;
  const Expr state_numbers, labels;  // [N, L] s32
  const Expr label_probs;            // [T, N, L]
};

// (negative log likelihood [N], log alpha [N, T, L])
Values lower_ctc_loss(LoweringContext& ctx) {
  const Alignments paths(ctx);
  Builder& b = paths.b;
  const Expr may_skip = paths.may_skip();
  const Expr starts = (paths.state_numbers == 0.0) | ((paths.state_numbers == 1.0) & (paths.target_lengths > 0.0));
  const Value alphas = paths.scan(false, [&](const Expr& step, const Expr& alpha) {
    const Expr probs = paths.at_step(paths.label_probs, step);
    const Expr two_before = select(may_skip, paths.shifted(alpha, 2, -kInfinity), -kInfinity);
    const Expr moved = log_sum(alpha, paths.shifted(alpha, 1, -kInfinity), two_before) + probs;
    return select(step == 0.0, select(starts, probs, -kInfinity), moved).value();
  });
  // Log probability of all paths that end, at a sequence's last step, in one of the last states.
  const Value by_sequence = b.transpose(alphas, {1, 0, 2});
  const Expr last_step = maximum(paths.input_lengths - 1.0, 0.0);
  const Value index = b.broadcast_in_dim(last_step, {paths.batch, 1, paths.states}, {0, 1});
  const Expr ends(b, b.reshape(gather_along(b, by_sequence, 1, index), {paths.batch, paths.states}));
  const Expr candidates = select(paths.is_last_state(), ends, -kInfinity);
  const Expr largest(b, b.unsqueeze(b.reduce(Reduction::kMax, candidates, {1}), 1));
  const Expr shift = select(largest == -kInfinity, 0.0, largest);
  const Expr total(b, b.unsqueeze(b.reduce(Reduction::kAdd, exp(candidates - shift), {1}), 1));
  const Expr empty = select(paths.target_lengths == 0.0, total.like(0.0), total.like(-kInfinity));
  const Expr likelihood = select(paths.input_lengths == 0.0, empty, log(total) + shift);
  return {b.reshape(-likelihood, {paths.batch}), by_sequence};
}

Values lower_ctc_loss_backward(LoweringContext& ctx) {
  const Alignments paths(ctx);
  Builder& b = paths.b;
  const Dims per_sequence{1, paths.batch, 1};
  const Expr loss(b, b.reshape(ctx.tensor("neg_log_likelihood"), per_sequence));
  const Expr grad(b, b.reshape(ctx.operand("grad", paths.log_probs.dtype()), per_sequence));
  const Expr alphas(b, b.transpose(ctx.tensor("log_alpha"), {1, 0, 2}));
  const Expr skips_here = paths.may_skip(), is_last = paths.is_last_state();
  const Expr may_skip(b, b.pad(skips_here, b.constant(false, DType::kPred), {0, -2}, {0, 2}));
  const Expr betas(b, paths.scan(true, [&](const Expr& step, const Expr& beta) {
    const Expr probs = paths.at_step(paths.label_probs, step);
    const Expr two_after = select(may_skip, paths.shifted(beta, -2, -kInfinity), -kInfinity);
    const Expr moved = log_sum(beta, paths.shifted(beta, -1, -kInfinity), two_after) + probs;
    const Expr ends = step == paths.input_lengths - 1.0;
    return select(ends, select(is_last, probs, -kInfinity), select(step < paths.input_lengths, moved, -kInfinity))
        .value();
  }));
  // The share of paths through each state at each step, over the probability of its label there.
  const Expr joint = alphas + betas;
  const Expr shares = select(joint == -kInfinity, 0.0, exp(joint + loss - paths.label_probs));
  const Expr probs = exp(paths.log_probs);
  const Value spent =
      scatter_along(b, probs.like(0.0), 2, paths.all_labels(), shares, combine_update(b, Reduction::kAdd));
  const Expr usual = (probs - Expr(b, spent)) * grad;
  const Expr impossible = select(loss == kInfinity, usual.like(ctx.flag("zero_infinity") ? 0.0 : kNan), usual);
  const Expr step(b, b.iota({DType::kS32, paths.log_probs.dims()}, 0));
  const Expr length(b, b.reshape(paths.input_lengths, per_sequence));
  return {select(step < length, impossible, 0.0)};
}

}  // namespace

const OpTable& ctc_loss_ops() {
  static const OpTable table = {
      {.name = "aten::_ctc_loss", .lower = lower_ctc_loss},
      {.name = "aten::_ctc_loss_backward", .lower = lower_ctc_loss_backward},
  };
  return table;
}

}  // namespace torch_pjrt
