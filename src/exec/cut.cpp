#include "exec/cut.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/env.h"
#include "base/error.h"
#include "base/recent_map.h"
#include "exec/debug_output.h"
#include "exec/dump.h"
#include "exec/explain.h"
#include "exec/initial_values.h"
#include "exec/kept_runs.h"
#include "exec/lower.h"
#include "exec/memory_mappings.h"
#include "exec/program_cache.h"
#include "exec/program_store.h"
#include "exec/runtime.h"
#include "exec/snapshot.h"
#include "exec/statistics.h"
#include "exec/timeline.h"
#include "ops/aten_call.h"
#include "ops/host_kernel.h"

namespace torch_pjrt {
namespace {

// XLA's CPU client keeps the optimized module, the plan of its buffers and the code: 0.2 MB for two operators, 1 MB for
// 12, 30 MB for 700.
int64_t estimated_program_bytes(const Snapshot& snapshot) {
  constexpr int64_t kSmallest = 128 << 10, kPerNode = 64 << 10;
  return kSmallest + kPerNode * static_cast<int64_t>(snapshot.nodes.size());
}

// A quarter of the host's memory, where programs live there.
int64_t max_program_bytes() {
  constexpr int64_t kShare = 4;
  const Runtime& runtime = Runtime::get();
  const int64_t memory = runtime.is_cpu() ? runtime.memory_limit(0) : 0;
  return memory > 0 ? memory / kShare : std::numeric_limits<int64_t>::max();
}

ProgramCache& program_cache() {
  static auto* cache = [] {
    const int64_t size = env_int("XLA_COMPILATION_CACHE_SIZE", 2048);
    TP_USER_CHECK(size > 0, kValueError, "XLA_COMPILATION_CACHE_SIZE: expected a positive number, got ", size);
    return new ProgramCache(static_cast<size_t>(size));
  }();
  return *cache;
}

void make_room_for_program() {
  static auto* budget = new MappingBudget(max_memory_mappings(), count_memory_mappings);
  budget->make_room(
      kMinPrograms, [] { return program_cache().size(); }, [](size_t count) { program_cache().evict(count); });
}

std::map<std::string, std::string>& compile_options() {
  static auto* options = new std::map<std::string, std::string>();
  return *options;
}

// XLA checks an override's type against the flag's, and the user gives text.
pjrt::OptionOverride parse_option(const std::string& name, const std::string& text) {
  if (text == "true" || text == "false") return {name, text == "true"};
  int64_t integer = 0;
  double real = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, integer).ptr == end) return {name, integer};
  if (std::from_chars(text.data(), end, real).ptr == end) return {name, real};
  return {name, text};
}

std::vector<pjrt::OptionOverride> option_overrides() {
  std::vector<pjrt::OptionOverride> overrides;
  for (const auto& [name, value] : compile_options()) overrides.push_back(parse_option(name, value));
  return overrides;
}

Hash128 cache_key(const Snapshot& snapshot) {
  Hash128 key = snapshot.hash;
  key.mix(uint64_t{host_kernels_on()});
  for (const auto& [name, value] : compile_options()) {
    key.mix(std::string_view(name));
    key.mix(std::string_view(value));
  }
  return key;
}

std::vector<TensorType> parameter_types(const Snapshot& snapshot) {
  std::vector<TensorType> types;
  for (const lazy::Node* leaf : snapshot.parameters) types.push_back(leaf->data()->type());
  const bool is_packed = packs_scalars(snapshot);
  const auto add_scalars = [&](DType dtype, size_t count) {
    if (count > 0 && is_packed) types.push_back({dtype, {static_cast<int64_t>(count)}});
    if (!is_packed) types.insert(types.end(), count, TensorType{dtype, {}});
  };
  add_scalars(DType::kS64, snapshot.integers.size());
  add_scalars(DType::kF64, snapshot.reals.size());
  return types;
}

LoweredModule timed_lower(const Snapshot& snapshot) {
  static Metric& time = metric("LowerTime");
  const auto start = Timeline::Clock::now();
  LoweredModule module = lower(snapshot);
  time.record(std::chrono::duration<double>(Timeline::Clock::now() - start).count());
  return module;
}

