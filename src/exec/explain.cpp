#include "exec/explain.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_map>

#include "base/error.h"

namespace torch_pjrt {
namespace {

// Below this share of common operators a program is called new, not a changed earlier one.
constexpr double kRelated = 0.5;
// Operators after such a run that must agree again.
constexpr size_t kResume = 3;

std::string_view name_of(const GraphSummary& graph, size_t i) { return graph.nodes[i].signature->schema->name; }

std::string quoted(std::string_view name) { return concat("`", name, "`"); }

std::string at(lazy::LocationId location) {
  return location == 0 ? std::string() : ", at " + lazy::location_text(location);
}

// The dtypes are only named where they differ.
std::string change(const TensorType& before, const TensorType& now) {
  if (before.dtype == now.dtype) return concat("was ", to_string(before.dims), ", is ", to_string(now.dims));
  return concat("was ", before.hlo(), ", is ", now.hlo());
}

struct AttributePrinter {
  std::ostringstream& out;
  void operator()(std::monostate) const { out << "None"; }
  void operator()(bool value) const { out << (value ? "True" : "False"); }
  void operator()(DType value) const { out << hlo_name(value); }
  template <typename T>
  void operator()(const T& value) const {
    out << value;
  }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    out << "[";
    for (size_t i = 0; i < values.size(); ++i) out << (i > 0 ? ", " : "") << values[i];
    out << "]";
  }
};

std::string text_of(const lazy::Attribute& attribute) {
  std::ostringstream out;
  std::visit(AttributePrinter{out}, attribute);
  return out.str();
}

std::string argument_name(const lazy::Signature& signature, size_t i) {
  const auto& names = signature.schema->argument_names;
  return i < names.size() ? names[i] : concat("argument ", i);
}

// Two calls of one operator whose signatures differ.
std::string describe_call(const GraphSummary::Node& before, const GraphSummary::Node& now) {
  const lazy::Signature& old_call = *before.signature;
  const lazy::Signature& call = *now.signature;
  const std::string subject = quoted(call.schema->name) + " ";
  const size_t num_inputs = std::min(old_call.operands.size(), call.operands.size());
  for (size_t i = 0; i < num_inputs; ++i) {
    if (old_call.operands[i] == call.operands[i]) continue;
    return concat(subject, "input ", i, " ", change(old_call.operands[i], call.operands[i]), at(now.location));
  }
  if (old_call.operands.size() != call.operands.size()) {
    return concat(subject, "had ", old_call.operands.size(), " inputs, has ", call.operands.size(), at(now.location));
  }
  const size_t num_arguments = std::min(old_call.arguments.size(), call.arguments.size());
  for (size_t i = 0; i < num_arguments; ++i) {
    if (old_call.arguments[i].attribute == call.arguments[i].attribute) continue;
    return concat(subject, argument_name(call, i), " was ", text_of(old_call.arguments[i].attribute), ", is ",
                  text_of(call.arguments[i].attribute), at(now.location));
  }
  const size_t num_outputs = std::min(old_call.outputs.size(), call.outputs.size());
  for (size_t i = 0; i < num_outputs; ++i) {
    if (old_call.outputs[i].type == call.outputs[i].type) continue;
    return concat(subject, "output ", i, " ", change(old_call.outputs[i].type, call.outputs[i].type), at(now.location));
  }
  return concat(subject, "is called with other kinds of arguments", at(now.location));
}

// Whether the operators from before[i] and now[j] on agree for kResume places, or to the end of both.
bool resumes(const GraphSummary& before, size_t i, const GraphSummary& now, size_t j) {
  for (size_t k = 0; k < kResume; ++k) {
    const bool is_end = i + k >= before.nodes.size();
    if (is_end != (j + k >= now.nodes.size())) return false;
    if (is_end) return true;
    if (name_of(before, i + k) != name_of(now, j + k)) return false;
  }
  return true;
}

std::string run_text(const GraphSummary& graph, size_t first, size_t count, std::string_view verb) {
  const std::string more =
      count > 1 ? concat(" and ", count - 1, count > 2 ? " more operators" : " more operator") : "";
  return concat(quoted(name_of(graph, first)), more, count > 1 ? " were " : " was ", verb,
                at(graph.nodes[first].location));
}

// The operators at place i are different ones.
std::string describe_operators(const GraphSummary& before, const GraphSummary& now, size_t i) {
  const size_t longest = std::max(before.nodes.size(), now.nodes.size()) - i;
  for (size_t run = 1; run <= longest; ++run) {
    if (i + run <= now.nodes.size() && resumes(before, i, now, i + run)) return run_text(now, i, run, "added");
    if (i + run <= before.nodes.size() && resumes(before, i + run, now, i)) return run_text(before, i, run, "removed");
  }
  if (i >= before.nodes.size()) return run_text(now, i, now.nodes.size() - i, "added");
  if (i >= now.nodes.size()) return run_text(before, i, before.nodes.size() - i, "removed");
  return concat("operator ", i, " was ", quoted(name_of(before, i)), at(before.nodes[i].location), ", is ",
                quoted(name_of(now, i)), at(now.nodes[i].location));
}

std::string source_text(const GraphSummary& graph, const OutputRef& source) {
  const uint32_t position = source.node & ~kParameterBit;
  if ((source.node & kParameterBit) != 0) return concat("argument ", position, " of the program");
  return concat("the result of operator ", position, " (", quoted(name_of(graph, position)), ")");
}

// The same operators on the same types, connected differently.
std::optional<std::string> describe_wiring(const GraphSummary& before, const GraphSummary& now) {
  for (size_t i = 0; i < now.nodes.size(); ++i) {
    for (size_t k = 0; k < now.num_operands(i); ++k) {
      const OutputRef& was = before.operands[before.nodes[i].first_operand + k];
      const OutputRef& is = now.operands[now.nodes[i].first_operand + k];
      if (was == is) continue;
      return concat(quoted(name_of(now, i)), " input ", k, " was ", source_text(before, was), ", is ",
                    source_text(now, is), at(now.nodes[i].location));
    }
  }
  return std::nullopt;
}

std::string describe_outputs(const GraphSummary& before, const GraphSummary& now) {
  const size_t num_both = std::min(before.outputs.size(), now.outputs.size());
  size_t i = 0;
  while (i < num_both && before.outputs[i] == now.outputs[i]) ++i;
  const std::string counts = before.outputs.size() == now.outputs.size()
                                 ? concat("the tensors kept differ")
                                 : concat("tensors kept: were ", before.outputs.size(), ", are ", now.outputs.size());
  const bool is_more = now.outputs.size() >= before.outputs.size();
  const GraphSummary& graph = is_more ? now : before;
  if (i >= graph.outputs.size()) return counts;
  const uint32_t position = graph.outputs[i].node;
  return concat(counts, "; ", source_text(graph, graph.outputs[i]), is_more ? " is now kept" : " is no longer kept",
                at(graph.nodes[position].location));
}

std::optional<std::string> describe_parameters(const GraphSummary& before, const GraphSummary& now) {
  const size_t num_both = std::min(before.parameters.size(), now.parameters.size());
  for (size_t i = 0; i < num_both; ++i) {
    if (before.parameters[i] != now.parameters[i]) {
      return concat("argument ", i, " of the program ", change(before.parameters[i], now.parameters[i]));
    }
    if (before.donated[i] != now.donated[i]) {
      return concat("argument ", i, " of the program, ", now.parameters[i].hlo(),
                    now.donated[i] ? ", was still held by a tensor afterwards, and is no longer: its memory is reused"
                                   : ", was held by no tensor afterwards, and is now: its memory cannot be reused");
    }
  }
  return std::nullopt;
}

// One copy for all summaries that hold it.
std::shared_ptr<const lazy::Signature> shared_copy(const lazy::Signature& signature) {
  static auto& mutex = *new std::mutex();
  static auto& copies = *new std::unordered_map<Hash128, std::weak_ptr<const lazy::Signature>>();
  static size_t size_to_clean = 1024;
  const std::lock_guard lock(mutex);
  if (copies.size() >= size_to_clean) {
    std::erase_if(copies, [](const auto& item) { return item.second.expired(); });
    size_to_clean = std::max<size_t>(1024, 2 * copies.size());
  }
  std::weak_ptr<const lazy::Signature>& slot = copies[signature.hash];
  std::shared_ptr<const lazy::Signature> copy = slot.lock();
  if (copy == nullptr) slot = copy = std::make_shared<const lazy::Signature>(signature);
  return copy;
}

}  // namespace

