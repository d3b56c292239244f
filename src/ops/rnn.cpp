// Recurrent layers: one direction of one layer over a whole sequence as one loop, and its gradient as another, so that
// the size of a program does not depend on the length of the sequence. src/torch/rnn.cpp composes layers of them.
//
// T steps, batch B, hidden size H, size P of what a cell hands on (H, or smaller with a projection), G gate elements.
//
// Within a step half types are float32, as in PyTorch's fused cells: only what a step hands on or keeps is rounded. The
// gates of an LSTM cell cancel where they forget, and XLA's logistic of a half type is three roundings.
#include <algorithm>
#include <functional>

#include "ops/expression.h"
#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Value;
using stablehlo::Values;

// --- sequences [T, ...] ---------------------------------------------------------------------------------------------

Values step_start(Builder& b, Value sequence, Value step) {
  Values starts(sequence.dims().size(), b.constant(0, DType::kS32));
  starts[0] = step;
  return starts;
}

Expr read_step(Builder& b, Value sequence, Value step) {
  Dims sizes = sequence.dims();
  sizes[0] = 1;
  const Value slice = b.dynamic_slice(sequence, step_start(b, sequence, step), sizes);
  return {b, b.reshape(slice, Dims(sizes.begin() + 1, sizes.end()))};
}

Value write_step(Builder& b, Value sequence, Value step, const Expr& x) {
  const Value slice = b.unsqueeze(x.convert(sequence.dtype()), 0);
  return b.dynamic_update_slice(sequence, slice, step_start(b, sequence, step));
}

// `body` gets the step and the state, and returns the next one.
Values for_each_step(Builder& b, int64_t steps, bool from_the_end, const Values& state,
                     const std::function<Values(Value step, const Values& state)>& body) {
  Values initial{b.constant(0, DType::kS32)};
  initial.insert(initial.end(), state.begin(), state.end());
  const auto condition = [&](const Values& arguments) {
    return Values{b.compare(Comparison::kLt, arguments[0], b.constant(steps, DType::kS32))};
  };
  Values result = b.while_loop(initial, condition, [&](const Values& arguments) {
    const Expr count(b, arguments[0]);
    const Expr step = from_the_end ? static_cast<double>(steps - 1) - count : count;
    Values next = body(step, Values(arguments.begin() + 1, arguments.end()));
    next.insert(next.begin(), count + 1.0);
    return next;
  });
  result.erase(result.begin());
  return result;
}

// --- steps ----------------------------------------------------------------------------------------------------------

// Part `i` of `count` equal parts of the last dimension.
Expr part(const Expr& x, int64_t i, int64_t count) {
  const int64_t size = x.dims().back() / count;
  return {x.builder(), x.builder().slice_dim(x, x.value().rank() - 1, i * size, (i + 1) * size)};
}

Expr join(std::initializer_list<Expr> parts) {
  Values values;
  for (const Expr& x : parts) values.push_back(x);
  Builder& b = parts.begin()->builder();
  return {b, b.concatenate(values, values[0].rank() - 1)};
}

// What a loop takes besides its state; the same for all kinds of cell.
struct Layer {
  explicit Layer(LoweringContext& ctx)
      : b(ctx.b),
        kind(ctx.string("kind")),
        reverse(ctx.flag("reverse")),
        weight(ctx.tensor("weight_hh")),
        bias(ctx.optional_tensor("bias_hh")),
        projection(ctx.optional_tensor("weight_hr")),
        mask(ctx.optional_tensor("mask")),
        state_dtype(ctx.tensor("h0").dtype()),
        dtype(promote(accumulate_dtype(weight.dtype()), accumulate_dtype(state_dtype))) {}

  bool is_lstm() const { return kind == "lstm"; }
  bool is_gru() const { return kind == "gru"; }

