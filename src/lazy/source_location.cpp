#include "lazy/source_location.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace torch_pjrt::lazy {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_map<std::string, LocationId> ids;
  std::deque<std::string> texts{""};  // by id
};

// Leaked: threads may record while static objects are destroyed.
Table& table() {
  static auto* instance = new Table();
  return *instance;
}

std::atomic<CallSiteHook> g_hook{nullptr};

thread_local LocationId current_location = 0;
thread_local bool is_in_scope = false;

}  // namespace

LocationId intern_location(const std::string& text) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto [it, is_new] = all.ids.emplace(text, static_cast<LocationId>(all.texts.size()));
  if (is_new) all.texts.push_back(text);
  return it->second;
}

std::string location_text(LocationId id) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  return all.texts.at(id);
}

void set_call_site_hook(CallSiteHook hook) { g_hook.store(hook, std::memory_order_release); }

CallSite find_call_site() {
  const CallSiteHook hook = g_hook.load(std::memory_order_acquire);
  return hook == nullptr ? CallSite() : hook();
}

void set_nodes_have_locations(bool wanted) { internal::nodes_have_locations.store(wanted, std::memory_order_relaxed); }

LocationId LocationScope::current() { return current_location; }

void LocationScope::enter() {
  if (is_in_scope) return;
  current_location = find_call_site().location;
  is_in_scope = is_entered_ = true;
}

void LocationScope::leave() {
  current_location = 0;
  is_in_scope = false;
}

}  // namespace torch_pjrt::lazy