size_t GraphSummary::num_operands(size_t node) const {
  const size_t end = node + 1 < nodes.size() ? nodes[node + 1].first_operand : operands.size();
  return end - nodes[node].first_operand;
}

GraphSummary summarize(const Snapshot& snapshot) {
  GraphSummary summary;
  summary.nodes.reserve(snapshot.nodes.size());
  std::unordered_map<const lazy::Signature*, const lazy::Signature*> copies;
  for (const lazy::Node* node : snapshot.nodes) {
    const lazy::Signature*& copy = copies[&node->signature()];
    if (copy == nullptr) {
      summary.signatures.push_back(shared_copy(node->signature()));
      copy = summary.signatures.back().get();
    }
    summary.nodes.push_back({copy, node->location, node->region, static_cast<uint32_t>(summary.operands.size())});
    for (const lazy::Value& operand : node->operands()) {
      summary.operands.push_back({operand.node()->position, operand.index()});
    }
  }
  for (const lazy::Node* leaf : snapshot.parameters) summary.parameters.push_back(leaf->data()->type());
  summary.donated = snapshot.donated;
  summary.outputs = snapshot.values;
  count_ops(summary);
  return summary;
}

void count_ops(GraphSummary& summary) {
  std::map<std::string_view, int64_t> counts;
  for (const GraphSummary::Node& node : summary.nodes) ++counts[node.signature->schema->name];
  summary.op_counts.assign(counts.begin(), counts.end());
}

