// nn.LSTM, nn.GRU and nn.RNN on `xla`: PyTorch composes them of operators for every step, which are as many times
// compiled. Here one operator (ops/rnn.cpp) runs one direction of one layer over a whole sequence.

#include <ATen/FuncTorchTLS.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <string>

#include "torch/storage.h"

namespace torch_pjrt {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

MaybeTensor maybe(const Tensor& tensor) { return tensor.defined() ? MaybeTensor(tensor) : std::nullopt; }

// One direction of one layer. Shapes are those of ops/rnn.cpp.
struct Scan {
  Tensor gates, h0, c0, weight_hh, bias_hh, weight_hr, mask;
  std::string kind;
  bool reverse;

  bool is_lstm() const { return kind == "lstm"; }
};

using ScanResults = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

ScanResults call_scan(const Scan& scan) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("xla::rnn_scan", "")
          .typed<ScanResults(const Tensor&, const Tensor&, const MaybeTensor&, const Tensor&, const MaybeTensor&,
                             const MaybeTensor&, const MaybeTensor&, c10::string_view, bool)>();
  return op.call(scan.gates, scan.h0, maybe(scan.c0), scan.weight_hh, maybe(scan.bias_hh), maybe(scan.weight_hr),
                 maybe(scan.mask), scan.kind, scan.reverse);
}

struct ScanState {
  Tensor states, activations, cells;
};

ScanResults call_scan_backward(const Scan& scan, const ScanState& state, const variable_list& grads) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("xla::rnn_scan_backward", "")
          .typed<ScanResults(const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, const Tensor&,
                             const MaybeTensor&, const MaybeTensor&, const Tensor&, const MaybeTensor&, const Tensor&,
                             const MaybeTensor&, const MaybeTensor&, c10::string_view, bool)>();
  const Tensor grad_c = scan.is_lstm() ? grads[2] : Tensor();
  return op.call(maybe(grads[0]), maybe(grads[1]), maybe(grad_c), state.states, maybe(state.activations),
                 maybe(state.cells), scan.h0, maybe(scan.c0), scan.weight_hh, maybe(scan.weight_hr), maybe(scan.mask),
                 scan.kind, scan.reverse);
}

// --- the same by differentiable operators, for gradients of gradients -----------------------------------------------

struct Step {
  Tensor h, c;
};

Step unrolled_step(const Scan& scan, const Tensor& x, const Step& before) {
  const Tensor y = at::linear(before.h.to(x.scalar_type()), scan.weight_hh, maybe(scan.bias_hh));
  if (scan.is_lstm()) {
    const auto gates = at::chunk(x + y, 4, -1);
    const Tensor c = gates[1].sigmoid() * before.c + gates[0].sigmoid() * gates[2].tanh();
    const Tensor h = gates[3].sigmoid() * c.tanh();
    return {scan.weight_hr.defined() ? at::linear(h.to(x.scalar_type()), scan.weight_hr) : h, c};
  }
  if (scan.kind == "gru") {
    const auto by_input = at::chunk(x, 3, -1), by_hidden = at::chunk(y, 3, -1);
    const Tensor reset = (by_input[0] + by_hidden[0]).sigmoid(), update = (by_input[1] + by_hidden[1]).sigmoid();
    const Tensor fresh = (by_input[2] + reset * by_hidden[2]).tanh();
    return {fresh + update * (before.h - fresh), {}};
  }
  return {scan.kind == "relu" ? (x + y).relu() : (x + y).tanh(), {}};
}

variable_list unrolled(const Scan& scan) {
  const int64_t steps = scan.gates.size(0);
  std::vector<Tensor> states(static_cast<size_t>(steps));
  Step step{scan.h0, scan.c0};
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = scan.reverse ? steps - 1 - i : i;
    Step next = unrolled_step(scan, scan.gates.select(0, t), step);
    next.h = next.h.to(scan.h0.scalar_type());
    if (scan.mask.defined()) {
      const Tensor goes_on = scan.mask.select(0, t);
      next.h = at::where(goes_on, next.h, step.h);
      if (scan.is_lstm()) next.c = at::where(goes_on, next.c, step.c);
    }
    step = next;
    states[static_cast<size_t>(t)] = step.h;
  }
  variable_list results{at::stack(states), step.h};
  if (scan.is_lstm()) results.push_back(step.c);
  return results;
}