// Whether a call of one of PyTorch's kernels may throw for the values that it meets. What is called because it is
// faster at most lacks memory: its arguments were checked when it was recorded.
bool can_fail(const Snapshot& snapshot) {
  return std::any_of(snapshot.nodes.begin(), snapshot.nodes.end(), [](const lazy::Node* node) {
    const lazy::Signature& signature = node->signature();
    if (!is_aten_call(*signature.entry)) return false;
    const KernelRule* rule = find_kernel_rule(signature.schema->name);
    return rule == nullptr || rule->can_fail;
  });
}

const CompiledGraph& compile_graph(const Snapshot& snapshot, const Hash128& key, std::string_view cause) {
  save_graph(snapshot);
  auto summary = std::make_shared<const GraphSummary>(summarize(snapshot));
  LoweredModule module = timed_lower(snapshot);
  make_room_for_program();
  CompiledGraph graph;
  graph.buffer_outputs = std::move(module.buffer_outputs);
  graph.num_aliased = module.num_aliased;
  graph.can_fail = can_fail(snapshot);
  graph.size_bytes = estimated_program_bytes(snapshot);
  ProgramSpec spec;
  spec.stablehlo = std::move(module.text);
  spec.parameters = parameter_types(snapshot);
  spec.outputs = std::move(module.outputs);
  spec.donated = std::move(module.donated);
  spec.overrides = option_overrides();
  spec.cause = cause;
  spec.explanation = GraphHistory::get().explain(*summary);
  spec.largest_value = largest_value(*summary);
  spec.num_nodes = static_cast<int64_t>(snapshot.nodes.size());
  graph.program = load_or_compile(std::move(spec));
  GraphHistory::get().add(graph.program->record().id, std::move(summary));
  print_compile(graph.program->record());
  program_cache().set_max_bytes(max_program_bytes());
  return program_cache().insert(key, std::move(graph));
}

const CompiledGraph& find_or_compile(const Snapshot& snapshot, std::string_view cause) {
  static Counter& cached = counter("CachedCompile");
  static Counter& uncached = counter("UncachedCompile");
  const Hash128 key = cache_key(snapshot);
  if (const CompiledGraph* found = program_cache().find(key)) {
    cached.add();
    return *found;
  }
  const CompiledGraph& graph = compile_graph(snapshot, key, cause);
  if (!graph.program->record().from_disk_cache) uncached.add();
  return graph;
}

// A device copy of one packed scalar vector; a loop whose scalars stay the same uploads them once.
template <typename T>
class ScalarUpload {
 public:
  explicit ScalarUpload(DType dtype) : dtype_(dtype) {}

  DeviceValue* get(const std::vector<T>& values, int device) {
    // Bitwise, so that NaN equals itself and -0.0 differs from 0.0.
    const bool is_same = value_ && value_->device() == device && values_.size() == values.size() &&
                         std::memcmp(values_.data(), values.data(), values.size() * sizeof(T)) == 0;
    if (!is_same) {
      value_ = Runtime::get().upload(values.data(), {dtype_, {static_cast<int64_t>(values.size())}}, device);
      values_ = values;
    }
    return value_.get();
  }

 private:
  DType dtype_;
  std::vector<T> values_;
  Ref<DeviceValue> value_;
};

// Device copies of single scalars, by their bits: most numbers of a step are those of the step before, and many places
// hold the same one. Not counted as live memory: their number is bounded, and depends on how numbers happen to
// coincide.
template <typename T>
class ScalarValues {
 public:
  explicit ScalarValues(DType dtype) : dtype_(dtype) {}

  void append(const std::vector<T>& scalars, int device, std::vector<DeviceValue*>& arguments) {
    ++pass_;
    if (entries_.size() > kMaxKept) {
      std::erase_if(entries_, [&](const auto& item) { return item.second.pass + 1 < pass_; });
    }
    for (const T scalar : scalars) {
      Entry& entry = entries_[{std::bit_cast<uint64_t>(scalar), device}];
      if (!entry.value) entry.value = upload(scalar, device);
      entry.pass = pass_;
      arguments.push_back(entry.value.get());
    }
  }

