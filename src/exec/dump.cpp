#include "exec/dump.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <unordered_set>

#include "base/env.h"
#include "base/error.h"
#include "exec/lower.h"
#include "lazy/source_location.h"
#include "ops/aten_call.h"

namespace torch_pjrt {
namespace {

std::unordered_set<const lazy::Node*> find_needed(const std::vector<lazy::Value>& values) {
  std::unordered_set<const lazy::Node*> needed;
  std::vector<const lazy::Node*> stack;
  const auto visit = [&](const lazy::Node* node) {
    if (needed.insert(node).second) stack.push_back(node);
  };
  for (const lazy::Value& value : values) visit(value.node());
  while (!stack.empty()) {
    const lazy::Node* node = stack.back();
    stack.pop_back();
    for (const lazy::Value& operand : node->operands()) visit(operand.node());
  }
  return needed;
}

// Row-major layouts in HLO's minor-to-major spelling: {1,0}.
std::string shape_text(const TensorType& type) {
  std::string text = type.hlo() + "{";
  for (int64_t i = type.rank(); i-- > 0;) {
    text += std::to_string(i);
    if (i > 0) text += ",";
  }
  return text + "}";
}

struct AttributePrinter {
  std::ostringstream& out;
  void operator()(std::monostate) const { out << "None"; }
  void operator()(bool value) const { out << (value ? 1 : 0); }
  void operator()(int64_t value) const { out << value; }
  void operator()(double value) const { out << value; }
  void operator()(const std::complex<double>& value) const { out << value; }
  void operator()(const std::string& value) const { out << value; }
  void operator()(DType value) const { out << hlo_name(value); }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    out << "(";
    for (size_t i = 0; i < values.size(); ++i) out << (i > 0 ? ", " : "") << values[i];
    out << ")";
  }
};

std::string line_text(const lazy::Node& node) {
  return node.location == 0 ? "" : ", location=" + lazy::location_text(node.location);
}

std::string attributes_text(const lazy::Node& node) {
  std::ostringstream out;
  const lazy::Signature& signature = node.signature();
  if (signature.outputs.size() > 1) out << ", num_outputs=" << signature.outputs.size();
  out << line_text(node);
  if (signature.entry != nullptr && is_aten_call(*signature.entry)) out << ", kernel=ATen";
  for (size_t i = 0; i < signature.arguments.size(); ++i) {
    const lazy::Argument& argument = signature.arguments[i];
    if (argument.kind != lazy::Argument::Kind::kAttribute) continue;
    if (std::holds_alternative<std::monostate>(argument.attribute)) continue;
    out << ", " << signature.schema->argument_names[i] << "=";
    std::visit(AttributePrinter{out}, argument.attribute);
  }
  return out.str();
}

// Parameters come first, so that %0 ... are the leaves.
class Names {
 public:
  explicit Names(const Snapshot& snapshot) : snapshot_(snapshot) {}
  size_t of_node(uint32_t position) const { return snapshot_.parameters.size() + position; }
  std::string of(const lazy::Value& value) const {
    const uint32_t position = value.node()->position;
    if ((position & kParameterBit) != 0) return "%" + std::to_string(position & ~kParameterBit);
    std::string name = "%" + std::to_string(of_node(position));
    if (value.node()->signature().outputs.size() > 1) name += "." + std::to_string(value.index());
    return name;
  }

 private:
  const Snapshot& snapshot_;
};

std::string operands_text(const lazy::Node& node, const Names& names) {
  std::string text;
  for (const lazy::Value& operand : node.operands()) {
    if (!text.empty()) text += ", ";
    text += names.of(operand);
  }
  return text;
}

std::string root_text(const Subgraph& subgraph, uint32_t position) {
  std::string text;
  for (size_t i = 0; i < subgraph.roots.size(); ++i) {
    if (subgraph.roots[i].node == position) text += ", ROOT=" + std::to_string(i);
  }
  return text;
}

}  // namespace

std::string result_text(const lazy::Signature& signature) {
  if (signature.outputs.size() == 1) return shape_text(signature.outputs[0].type);
  std::string text = "(";
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape_text(signature.outputs[i].type);
  }
  return text + ")";
}

