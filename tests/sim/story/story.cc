#include "tests/sim/story/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reconcilers/labels.h"

namespace gso::sim {

using nlohmann::json;

namespace {

const k8s::Gvr kConfigMaps{"", "v1", "configmaps"};
const k8s::Gvr kEvents{"events.k8s.io", "v1", "events"};

// Sharing labels and our annotations say more than allocatable alone, so all are compared.
std::string suffix(const Shown& shown) { return shown.replicas > 1 && !shown.renamed ? "-SHARED" : ""; }

std::string resource(const Shown& shown) { return shown.renamed ? "nvidia.com/gpu.shared" : "nvidia.com/gpu"; }

}  // namespace

std::string mps_profile(std::int64_t replicas, bool rename, std::optional<bool> fail_requests) {
  std::string text = "version: v1\nsharing:\n  mps:\n";
  if (rename) text += "    renameByDefault: true\n";
  if (fail_requests) text += fmt::format("    failRequestsGreaterThanOne: {}\n", *fail_requests);
  return text + fmt::format("    resources:\n    - name: nvidia.com/gpu\n      replicas: {}\n", replicas);
}

std::string time_slicing_profile(std::int64_t replicas, bool mig_single) {
  std::string text = "version: v1\n";
  if (mig_single) text += "flags:\n  migStrategy: single\n";
  return text + fmt::format("sharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: {}\n",
                            replicas);
}

Story::Story(k8s::ApiClient* client, k8s::Clock* clock, OperatorControl* control, Narrator* narrator,
             StorySettings settings)
    : client_(client),
      clock_(clock),
      control_(control),
      narrator_(narrator),
      settings_(std::move(settings)),
      view_(client, clock, settings_.ns) {}

boost::asio::awaitable<bool> Story::run(boost::asio::any_io_executor executor) {
  using Step = boost::asio::awaitable<bool> (Story::*)();
  const std::vector<Step> steps{&Story::prepare,         &Story::install,      &Story::mig_is_refused,
                                &Story::edit_replicas,   &Story::edit_without_label, &Story::rename,
                                &Story::broken_edit,     &Story::label_one_node, &Story::mps_by_label,
                                &Story::patch_cluster_policy, &Story::kill_in_the_middle};
  view_.start(executor);
  view_.on_node_change([this](const Node& node) { progress(node); });
  bool held = true;
  for (Step step : steps) {
    held = co_await (this->*step)();
    if (!held) break;
  }
  print_nodes();
  if (!held) {
    const std::string evidence = control_->evidence();
    if (!evidence.empty()) narrator_->note("the operator's last words:\n" + evidence);
  }
  view_.stop();
  while (!view_.stopped()) co_await clock_->sleep_for(std::chrono::milliseconds(1));
  co_return held;
}

bool Story::check(bool held, std::string_view what, std::string_view detail) {
  narrator_->check(held, what, detail);
  return held;
}

boost::asio::awaitable<bool> Story::expect(std::string what, std::function<bool()> holds,
                                           std::function<std::string()> seen) {
  const bool held = co_await view_.wait_for(std::move(holds), settings_.patience);
  co_return check(held, what, held ? "" : seen());
}

boost::asio::awaitable<bool> Story::expect_shown(std::string what, Shown shown) {
  auto all = [this, shown] {
    return std::ranges::all_of(governed(), [&](const StoryNode* node) { return shows(*node, shown) && settled(*node); });
  };
  const bool held = co_await expect(std::move(what), all, [this, shown] { return describe_missing(shown); });
  co_return held;
}

boost::asio::awaitable<bool> Story::expect_no_restart(std::string what, PodHistory mark) {
  const bool changed = co_await view_.wait_for([this, &mark] { return view_.history() != mark; }, settings_.quiet);
  co_return check(!changed, what, "a plugin, GFD or MPS pod was replaced");
}

boost::asio::awaitable<bool> Story::apply(k8s::Gvr gvr, k8s::ObjectKey key, std::string text) {
  k8s::WriteOptions options;
  options.field_manager = "story";
  options.force = true;
  const auto applied = co_await client_->apply(std::move(gvr), key, std::move(text), options);
  if (!applied) check(false, "apply " + k8s::to_string(key), applied.error().message);
  co_return applied.has_value();
}

boost::asio::awaitable<bool> Story::patch(k8s::Gvr gvr, k8s::ObjectKey key, std::string merge_patch) {
  k8s::WriteOptions options;
  options.field_manager = "kubectl-patch";
  const auto patched = co_await client_->merge_patch(std::move(gvr), key, std::move(merge_patch), options);
  if (!patched) check(false, "patch " + k8s::to_string(key), patched.error().message);
  co_return patched.has_value();
}

boost::asio::awaitable<bool> Story::edit_config(std::string key, std::string profile) {
  const json body{{"data", {{key, profile}}}};
  k8s::WriteOptions options;
  options.field_manager = "kubectl-edit";
  const auto patched = co_await client_->merge_patch(kConfigMaps, {settings_.ns, "mps-config"}, body.dump(), options);
  if (!patched) check(false, "edit mps-config", patched.error().message);
  co_return patched.has_value();
}

boost::asio::awaitable<std::string> Story::events(std::string reason) {
  std::string notes;
  k8s::ItemFunction sink([&](std::optional<std::string_view> item) -> k8s::Result<void> {
    if (!item) {
      notes.clear();
      return {};
    }
    const json event = json::parse(*item, nullptr, false);
    if (event.is_object() && event.value("reason", "") == reason) notes += event.value("note", "") + "\n";
    return {};
  });
  const auto listed = co_await client_->list(kEvents, {}, &sink);
  if (!listed) notes = "events could not be listed: " + listed.error().message;
  co_return notes;
}

boost::asio::awaitable<bool> Story::expect_event(std::string what, std::string reason, std::vector<std::string> words) {
  const k8s::MonoTime deadline = clock_->monotonic() + settings_.patience;
  std::string notes;
  bool found = false;
  while (!found && clock_->monotonic() < deadline) {
    notes = co_await events(reason);
    found = !notes.empty() && std::ranges::all_of(words, [&](const std::string& word) {
      return notes.find(word) != std::string::npos;
    });
    if (!found) co_await clock_->sleep_for(std::chrono::milliseconds(200));
  }
  co_return check(found, what,
                  fmt::format("no Event {} with the words [{}]; those seen: {}", reason, fmt::join(words, ", "),
                              notes.empty() ? "none" : notes));
}

bool Story::shows(const StoryNode& node, const Shown& shown) const {
  const std::string name = resource(shown);
  const std::string other = shown.renamed ? "nvidia.com/gpu" : "nvidia.com/gpu.shared";
  return view_.allocatable(node.name, name) == node.gpus * shown.replicas && view_.allocatable(node.name, other) == 0 &&
         view_.label(node.name, kGpuReplicas) == std::to_string(shown.replicas) &&
         view_.label(node.name, kSharingStrategy) == shown.strategy &&
         view_.label(node.name, kGpuProduct) == node.product + suffix(shown);
}

bool Story::settled(const StoryNode& node) const {
  const Node* found = view_.node(node.name);
  return found != nullptr && !found->unschedulable && view_.label(node.name, kStateLabel).empty() &&
         view_.annotation(node.name, kReplaceAnnotation).empty();
}

std::string Story::describe(const StoryNode& node) const {
  const std::string state = view_.label(node.name, kStateLabel);
  const Node* found = view_.node(node.name);
  return fmt::format("{}: gpu={} gpu.shared={} replicas={} strategy={} product={}{}{}{}", node.name,
                     view_.allocatable(node.name, "nvidia.com/gpu"),
                     view_.allocatable(node.name, "nvidia.com/gpu.shared"), view_.label(node.name, kGpuReplicas),
                     view_.label(node.name, kSharingStrategy), view_.label(node.name, kGpuProduct),
                     state.empty() ? "" : " state=" + state,
                     found != nullptr && found->unschedulable ? " cordoned" : "",
                     view_.annotation(node.name, kMessageAnnotation).empty()
                         ? ""
                         : " (" + view_.annotation(node.name, kMessageAnnotation) + ")");
}

std::string Story::describe_missing(const Shown& shown) const {
  std::string text = fmt::format("expected GPUs x {} {}{}; not there yet:", shown.replicas, shown.strategy,
                                 shown.renamed ? ", renamed" : "");
  for (const StoryNode* node : governed()) {
    if (!shows(*node, shown) || !settled(*node)) text += "\n    " + describe(*node);
  }
  return text + "\n    default policy: " + policy_status("default");
}

std::vector<const StoryNode*> Story::governed() const {
  std::vector<const StoryNode*> found;
  for (const StoryNode& node : settings_.nodes) {
    if (!node.mig && node.name != own_way_) found.push_back(&node);
  }
  return found;
}

const StoryNode* Story::mig_node() const {
  auto it = std::ranges::find_if(settings_.nodes, &StoryNode::mig);
  return it == settings_.nodes.end() ? nullptr : &*it;
}

std::string Story::policy_status(const std::string& name) const {
  const SharingPolicy* policy = view_.policies().find(name);
  if (policy == nullptr) return "there is no SharingPolicy " + name;
  return policy->status_json.empty() ? "no status yet" : policy->status_json;
}

std::size_t Story::budget() const {
  // maxUnavailable 10 % of the nodes, rounded up: the default.
  return (settings_.nodes.size() + 9) / 10;
}

bool Story::restarted_once(const PodHistory& mark, const std::vector<std::string>& components, std::string& why) const {
  why.clear();
  for (const StoryNode* node : governed()) {
    for (const std::string& component : components) {
      if (component == "gfd" && node->unlabelled) continue;
      const std::size_t fresh = view_.new_pods(mark, node->name, component);
      if (fresh != 1) why += fmt::format("{} has had {} new {} pods; ", node->name, fresh, component);
    }
  }
  return why.empty();
}

void Story::progress(const Node& node) {
  const std::string state(node.meta.labels.get(kStateLabel).value_or(""));
  std::string& last = last_progress_[node.meta.name];
  if (state == last) return;
  if (state.empty()) {
    narrator_->note(fmt::format("{} is done: nvidia.com/gpu={} nvidia.com/gpu.shared={}", node.meta.name,
                                view_.allocatable(node.meta.name, "nvidia.com/gpu"),
                                view_.allocatable(node.meta.name, "nvidia.com/gpu.shared")));
  } else {
    const std::string message(node.meta.annotations.get(kMessageAnnotation).value_or(""));
    narrator_->note(fmt::format("{} is {}{}", node.meta.name, state, message.empty() ? "" : ": " + message));
  }
  last = state;
}

void Story::print_nodes() {
  narrator_->step("The nodes at the end");
  std::vector<std::vector<std::string>> rows{
      {"NODE", "GPU", "GPU.SHARED", "REPLICAS", "STRATEGY", "PRODUCT", "REVISION", "STATE"}};
  for (const StoryNode& node : settings_.nodes) {
    rows.push_back({node.name, std::to_string(view_.allocatable(node.name, "nvidia.com/gpu")),
                    std::to_string(view_.allocatable(node.name, "nvidia.com/gpu.shared")),
                    view_.label(node.name, kGpuReplicas), view_.label(node.name, kSharingStrategy),
                    view_.label(node.name, kGpuProduct), view_.annotation(node.name, kRevisionAnnotation),
                    view_.label(node.name, kStateLabel)});
  }
  narrator_->table(rows);
}

}  // namespace gso::sim