// Of gates, h0, c0, weight_hh, bias_hh, weight_hr.
using Gradients = std::array<Tensor, 6>;

Gradients differentiable_gradients(const Scan& scan, const variable_list& grads) {
  const std::array<Tensor, 6> inputs{scan.gates, scan.h0, scan.c0, scan.weight_hh, scan.bias_hh, scan.weight_hr};
  variable_list wanted, outputs, weights;
  for (const Tensor& input : inputs) {
    if (input.defined() && input.requires_grad()) wanted.push_back(input);
  }
  const variable_list results = unrolled(scan);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!grads[i].defined() || !results[i].requires_grad()) continue;
    outputs.push_back(results[i]);
    weights.push_back(grads[i]);
  }
  const variable_list found = torch::autograd::grad(outputs, wanted, weights, /*retain_graph=*/true,
                                                    /*create_graph=*/true, /*allow_unused=*/true);
  Gradients gradients;
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].requires_grad()) gradients[i] = found[next++];
  }
  return gradients;
}

// --- gradients by the operator ---------------------------------------------------------------------------------------

// [T, B, M], [T, B, N] -> [M, N]: the gradient of a weight that every step used.
Tensor weight_gradient(const Tensor& grad, const Tensor& input) {
  return at::mm(grad.flatten(0, 1).t(), input.flatten(0, 1).to(grad.scalar_type()));
}

Tensor before_steps(const Scan& scan, const Tensor& states) {
  const Tensor first = scan.h0.unsqueeze(0);
  const int64_t others = states.size(0) - 1;
  return scan.reverse ? at::cat({states.narrow(0, 1, others), first}) : at::cat({first, states.narrow(0, 0, others)});
}

Gradients scan_gradients(const Scan& scan, const ScanState& state, const variable_list& grads) {
  const auto [by_gates, by_own_recurrent, by_h0, by_c0, by_projected] = call_scan_backward(scan, state, grads);
  const Tensor& by_recurrent = by_own_recurrent.defined() ? by_own_recurrent : by_gates;
  Gradients gradients{by_gates, by_h0, by_c0, weight_gradient(by_recurrent, before_steps(scan, state.states)), {}, {}};
  if (scan.bias_hh.defined()) gradients[4] = by_recurrent.sum({0, 1});
  if (scan.weight_hr.defined()) {
    const Tensor outputs = at::chunk(state.activations, 4, -1)[3] * state.cells.tanh();
    gradients[5] = weight_gradient(by_projected.to(scan.weight_hr.scalar_type()), outputs);
  }
  return gradients;
}

struct ScanFunction : torch::autograd::Function<ScanFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& gates, const Tensor& h0, const MaybeTensor& c0,
                               const Tensor& weight_hh, const MaybeTensor& bias_hh, const MaybeTensor& weight_hr,
                               const MaybeTensor& mask, const std::string& kind, bool reverse) {
    const auto plain = [](const MaybeTensor& tensor) { return tensor ? *tensor : Tensor(); };
    const Scan scan{gates, h0, plain(c0), weight_hh, plain(bias_hh), plain(weight_hr), plain(mask), kind, reverse};
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto [states, h_n, c_n, activations, cells] = call_scan(scan);
    ctx->set_materialize_grads(false);
    ctx->save_for_backward(
        {gates, h0, scan.c0, weight_hh, scan.bias_hh, scan.weight_hr, scan.mask, states, activations, cells});
    ctx->saved_data["kind"] = kind;
    ctx->saved_data["reverse"] = reverse;
    if (scan.is_lstm()) return {states, h_n, c_n};
    return {states, h_n};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Scan scan{saved[0],
                    saved[1],
                    saved[2],
                    saved[3],
                    saved[4],
                    saved[5],
                    saved[6],
                    ctx->saved_data["kind"].toStringRef(),
                    ctx->saved_data["reverse"].toBool()};
    const bool is_differentiable = at::GradMode::is_enabled();
    Gradients found = is_differentiable ? differentiable_gradients(scan, grads)
                                        : scan_gradients(scan, {saved[7], saved[8], saved[9]}, grads);
    variable_list results(9);
    for (size_t i = 0; i < found.size(); ++i) results[i] = std::move(found[i]);
    return results;
  }
};

// --- layers ---------------------------------------------------------------------------------------------------------