  Expr wide(Value x) const { return {b, b.convert(x, dtype)}; }
  Expr read(Value sequence, Value step) const { return wide(read_step(b, sequence, step)); }
  // [B, N] times [N, M], or the transpose of [M, N].
  Expr times(const Expr& x, Value matrix, bool transposed) const {
    const Value lhs = x.convert(matrix.dtype());
    return wide(b.dot_general(lhs, matrix, {.lhs_contracting = {1}, .rhs_contracting = {transposed ? 1 : 0}},
                              accumulate_dtype(matrix.dtype())));
  }
  // Gates by the previous hidden state [B, P].
  Expr recurrent_gates(const Expr& h) const {
    const Expr gates = times(h, weight, true);
    return bias ? gates + wide(*bias) : gates;
  }
  // `next` where the sequence goes on at this step, `kept` in its padding.
  Expr masked(Value step, const Expr& next, const Expr& kept) const {
    return mask ? select(read_step(b, *mask, step), next, kept) : next;
  }
  Expr masked(Value step, const Expr& next) const { return masked(step, next, next.like(0.0)); }
  Expr as_state(const Expr& x) const { return x.convert(state_dtype); }

  Builder& b;
  const std::string kind;
  const bool reverse;
  const Value weight;  // [G, P]
  const std::optional<Value> bias, projection;
  const std::optional<Value> mask;  // pred [T, B, 1]
  const DType state_dtype;
  const DType dtype;  // in which a step computes
};

// --- forward --------------------------------------------------------------------------------------------------------

// gates [T, B, G] by the input, mask [T, B, 1] of where sequences have elements ->
// (hidden states [T, B, P], h_n, c_n, activations, cell states [T, B, H]); the last three as far as the kind has them.

Values run_plain(LoweringContext& ctx, const Layer& layer) {
  Builder& b = layer.b;
  const Value gates = ctx.tensor("gates"), h0 = ctx.tensor("h0");
  const int64_t steps = gates.dim(0);
  const Value states = b.splat(0.0, {h0.dtype(), {steps, h0.dim(0), h0.dim(1)}});
  Values result = for_each_step(b, steps, layer.reverse, {h0, states}, [&](Value step, const Values& state) {
    const Expr h = layer.wide(state[0]);
    const Expr sum = layer.read(gates, step) + layer.recurrent_gates(h);
    const Expr activated = layer.kind == "relu" ? maximum(sum, 0.0) : tanh(sum);
    const Expr next = layer.as_state(layer.masked(step, activated, h));
    return Values{next, write_step(b, state[1], step, next)};
  });
  return {result[1], result[0], Value(), Value(), Value()};
}

// Activations: reset, update, new, and the recurrent gates that the reset gate scales [T, B, 4 H].
Values run_gru(LoweringContext& ctx, const Layer& layer) {
  Builder& b = layer.b;
  const Value gates = ctx.tensor("gates"), h0 = ctx.tensor("h0");
  const int64_t steps = gates.dim(0), batch = h0.dim(0), hidden = h0.dim(1);
  const Value states = b.splat(0.0, {h0.dtype(), {steps, batch, hidden}});
  const Value saved = b.splat(0.0, {gates.dtype(), {steps, batch, 4 * hidden}});
  Values result = for_each_step(b, steps, layer.reverse, {h0, states, saved}, [&](Value step, const Values& state) {
    const Expr h = layer.wide(state[0]);
    const Expr x = layer.read(gates, step), y = layer.recurrent_gates(h);
    const Expr reset = logistic(part(x, 0, 3) + part(y, 0, 3));
    const Expr update = logistic(part(x, 1, 3) + part(y, 1, 3));
    const Expr scaled = part(y, 2, 3);
    const Expr fresh = tanh(part(x, 2, 3) + reset * scaled);
    const Expr next = layer.as_state(layer.masked(step, fresh + update * (h - fresh), h));
    return Values{next, write_step(b, state[1], step, next),
                  write_step(b, state[2], step, join({reset, update, fresh, scaled}))};
  });
  return {result[1], result[0], Value(), result[2], Value()};
}