 private:
  static constexpr size_t kMaxKept = 4096;
  struct Key {
    uint64_t bits;
    int device;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      const uint64_t mixed = (key.bits ^ static_cast<uint64_t>(key.device)) * 0x9e3779b97f4a7c15ULL;
      return mixed ^ (mixed >> 32);
    }
  };
  struct Entry {
    Ref<DeviceValue> value;
    uint64_t pass = 0;  // the last call that used it
  };

  Ref<DeviceValue> upload(T scalar, int device) const {
    Runtime& runtime = Runtime::get();
    const TensorType type{dtype_, {}};
    std::vector<pjrt::Buffer> buffers;
    buffers.push_back(runtime.client().to_device(&scalar, type, runtime.device(device)));
    return make_ref<DeviceValue>(type, device, std::move(buffers), 0);
  }

  DType dtype_;
  uint64_t pass_ = 0;
  std::unordered_map<Key, Entry, KeyHash> entries_;
};

template <typename T>
struct ScalarArguments {
  ScalarUpload<T> packed;
  ScalarValues<T> separate;

  explicit ScalarArguments(DType dtype) : packed(dtype), separate(dtype) {}

  void append(const std::vector<T>& scalars, bool is_packed, int device, std::vector<DeviceValue*>& arguments) {
    if (scalars.empty()) return;
    if (is_packed) {
      arguments.push_back(packed.get(scalars, device));
    } else {
      separate.append(scalars, device, arguments);
    }
  }
};

struct Arguments {
  std::vector<DeviceValue*> values;
  // Donated parameters that somebody outside the graph still needs: a read in progress, a run that may fail.
  std::vector<int64_t> keep;
};

void collect_arguments(const Snapshot& snapshot, bool keep_all, Arguments& arguments) {
  static auto* integers = new ScalarArguments<int64_t>(DType::kS64);
  static auto* reals = new ScalarArguments<double>(DType::kF64);
  for (size_t i = 0; i < snapshot.parameters.size(); ++i) {
    const auto& data = snapshot.parameters[i]->data();
    if (snapshot.donated[i] && (keep_all || data->use_count() > 1 || snapshot.parameters[i]->num_keepers > 0)) {
      arguments.keep.push_back(static_cast<int64_t>(i));
    }
    arguments.values.push_back(static_cast<DeviceValue*>(data.get()));
  }
  const bool is_packed = packs_scalars(snapshot);
  integers->append(snapshot.integers, is_packed, snapshot.device, arguments.values);
  reals->append(snapshot.reals, is_packed, snapshot.device, arguments.values);
}

void replace_values(const Snapshot& snapshot, const CompiledGraph& compiled, const std::vector<lazy::Value>& leaves) {
  for (size_t i = 0; i < snapshot.buffers.size(); ++i) {
    lazy::Buffer& buffer = *snapshot.buffers[i];
    buffer.set(leaves[compiled.buffer_outputs[i]], buffer.layout());
  }
}

// When the first of the pending operators of each device was recorded.
std::map<int, Timeline::Clock::time_point>& recording_since() {
  static auto* times = new std::map<int, Timeline::Clock::time_point>();
  return *times;
}

std::string describe(std::string_view cause, lazy::LocationId location) {
  return location == 0 ? std::string(cause) : concat(cause, ", at ", lazy::location_text(location));
}

void add_recording_event(const lazy::Graph& graph) {
  const auto since = recording_since().find(graph.device());
  if (since == recording_since().end()) return;
  Timeline::get().add(TimelineEvent::Kind::kRecord, since->second, Timeline::Clock::now());
  recording_since().erase(since);
}

using Checks = std::vector<std::unique_ptr<lazy::Buffer>>;

// What hold_until_cut holds, by device.
Checks& pending_checks(int device) {
  static auto* checks = new std::map<int, Checks>();
  return (*checks)[device];
}

enum class Extent {
  kAll,            // all that is pending
  kAllWithChecks,  // and operators that are there for what they throw
  kOneValue,       // of what stays pending, or was kept
};