// Sequences of different lengths, the longest first: elements [N, *] that are there, step after step, and how many at
// each step. Padded, they are [T, B, *].
class Packing {
 public:
  Packing(const Tensor& batch_sizes, c10::Device device) : steps(batch_sizes.size(0)) {
    const Tensor counts = batch_sizes.to(at::kLong).contiguous();
    const auto* sizes = counts.const_data_ptr<int64_t>();
    batch = sizes[0];
    is_full_ = sizes[steps - 1] == batch;
    if (is_full_) return;
    std::vector<int64_t> to_padded, to_packed;
    int64_t position = 0;
    for (int64_t t = 0; t < steps; ++t) {
      for (int64_t i = 0; i < batch; ++i) {
        to_padded.push_back(i < sizes[t] ? position++ : 0);
        if (i < sizes[t]) to_packed.push_back(t * batch + i);
      }
    }
    to_padded_ = at::tensor(to_padded).to(device);
    to_packed_ = at::tensor(to_packed).to(device);
    const Tensor rows = at::arange(batch, counts.options());
    mask = (rows < counts.unsqueeze(1)).unsqueeze(2).to(device);
  }

  Tensor pad(const Tensor& x) const {
    return (is_full_ ? x : x.index_select(0, to_padded_)).unflatten(0, {steps, batch});
  }
  Tensor pack(const Tensor& x) const {
    const Tensor flat = x.flatten(0, 1);
    return is_full_ ? flat : flat.index_select(0, to_packed_);
  }

  int64_t steps, batch;
  Tensor mask;  // undefined where there is no padding

 private:
  bool is_full_;
  Tensor to_padded_, to_packed_;
};

// Options and weights of a module.
struct Network {
  std::string kind;
  at::TensorList params;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional;
  Tensor h0, c0;  // [layers * directions, B, *]

  bool has_projection() const { return c0.defined() && c0.size(-1) != h0.size(-1); }
  int64_t directions() const { return bidirectional ? 2 : 1; }
  size_t params_of_a_cell() const { return (has_biases ? 4 : 2) + (has_projection() ? 1 : 0); }
};