Subgraph take_subgraph(lazy::Graph& graph, const std::vector<lazy::Value>& values) {
  Subgraph subgraph;
  take_snapshot(graph, subgraph.snapshot);
  Snapshot& all = subgraph.snapshot;
  const auto needed = find_needed(values);
  const auto is_unneeded = [&](const lazy::Node* node) { return !needed.contains(node); };
  std::erase_if(all.nodes, is_unneeded);
  std::erase_if(all.parameters, is_unneeded);
  for (const lazy::Value& value : values) {
    const bool is_known = std::find(all.parameters.begin(), all.parameters.end(), value.node()) != all.parameters.end();
    if (value.is_data() && !is_known) all.parameters.push_back(value.node());
  }
  all.donated.assign(all.parameters.size(), false);
  all.buffers.clear();
  all.values.clear();
  all.integers.clear();
  all.reals.clear();
  for (size_t i = 0; i < all.parameters.size(); ++i)
    all.parameters[i]->position = static_cast<uint32_t>(i) | kParameterBit;
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    all.nodes[i]->position = static_cast<uint32_t>(i);
    add_slots(*all.nodes[i], all);
  }
  for (const lazy::Value& value : values) {
    subgraph.roots.push_back({value.node()->position, value.index()});
    if (!value.is_data()) all.values.push_back(subgraph.roots.back());
  }
  return subgraph;
}

std::string to_text(const Subgraph& subgraph) {
  const Names names(subgraph.snapshot);
  std::ostringstream out;
  out << "IR {\n";
  for (size_t i = 0; i < subgraph.snapshot.parameters.size(); ++i) {
    const auto& data = *subgraph.snapshot.parameters[i]->data();
    out << "  %" << i << " = " << shape_text(data.type()) << " xla::device_data()"
        << line_text(*subgraph.snapshot.parameters[i]) << ", device=xla:" << data.device()
        << root_text(subgraph, static_cast<uint32_t>(i) | kParameterBit) << "\n";
  }
  for (const lazy::Node* node : subgraph.snapshot.nodes) {
    out << "  %" << names.of_node(node->position) << " = " << result_text(node->signature()) << " "
        << node->signature().schema->name << "(" << operands_text(*node, names) << ")" << attributes_text(*node)
        << root_text(subgraph, node->position) << "\n";
  }
  out << "}\n";
  return out.str();
}

std::string to_stablehlo(const Subgraph& subgraph) { return lower(subgraph.snapshot).text; }

std::string to_dot(const Subgraph& subgraph) {
  const Names names(subgraph.snapshot);
  std::ostringstream out;
  out << "digraph G {\n";
  for (size_t i = 0; i < subgraph.snapshot.parameters.size(); ++i) {
    out << "  n" << i << " [label=\"xla::device_data\\n"
        << subgraph.snapshot.parameters[i]->data()->type().hlo() << "\"]\n";
  }
  for (const lazy::Node* node : subgraph.snapshot.nodes) {
    const size_t id = names.of_node(node->position);
    out << "  n" << id << " [label=\"" << node->signature().schema->name << "\\n"
        << result_text(node->signature()) << "\"]\n";
    for (const lazy::Value& operand : node->operands()) {
      const uint32_t position = operand.node()->position;
      const size_t source = (position & kParameterBit) != 0 ? (position & ~kParameterBit) : names.of_node(position);
      out << "  n" << source << " -> n" << id << "\n";
    }
  }
  out << "}\n";
  return out.str();
}

void save_graph(const Snapshot& snapshot) {
  static const auto path = env_string("XLA_SAVE_TENSORS_FILE");
  if (!path) return;
  static const std::string format = env_string("XLA_SAVE_TENSORS_FMT").value_or("text");
  TP_USER_CHECK(format == "text" || format == "hlo" || format == "dot", kValueError,
                "XLA_SAVE_TENSORS_FMT: expected text, hlo or dot, got ", format);
  const Subgraph subgraph{snapshot, snapshot.values};
  std::ofstream file(*path, std::ios::app);
  file << (format == "hlo" ? to_stablehlo(subgraph) : format == "dot" ? to_dot(subgraph) : to_text(subgraph)) << "\n";
  file.flush();
  TP_USER_CHECK(file.good(), kFailedPrecondition, "XLA_SAVE_TENSORS_FILE: cannot write to ", *path);
}

}  // namespace torch_pjrt