void run_snapshot(lazy::Graph& graph, const Snapshot& snapshot, const std::string& cause, Extent extent) {
  static Counter& aliased = counter("InputOutputAliasCount");
  TimelineSpan span(TimelineEvent::Kind::kCut);
  print_cut(cause, snapshot.nodes.size());
  const CompiledGraph& compiled = find_or_compile(snapshot, cause);
  Arguments arguments;
  // What one value is made from stays where it is: it is not lost, whatever fails.
  const bool is_tracked = compiled.can_fail || extent == Extent::kOneValue;
  const Ref<RunOutcome> outcome = make_outcome(snapshot, is_tracked, extent == Extent::kAllWithChecks);
  collect_arguments(snapshot, static_cast<bool>(outcome), arguments);
  span.program = compiled.program->record().id;
  span.cause = cause;
  auto outputs = compiled.program->run(arguments.values, graph.device(), arguments.keep, outcome);
  if (!outcome) aliased.add(static_cast<int64_t>(compiled.num_aliased));
  std::vector<lazy::Value> leaves;
  leaves.reserve(outputs.size());
  for (auto& output : outputs) leaves.push_back(graph.leaf(std::move(output)));
  if (outcome && extent != Extent::kOneValue) keep_run(snapshot, leaves, compiled.buffer_outputs, outcome);
  replace_values(snapshot, compiled, leaves);
}

void recompute(lazy::Node& leaf, const std::string& cause);

// Takes a snapshot, after values of failed runs among its parameters were started again.
template <typename Take>
void take_sound_snapshot(Snapshot& snapshot, const std::string& cause, Take&& take) {
  take();
  std::vector<lazy::Node*> failed;
  for (lazy::Node* leaf : snapshot.parameters) {
    if (outcome_of(*leaf) && outcome_of(*leaf)->has_failed()) failed.push_back(leaf);
  }
  if (failed.empty()) return;
  for (lazy::Node* leaf : failed) recompute(*leaf, cause);
  take();
}

// Starts what computes this value of a failed run, alone: the rest may be what failed.
void recompute(lazy::Node& leaf, const std::string& cause) {
  const KeptRun* run = find_kept_run(leaf);
  if (run == nullptr) return;
  lazy::Graph& graph = leaf.graph();
  const std::vector<const lazy::Node*> nodes = run->nodes();
  lazy::Buffer holder(graph.device(), leaf.data()->type().size_bytes());
  holder.set(run->source_of(leaf), nullptr);
  Snapshot snapshot;
  take_sound_snapshot(snapshot, cause, [&] { take_snapshot_of(holder, nodes, snapshot); });
  run_snapshot(graph, snapshot, cause + ", again after a failure", Extent::kOneValue);
  lazy::Graph::replace_data(leaf, holder.value().node()->data());
}

// Whether a graph that is not compiled comes every few cuts: a loop makes what it begins with in each round.
bool comes_often(const lazy::Graph& graph, const Hash128& key) {
  constexpr int64_t kFewCuts = 4;
  constexpr int kOften = 4;
  constexpr size_t kMaxRemembered = 64;
  struct Visits {
    int64_t last = 0;  // Graph::num_cuts() then
    int count = 0;
  };
  static auto* graphs = new RecentMap<Visits>();
  if (graphs->num_young() >= kMaxRemembered) graphs->forget();
  Visits& visits = graphs->insert(key, std::make_unique<Visits>());
  const int64_t now = graph.num_cuts();
  visits.count = now - std::exchange(visits.last, now) <= kFewCuts ? visits.count + 1 : 1;
  return visits.count >= kOften;
}

// Computes what the graph begins with, where that makes its program one that is of use again. True if the snapshot is
// old afterwards.
bool run_initial_values(lazy::Graph& graph, const Snapshot& snapshot, const std::string& cause) {
  // What is copied in each round of such a loop before its graph is worth a program of its own.
  constexpr size_t kManyBytes = 1 << 20;
  if (!graph.has_initial_values()) return false;  // all steps of a loop but the first end here
  const Hash128 key = cache_key(snapshot);
  if (program_cache().find(key) != nullptr) return false;
  InitialValues values(graph, snapshot);
  if (values.empty() || (values.size_bytes() > kManyBytes && comes_often(graph, key))) return false;
  Snapshot first;
  values.prepare(first);
  if (can_fail(first)) return true;
  try {
    if (!first.nodes.empty()) run_snapshot(graph, first, cause + ", what it begins with", Extent::kAll);
  } catch (const Error&) {
    return true;  // the whole graph may do, and tells its error if not
  }
  values.replace();
  return true;
}

}  // namespace