// Activations: input, forget, cell and output gates [T, B, 4 H].
Values run_lstm(LoweringContext& ctx, const Layer& layer) {
  Builder& b = layer.b;
  const Value gates = ctx.tensor("gates"), h0 = ctx.tensor("h0"), c0 = ctx.tensor("c0");
  const int64_t steps = gates.dim(0), batch = h0.dim(0);
  const Value states = b.splat(0.0, {h0.dtype(), {steps, batch, h0.dim(1)}});
  const Value saved = b.splat(0.0, gates.type()), cells = b.splat(0.0, {c0.dtype(), {steps, batch, c0.dim(1)}});
  const Values initial{h0, c0, states, saved, cells};
  Values result = for_each_step(b, steps, layer.reverse, initial, [&](Value step, const Values& state) {
    const Expr h = layer.wide(state[0]), c = layer.wide(state[1]);
    const Expr sum = layer.read(gates, step) + layer.recurrent_gates(h);
    const Expr input = logistic(part(sum, 0, 4)), forget = logistic(part(sum, 1, 4));
    const Expr cell = tanh(part(sum, 2, 4)), output = logistic(part(sum, 3, 4));
    const Expr fresh = forget * c + input * cell;
    Expr out = output * tanh(fresh);
    if (layer.projection) out = layer.times(out, *layer.projection, true);
    const Expr next_h = layer.as_state(layer.masked(step, out, h));
    const Expr next_c = layer.as_state(layer.masked(step, fresh, c));
    return Values{next_h, next_c, write_step(b, state[2], step, next_h),
                  write_step(b, state[3], step, join({input, forget, cell, output})),
                  write_step(b, state[4], step, next_c)};
  });
  return {result[2], result[0], result[1], result[3], result[4]};
}

Values lower_rnn_scan(LoweringContext& ctx) {
  const Layer layer(ctx);
  if (layer.is_lstm()) return run_lstm(ctx, layer);
  return layer.is_gru() ? run_gru(ctx, layer) : run_plain(ctx, layer);
}

// --- backward -------------------------------------------------------------------------------------------------------

// The states before each step: `states` [T, B, *] moved by one, with the initial state first (last in reverse).
Value previous_states(const Layer& layer, Value states, Value initial) {
  Builder& b = layer.b;
  const int64_t steps = states.dim(0);
  const Value first = b.unsqueeze(initial, 0);
  if (layer.reverse) return b.concatenate({b.slice_dim(states, 0, 1, steps), first}, 0);
  return b.concatenate({first, b.slice_dim(states, 0, 0, steps - 1)}, 0);
}

// A gradient that may be missing, as zeros of `like`.
Value gradient_or_zeros(LoweringContext& ctx, std::string_view name, Value like) {
  return ctx.has(name) ? ctx.operand(name, like.dtype()) : ctx.b.splat(0.0, like.type());
}

Expr slope_of_logistic(const Expr& y) { return y * (1.0 - y); }
Expr slope_of_tanh(const Expr& y) { return 1.0 - y * y; }

// Results: gradients of gates, of the recurrent gates where they are others (GRU), of h0, of c0, and of what each cell
// handed to its projection's output [T, B, P].

Values differentiate_plain(LoweringContext& ctx, const Layer& layer) {
  Builder& b = layer.b;
  const Value states = ctx.tensor("states"), h0 = ctx.tensor("h0");
  const int64_t steps = states.dim(0);
  const Value grads = gradient_or_zeros(ctx, "grad_states", states);
  const Value last = layer.wide(gradient_or_zeros(ctx, "grad_h_n", h0));
  const Value sums = b.splat(0.0, {layer.weight.dtype(), states.dims()});
  Values result = for_each_step(b, steps, !layer.reverse, {last, sums}, [&](Value step, const Values& state) {
    const Expr grad = layer.read(grads, step) + Expr(b, state[0]);
    const Expr y = layer.read(states, step);
    const Expr through = layer.kind == "relu" ? select(y > 0.0, grad, 0.0) : grad * slope_of_tanh(y);
    const Expr sum = layer.masked(step, through);
    const Expr before = layer.masked(step, layer.times(sum, layer.weight, false), grad);
    return Values{before, write_step(b, state[1], step, sum)};
  });
  return {result[1], Value(), layer.as_state({b, result[0]}), Value(), Value()};
}