double similarity(const GraphSummary& a, const GraphSummary& b) {
  const size_t total = a.nodes.size() + b.nodes.size();
  if (total == 0) return 1;
  int64_t common = 0;
  auto left = a.op_counts.begin();
  auto right = b.op_counts.begin();
  while (left != a.op_counts.end() && right != b.op_counts.end()) {
    if (left->first == right->first) {
      common += std::min((left++)->second, (right++)->second);
    } else {
      ++(left->first < right->first ? left : right);
    }
  }
  return 2.0 * static_cast<double>(common) / static_cast<double>(total);
}

std::string first_difference(const GraphSummary& before, const GraphSummary& now) {
  const size_t num_both = std::min(before.nodes.size(), now.nodes.size());
  for (size_t i = 0; i < num_both; ++i) {
    if (before.nodes[i].signature == now.nodes[i].signature) continue;
    if (name_of(before, i) != name_of(now, i)) return describe_operators(before, now, i);
    if (before.nodes[i].signature->hash == now.nodes[i].signature->hash) continue;
    return describe_call(before.nodes[i], now.nodes[i]);
  }
  if (before.nodes.size() != now.nodes.size()) return describe_operators(before, now, num_both);
  if (auto text = describe_wiring(before, now)) return *text;
  if (before.outputs != now.outputs) return describe_outputs(before, now);
  if (auto text = describe_parameters(before, now)) return *text;
  return "the compile options differ, or the earlier program was dropped from memory";
}

std::string largest_value(const GraphSummary& graph) {
  const GraphSummary::Node* owner = nullptr;
  const TensorType* largest = nullptr;
  for (const GraphSummary::Node& node : graph.nodes) {
    for (const lazy::OutputSpec& output : node.signature->outputs) {
      if (!output.is_defined || (largest != nullptr && output.type.size_bytes() <= largest->size_bytes())) continue;
      largest = &output.type;
      owner = &node;
    }
  }
  if (largest == nullptr) return "";
  return concat(largest->hlo(), " of ", quoted(owner->signature->schema->name), at(owner->location));
}

GraphHistory& GraphHistory::get() {
  static auto* instance = new GraphHistory();
  return *instance;
}

void GraphHistory::add(int64_t program, std::shared_ptr<const GraphSummary> summary) {
  const std::lock_guard lock(mutex_);
  num_nodes_ += summary->nodes.size();
  entries_.push_back({program, std::move(summary)});
  while (entries_.size() > kMaxPrograms || (num_nodes_ > kMaxNodes && entries_.size() > 1)) {
    num_nodes_ -= entries_.front().summary->nodes.size();
    entries_.pop_front();
  }
}

std::shared_ptr<const GraphSummary> GraphHistory::find(int64_t program) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.program == program) return entry.summary;
  }
  return nullptr;
}

// By common operators; among equals by calls that are the same in the same place, then the newest.
std::optional<GraphHistory::Entry> GraphHistory::find_nearest(const GraphSummary& now) const {
  std::optional<Entry> best;
  std::pair<double, size_t> best_score;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    const GraphSummary& graph = *entry->summary;
    std::pair<double, size_t> score{similarity(graph, now), 0};
    if (best && score.first < best_score.first) continue;
    const size_t num_both = std::min(graph.nodes.size(), now.nodes.size());
    for (size_t i = 0; i < num_both; ++i)
      score.second += graph.nodes[i].signature->hash == now.nodes[i].signature->hash;
    if (best && score <= best_score) continue;
    best = *entry;
    best_score = score;
  }
  if (best && best_score.first < kRelated) return std::nullopt;
  return best;
}

std::string GraphHistory::explain(const GraphSummary& now) const {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return "the first program of the process";
  const auto nearest = find_nearest(now);
  if (!nearest) return "no earlier program shares half of its operators";
  return concat(first_difference(*nearest->summary, now), " (compared with program ", nearest->program, ")");
}

}  // namespace torch_pjrt