void note_recording(const lazy::Graph& graph) {
  if (graph.num_pending() == 0) recording_since()[graph.device()] = Timeline::Clock::now();
}

void cut(lazy::Graph& graph, std::string_view what, lazy::LocationId location) {
  graph.remat_region().leave();
  release_kept_runs();
  if (graph.num_pending() == 0) return;
  Runtime::get();  // the plugin decides how operators are lowered
  add_recording_event(graph);
  // They end here, also when they fail: nobody could drop them.
  const Checks checks = std::exchange(pending_checks(graph.device()), {});
  static auto* snapshot = new Snapshot();
  const std::string cause = describe(what, location);
  take_sound_snapshot(*snapshot, cause, [&] { take_snapshot(graph, *snapshot); });
  if (run_initial_values(graph, *snapshot, cause)) take_snapshot(graph, *snapshot);
  run_snapshot(graph, *snapshot, cause, checks.empty() ? Extent::kAll : Extent::kAllWithChecks);
  graph.note_cut();
}

void hold_until_cut(lazy::Value check) {
  const int device = check.node()->graph().device();
  auto holder = std::make_unique<lazy::Buffer>(device, check.type().size_bytes());
  holder->set(std::move(check), nullptr);
  pending_checks(device).push_back(std::move(holder));
}

void cut_for(lazy::Buffer& wanted, std::string_view what, lazy::LocationId location) {
  lazy::Graph& graph = wanted.graph();
  const size_t num_pending = graph.num_pending();
  const bool has_checks = !pending_checks(graph.device()).empty();
  try {
    cut(graph, what, location);
  } catch (const Error&) {
    // What a check throws concerns every reader.
    if (has_checks) throw;
    // Perhaps what fails is something else that is pending.
    static auto* snapshot = new Snapshot();
    const std::string cause = describe(what, location) + ", without what else was pending";
    take_sound_snapshot(*snapshot, cause, [&] { take_snapshot_of(wanted, *snapshot); });
    if (snapshot->nodes.size() == num_pending) throw;
    run_snapshot(graph, *snapshot, cause, Extent::kOneValue);
  }
}

bool may_be_lost(const lazy::Buffer& buffer) {
  const Ref<RunOutcome>& outcome = outcome_of(*buffer.value().node());
  return outcome && !outcome->is_sound();
}

Ref<lazy::DeviceData> make_good(const lazy::Buffer& buffer, std::string_view what, lazy::LocationId location) {
  Ref<lazy::DeviceData> data;
  {
    const lazy::Lock lock(lazy::mutex());
    data = buffer.value().node()->data();
  }
  const auto& value = static_cast<const DeviceValue&>(*data);
  try {
    value.await();
  } catch (const Error&) {
    InFlight& in_flight = Runtime::get().in_flight(value.device());
    in_flight.drain();  // now it is known which runs failed
    // What a check throws concerns every reader, once.
    if (!value.outcome() || (value.outcome()->has_checks() && in_flight.has_error())) return data;
    const lazy::Lock lock(lazy::mutex());
    lazy::Node& leaf = *buffer.value().node();
    // Another reader may have started it meanwhile.
    if (leaf.data().get() == data.get()) recompute(leaf, describe(what, location));
    return leaf.data();
  }
  return data;
}

void cut_when_long(lazy::Graph& graph) {
  static const auto limit = static_cast<size_t>(env_int("XLA_MAX_PENDING_NODES", 8192));
  if (graph.num_pending() >= limit) cut(graph, "the limit of XLA_MAX_PENDING_NODES", lazy::LocationScope::current());
}

void set_compile_options(std::map<std::string, std::string> options) {
  const lazy::Lock lock(lazy::mutex());
  compile_options() = std::move(options);
}

size_t num_cached_programs() {
  const lazy::Lock lock(lazy::mutex());
  return program_cache().size();
}

std::string optimized_program(int64_t id) {
  const lazy::Lock lock(lazy::mutex());
  const CompiledGraph* graph = program_cache().find_program(id);
  TP_USER_CHECK(graph != nullptr, kValueError, "program ", id, " is not in memory");
  return graph->program->executable().optimized_program().code;
}

void clear_program_cache() {
  const lazy::Lock lock(lazy::mutex());
  program_cache().clear();
}

}  // namespace torch_pjrt