Values differentiate_gru(LoweringContext& ctx, const Layer& layer) {
  Builder& b = layer.b;
  const Value states = ctx.tensor("states"), h0 = ctx.tensor("h0"), saved = ctx.tensor("activations");
  const int64_t steps = states.dim(0);
  const Value grads = gradient_or_zeros(ctx, "grad_states", states);
  const Value last = layer.wide(gradient_or_zeros(ctx, "grad_h_n", h0));
  const Value before_steps = previous_states(layer, states, h0);
  const Value sums = b.splat(0.0, {saved.dtype(), {steps, h0.dim(0), 3 * h0.dim(1)}});
  Values result = for_each_step(b, steps, !layer.reverse, {last, sums, sums}, [&](Value step, const Values& state) {
    const Expr grad = layer.read(grads, step) + Expr(b, state[0]);
    const Expr h = layer.read(before_steps, step), activations = layer.read(saved, step);
    const Expr reset = part(activations, 0, 4), update = part(activations, 1, 4);
    const Expr fresh = part(activations, 2, 4), scaled = part(activations, 3, 4);
    const Expr by_fresh = grad * (1.0 - update) * slope_of_tanh(fresh);
    const Expr by_update = grad * (h - fresh) * slope_of_logistic(update);
    const Expr by_reset = by_fresh * scaled * slope_of_logistic(reset);
    const Expr by_input = layer.masked(step, join({by_reset, by_update, by_fresh}));
    const Expr by_hidden = layer.masked(step, join({by_reset, by_update, by_fresh * reset}));
    const Expr through = grad * update + layer.times(by_hidden, layer.weight, false);
    return Values{layer.masked(step, through, grad), write_step(b, state[1], step, by_input),
                  write_step(b, state[2], step, by_hidden)};
  });
  return {result[1], result[2], layer.as_state({b, result[0]}), Value(), Value()};
}

Values differentiate_lstm(LoweringContext& ctx, const Layer& layer) {
  Builder& b = layer.b;
  const Value states = ctx.tensor("states"), saved = ctx.tensor("activations"), cells = ctx.tensor("cells");
  const Value h0 = ctx.tensor("h0"), c0 = ctx.tensor("c0");
  const int64_t steps = states.dim(0);
  const Value grads = gradient_or_zeros(ctx, "grad_states", states);
  const Value before_steps = previous_states(layer, cells, c0);
  Values initial{layer.wide(gradient_or_zeros(ctx, "grad_h_n", h0)), layer.wide(gradient_or_zeros(ctx, "grad_c_n", c0)),
                 b.splat(0.0, saved.type())};
  if (layer.projection) initial.push_back(b.splat(0.0, states.type()));
  Values result = for_each_step(b, steps, !layer.reverse, initial, [&](Value step, const Values& state) {
    const Expr grad = layer.read(grads, step) + Expr(b, state[0]), later_cell(b, state[1]);
    const Expr out = layer.projection ? layer.times(grad, *layer.projection, false) : grad;
    const Expr activations = layer.read(saved, step), squashed = tanh(layer.read(cells, step));
    const Expr input = part(activations, 0, 4), forget = part(activations, 1, 4);
    const Expr cell = part(activations, 2, 4), output = part(activations, 3, 4);
    const Expr grad_cell = later_cell + out * output * slope_of_tanh(squashed);
    const Expr by_input = grad_cell * cell * slope_of_logistic(input);
    const Expr by_forget = grad_cell * layer.read(before_steps, step) * slope_of_logistic(forget);
    const Expr by_cell = grad_cell * input * slope_of_tanh(cell);
    const Expr by_output = out * squashed * slope_of_logistic(output);
    const Expr sum = layer.masked(step, join({by_input, by_forget, by_cell, by_output}));
    const Expr before = layer.masked(step, layer.times(sum, layer.weight, false), grad);
    Values next{before, layer.masked(step, grad_cell * forget, later_cell), write_step(b, state[2], step, sum)};
    if (layer.projection) next.push_back(write_step(b, state[3], step, layer.masked(step, grad)));
    return next;
  });
  return {result[2], Value(), layer.as_state({b, result[0]}), layer.as_state({b, result[1]}),
          layer.projection ? result[3] : Value()};
}

Values lower_rnn_scan_backward(LoweringContext& ctx) {
  const Layer layer(ctx);
  if (layer.is_lstm()) return differentiate_lstm(ctx, layer);
  return layer.is_gru() ? differentiate_gru(ctx, layer) : differentiate_plain(ctx, layer);
}

}  // namespace

const OpTable& rnn_ops() {
  static const OpTable table = {
      {.name = "xla::rnn_scan", .lower = lower_rnn_scan},
      {.name = "xla::rnn_scan_backward", .lower = lower_rnn_scan_backward},
  };
  return table;
}

}  // namespace torch_pjrt