// Where torch::autograd::Function does not work.
bool is_inside_torch_func() {
  const auto& state = at::functorch::functorchTLSAccessor();
  if (!state) return false;
  try {
    state->checkSupportsCppAutogradFunction();
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

// The network and its input are as the module promises; what is not is for PyTorch's own code, which says so.
bool takes_scan(const Network& network, const Tensor& input, int64_t steps, int64_t batch) {
  const auto cells = static_cast<size_t>(network.num_layers * network.directions());
  const auto is_usual = [&](const Tensor& x) {
    return x.defined() && is_xla(x) && at::isFloatingType(x.scalar_type()) && !torch::autograd::isFwGradDefined(x);
  };
  const auto is_state = [&](const Tensor& x) {
    return is_usual(x) && x.dim() == 3 && x.size(0) == static_cast<int64_t>(cells) && x.size(1) == batch;
  };
  if (is_inside_torch_func() || steps < 2 || batch < 1 || !is_usual(input)) return false;
  if (!is_state(network.h0) || (network.kind == "lstm" && !is_state(network.c0))) return false;
  return network.params.size() == cells * network.params_of_a_cell() &&
         std::all_of(network.params.begin(), network.params.end(), is_usual);
}

struct Output {
  Tensor sequence;
  std::vector<Tensor> h_n, c_n;
};

void run_direction(const Network& network, const Tensor& input, const Packing* packing, size_t cell, bool reverse,
                   Output& output) {
  const size_t first = cell * network.params_of_a_cell(), state = cell;
  const auto param = [&](size_t i) { return network.params[first + i]; };
  const Tensor bias_ih = network.has_biases ? param(2) : Tensor(), bias_hh = network.has_biases ? param(3) : Tensor();
  const Tensor weight_hr = network.has_projection() ? param(network.params_of_a_cell() - 1) : Tensor();
  Tensor gates = at::linear(input, param(0), maybe(bias_ih));
  // The reset gate of a GRU scales its recurrent gates with their bias. Half types would round the sum of the biases.
  const bool keeps_bias = network.kind == "gru" || c10::isReducedFloatingType(gates.scalar_type());
  if (network.has_biases && !keeps_bias) gates = gates + bias_hh.to(gates.scalar_type());
  if (packing) gates = packing->pad(gates);
  const auto as_gates = [&](const Tensor& x) {
    return x.defined() ? MaybeTensor(x.to(gates.scalar_type())) : std::nullopt;
  };
  const auto index = static_cast<int64_t>(state);
  const variable_list results =
      ScanFunction::apply(gates, network.h0.select(0, index),
                          network.c0.defined() ? MaybeTensor(network.c0.select(0, index)) : std::nullopt,
                          *as_gates(param(1)), keeps_bias ? as_gates(bias_hh) : std::nullopt, as_gates(weight_hr),
                          packing ? maybe(packing->mask) : std::nullopt, network.kind, reverse);
  output.sequence = packing ? packing->pack(results[0]) : results[0];
  output.h_n.push_back(results[1]);
  if (network.c0.defined()) output.c_n.push_back(results[2]);
}

// `input` is [T, B, F], or [N, F] when packed.
std::tuple<Tensor, Tensor, Tensor> run(const Network& network, Tensor input, const Packing* packing) {
  Output output;
  for (int64_t layer = 0; layer < network.num_layers; ++layer) {
    std::vector<Tensor> sequences;
    for (int64_t direction = 0; direction < network.directions(); ++direction) {
      const auto cell = static_cast<size_t>(layer * network.directions() + direction);
      run_direction(network, input, packing, cell, direction == 1, output);
      sequences.push_back(output.sequence);
    }
    input = sequences.size() == 1 ? sequences[0] : at::cat(sequences, -1);
    const bool is_last = layer == network.num_layers - 1;
    if (network.dropout > 0 && network.train && !is_last) input = at::dropout(input, network.dropout, true);
  }
  return {input, at::stack(output.h_n), network.c0.defined() ? at::stack(output.c_n) : Tensor()};
}

std::optional<std::tuple<Tensor, Tensor, Tensor>> run_padded(const Network& network, const Tensor& input,
                                                             bool batch_first) {
  if (input.dim() != 3) return std::nullopt;
  const Tensor sequence = batch_first ? input.transpose(0, 1) : input;
  if (!takes_scan(network, sequence, sequence.size(0), sequence.size(1))) return std::nullopt;
  auto [output, h_n, c_n] = run(network, sequence, nullptr);
  return std::tuple(batch_first ? output.transpose(0, 1) : output, h_n, c_n);
}

std::optional<std::tuple<Tensor, Tensor, Tensor>> run_packed(const Network& network, const Tensor& data,
                                                             const Tensor& batch_sizes) {
  if (data.dim() != 2 || !batch_sizes.is_cpu() || batch_sizes.dim() != 1 || batch_sizes.numel() == 0)
    return std::nullopt;
  if (!takes_scan(network, data, batch_sizes.size(0), batch_sizes[0].item<int64_t>())) return std::nullopt;
  const Packing packing(batch_sizes, data.device());
  return run(network, data, &packing);
}

// --- ATen's operators ------------------------------------------------------------------------------------------------

std::tuple<Tensor, Tensor, Tensor> lstm_input(const Tensor& input, at::TensorList hx, at::TensorList params,
                                              bool has_biases, int64_t num_layers, double dropout, bool train,
                                              bool bidirectional, bool batch_first) {
  if (hx.size() == 2) {
    const Network network{"lstm", params, has_biases, num_layers, dropout, train, bidirectional, hx[0], hx[1]};
    if (auto result = run_padded(network, input, batch_first)) return *result;
  }
  return at::native::lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}

std::tuple<Tensor, Tensor, Tensor> lstm_data(const Tensor& data, const Tensor& batch_sizes, at::TensorList hx,
                                             at::TensorList params, bool has_biases, int64_t num_layers, double dropout,
                                             bool train, bool bidirectional) {
  if (hx.size() == 2) {
    const Network network{"lstm", params, has_biases, num_layers, dropout, train, bidirectional, hx[0], hx[1]};
    if (auto result = run_packed(network, data, batch_sizes)) return *result;
  }
  return at::native::lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);
}

using InputFunction = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, at::TensorList, bool, int64_t, double,
                                                 bool, bool, bool);
using DataFunction = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, at::TensorList, bool,
                                                int64_t, double, bool, bool);

struct Gru {
  static constexpr const char* kKind = "gru";
  static constexpr InputFunction* kInput = at::native::gru;
  static constexpr DataFunction* kData = at::native::gru;
};
struct Tanh {
  static constexpr const char* kKind = "tanh";
  static constexpr InputFunction* kInput = at::native::rnn_tanh;
  static constexpr DataFunction* kData = at::native::rnn_tanh;
};
struct Relu {
  static constexpr const char* kKind = "relu";
  static constexpr InputFunction* kInput = at::native::rnn_relu;
  static constexpr DataFunction* kData = at::native::rnn_relu;
};

template <typename Cell>
std::tuple<Tensor, Tensor> rnn_input(const Tensor& input, const Tensor& hx, at::TensorList params, bool has_biases,
                                     int64_t num_layers, double dropout, bool train, bool bidirectional,
                                     bool batch_first) {
  const Network network{Cell::kKind, params, has_biases, num_layers, dropout, train, bidirectional, hx, {}};
  if (auto result = run_padded(network, input, batch_first)) return {std::get<0>(*result), std::get<1>(*result)};
  return Cell::kInput(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}

template <typename Cell>
std::tuple<Tensor, Tensor> rnn_data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                    at::TensorList params, bool has_biases, int64_t num_layers, double dropout,
                                    bool train, bool bidirectional) {
  const Network network{Cell::kKind, params, has_biases, num_layers, dropout, train, bidirectional, hx, {}};
  if (auto result = run_packed(network, data, batch_sizes)) return {std::get<0>(*result), std::get<1>(*result)};
  return Cell::kData(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);
}

void register_networks(torch::Library& m) {
  m.impl("lstm.input", lstm_input);
  m.impl("lstm.data", lstm_data);
  m.impl("gru.input", rnn_input<Gru>);
  m.impl("gru.data", rnn_data<Gru>);
  m.impl("rnn_tanh.input", rnn_input<Tanh>);
  m.impl("rnn_tanh.data", rnn_data<Tanh>);
  m.impl("rnn_relu.input", rnn_input<Relu>);
  m.impl("rnn_relu.data", rnn_data<Relu>);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) { register_networks(m); }
TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { register_networks(m); }

// --- shapes, for torch.compile and the recorder ----------------------------------------------------------------------

Tensor with_last(const Tensor& like, const Tensor& rest, int64_t last) {
  auto sizes = rest.sym_sizes().vec();
  sizes.back() = last;
  return at::empty_symint(sizes, like.options());
}

Tensor same(const Tensor& x) { return at::empty_symint(x.sym_sizes(), x.options()); }

ScanResults scan_meta(const Tensor& gates, const Tensor& h0, const MaybeTensor& c0, const Tensor&, const MaybeTensor&,
                      const MaybeTensor&, const MaybeTensor&, c10::string_view kind, bool) {
  const Tensor states = with_last(h0, gates, h0.size(-1));
  if (kind == "lstm") return {states, same(h0), same(*c0), same(gates), with_last(*c0, gates, c0->size(-1))};
  return {states, same(h0), {}, kind == "gru" ? with_last(gates, gates, 4 * h0.size(-1)) : Tensor(), {}};
}

ScanResults scan_backward_meta(const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, const Tensor& states,
                               const MaybeTensor& activations, const MaybeTensor&, const Tensor& h0,
                               const MaybeTensor& c0, const Tensor& weight_hh, const MaybeTensor& weight_hr,
                               const MaybeTensor&, c10::string_view kind, bool) {
  const Tensor gates = with_last(weight_hh, states, weight_hh.size(0));
  if (kind == "lstm") return {gates, {}, same(h0), same(*c0), weight_hr ? same(states) : Tensor()};
  return {gates, kind == "gru" ? same(gates) : Tensor(), same(h0), {}, {}};
}

TORCH_LIBRARY_FRAGMENT(xla, m) {
  m.def(
      "rnn_scan(Tensor gates, Tensor h0, Tensor? c0, Tensor weight_hh, Tensor? bias_hh, Tensor? weight_hr, Tensor? "
      "mask, str kind, bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "rnn_scan_backward(Tensor? grad_states, Tensor? grad_h_n, Tensor? grad_c_n, Tensor states, Tensor? activations, "
      "Tensor? cells, Tensor h0, Tensor? c0, Tensor weight_hh, Tensor? weight_hr, Tensor? mask, str kind, bool "
      "reverse) "
      "-> (Tensor, Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(xla, Meta, m) {
  m.impl("rnn_scan", scan_meta);
  m.impl("rnn_scan_backward", scan_backward_meta);
}

}  // namespace
}  // namespace torch_pjrt
