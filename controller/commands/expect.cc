// The command `expect`.
#include "controller/commands/commands.h"

#include <istream>
#include <memory>

#include <nlohmann/json.hpp>

#include "controller/commands/shared/command.h"
#include "controller/reading/input_file.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/objects.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/expected.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/mps.h"
#include "reconcilers/profile/profile.h"
#include "reconcilers/profile/yaml_node.h"

namespace gso {
namespace {

using nlohmann::ordered_json;

// A profile, and what its lines are called.
struct ProfileText {
  std::string text;
  std::string source;   // "map.yaml", or "map.yaml, value of key any" where its lines are not those of the file.
  int line_before = 0;  // Of the file, before the text's first line.
};

// Why the document is neither a profile nor a ConfigMap; empty: it is one of them.
std::string object_problem(const std::string& file, const DocumentValue& value) {
  const std::string_view kind = value.string_at("kind");
  if (kind != "ConfigMap" && is_manifest(value)) {
    return fmt::format(
        "{}:{}:{}: found an object of kind {}; --config needs a profile of the device plugin "
        "(version: v1), or a ConfigMap that holds profiles",
        file, value.find("kind")->at.line, value.find("kind")->at.column, shown_value(kind));
  }
  if (!lacks_kind(value)) return {};
  const Diagnostic found = kind_missing(value);
  return fmt::format("{}:{}:{}: {}", file, found.at.line, found.at.column, found.message);
}

// The profile in the text: the text itself, or a value of the ConfigMap that it is.
k8s::Result<ProfileText> profile_text(const std::string& file, std::string text, const std::string& key) {
  YamlStream stream(text);
  const auto document = stream.next();
  const DocumentValue value = document ? to_document_value(*document->root) : DocumentValue{};
  if (std::string problem = object_problem(file, value); !problem.empty())
    return k8s::fail(k8s::Reason::invalid, std::move(problem));
  if (value.string_at("kind") != "ConfigMap") {
    if (key.empty()) return ProfileText{std::move(text), file};
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("{}: --key {} names a key of a ConfigMap, and the file is none", file, key));
  }
  std::vector<std::string> keys;
  std::optional<ConfigMapEntry> chosen;
  for (ConfigMapEntry& entry : entries_of(value)) {
    keys.push_back(entry.member->key);
    if (key.empty() || entry.member->key == key) chosen = std::move(entry);
  }
  if (!chosen || (key.empty() && keys.size() != 1)) {
    return k8s::fail(
        k8s::Reason::invalid,
        fmt::format("{}: {}; choose one with --key. Keys: {}", file,
                    key.empty() ? fmt::format("the ConfigMap has {} keys", keys.size())
                                : fmt::format("the ConfigMap has no key {}{}", shown_value(key), key_advice(key, keys)),
                    keys.empty() ? "none" : first_names(keys)));
  }
  if (!chosen->member->value.is_string() || !chosen->readable) {
    const Position at = chosen->member->value.at;
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("{}:{}:{}: the value of key {} is {}", file, at.line, at.column,
                                 shown_value(chosen->member->key), chosen->readable ? "no string" : "no base64"));
  }
  // Only a literal block has its lines in the file.
  if (chosen->member->value.literal_block && !chosen->binary)
    return ProfileText{std::move(chosen->text), file, chosen->member->value.at.line};
  return ProfileText{std::move(chosen->text),
                     fmt::format("{}, value of key {}", file, shown_value(chosen->member->key))};
}

k8s::Result<std::vector<Device>> read_devices(const ExpectOptions& options, std::istream& in,
                                              std::vector<std::string>& ignored) {
  const std::string& file = options.node.empty() ? options.devices : options.node;
  const auto text = read_written_input(file, in);
  if (!text) return std::unexpected(text.error());
  auto devices = options.node.empty() ? parse_devices(*text, &ignored) : devices_of_node(*text);
  if (!devices) return k8s::fail(k8s::Reason::invalid, fmt::format("{}: {}", file, devices.error().message));
  return devices;
}

std::string json_text(const Expectation& expectation, const std::vector<std::string>& warnings) {
  auto labels = expectation.labels;
  labels.insert(expectation.dropped_labels.begin(), expectation.dropped_labels.end());
  ordered_json allocatable = ordered_json::object();
  for (const auto& [resource, count] : expectation.allocatable) allocatable[resource] = std::to_string(count);
  ordered_json dropped = ordered_json::array();
  for (const auto& [key, value] : expectation.dropped_labels) dropped.push_back(key);
  ordered_json mps = ordered_json::array();
  for (const MpsLimits& limits : expectation.mps) {
    ordered_json gpus = ordered_json::array();
    for (const auto memory : limits.pinned_memory_mib_by_gpu)
      gpus.push_back(memory == 0 ? ordered_json(nullptr) : ordered_json(mps_memory_shown(memory)));
    mps.push_back({{"resource", limits.resource},
                   {"activeThreadPercentage", limits.thread_percentage},
                   {"activeThreadPercentageShown", mps_threads_shown(limits.thread_percentage)},
                   {"pinnedMemoryMiB", limits.pinned_memory_mib_by_gpu},
                   {"pinnedMemoryShown", std::move(gpus)}});
  }
  const ordered_json out{{"labels", labels},
                         {"allocatable", std::move(allocatable)},
                         {"error", expectation.error ? ordered_json(*expectation.error) : ordered_json(nullptr)},
                         {"labelsDropped", std::move(dropped)},
                         {"labelsUnreliable", expectation.labels_unreliable},
                         {"mps", std::move(mps)},
                         {"warnings", warnings}};
  return printable_json(out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
}

void print(const Expectation& expectation, std::ostream& out) {
  if (expectation.error) print_line(out, "error: {}", shown_message(*expectation.error));
  out << "labels:\n";
  for (const auto& [key, value] : expectation.labels) print_line(out, "  {}={}", key, value);
  for (const auto& [key, value] : expectation.dropped_labels) {
    print_line(out,
               "  {}={}   (NFD drops this label: its value is longer than 63 characters or has invalid characters)",
               key, shown_value(value));
  }
  if (expectation.labels_unreliable) {
    out << "  The GPUs are of different models. GFD labels one of them at random, again every minute: rely on "
           "allocatable only.\n";
  }
  out << "allocatable:\n";
  for (const auto& [resource, count] : expectation.allocatable) print_line(out, "  {}: {}", resource, count);
  for (const MpsLimits& limits : expectation.mps) {
    out << fmt::format(
        "an MPS client of {} gets:\n  {} % of the threads (get_default_active_thread_percentage prints {})\n",
        limits.resource, limits.thread_percentage, mps_threads_shown(limits.thread_percentage));
    for (std::size_t i = 0; i < limits.pinned_memory_mib_by_gpu.size(); ++i) {
      const auto memory = limits.pinned_memory_mib_by_gpu[i];
      out << (memory == 0 ? fmt::format("  no memory limit on GPU {}: its memory is unknown\n", i)
                          : fmt::format("  at most {} MiB of GPU {} (get_default_device_pinned_mem_limit prints {})\n",
                                        memory, i, mps_memory_shown(memory)));
    }
  }
}

}  // namespace

int run_expect(const ExpectOptions& options, std::istream& in, std::ostream& out, std::ostream& err) {
  auto text = read_written_input(options.config, in);
  // Its message has no place in a file that would have to come first.
  if (!text) return refuse(err, "gpu-sharing-operator expect", text.error().message);
  const k8s::Result<ProfileText> config = profile_text(options.config, *std::move(text), options.key);
  if (!config) {
    print_line(err, "{}", config.error().message);
    return 2;
  }
  std::vector<std::string> warnings;
  const auto devices = read_devices(options, in, warnings);
  if (!devices) {
    print_line(err, "{}", devices.error().message);
    return 2;
  }
  if (is_blank(config->text)) {
    print_line(err, "{}: {} is empty; the plugin treats that as a profile without sharing", config->source,
               config->source == options.config && config->line_before == 0 ? "the file" : "the text");
  }
  ParsedProfile parsed = parse_profile(config->text);
  for (Diagnostic& d : parsed.diagnostics) d.at.line += d.at.line > 0 ? config->line_before : 0;
  if (parsed.accepted) {
    // Errors that only GPUs can cause: the expectation says whether these do.
    std::erase_if(parsed.diagnostics, [](const Diagnostic& d) {
      return d.code == "MPSMatchesNothing" || d.code == "MPSReplicasAboveMaximum";
    });
  }
  Expectation expectation = parsed.accepted ? expected_state(parsed.profile, *devices) : Expectation();
  if (!parsed.valid()) {
    expectation.error = fmt::format("{}: {}", config->source, parsed.first_error());
    for (auto& [resource, count] : expectation.allocatable) count = 0;
    expectation.mps.clear();
  }
  for (const Diagnostic& d : parsed.diagnostics) {
    if (d.severity != Severity::warning) continue;
    warnings.push_back(
        fmt::format("{}: line {}: {}{}", config->source, d.at.line, d.path.empty() ? "" : d.path + ": ", d.message));
  }
  if (options.json) {
    out << json_text(expectation, warnings);
  } else {
    for (const std::string& warning : warnings) print_line(out, "warning: {}", warning);
    print(expectation, out);
  }
  return expectation.error ? 1 : 0;
}

Subcommand make_expect_command() {
  const auto expect = std::make_shared<ExpectOptions>();
  const auto describe = [expect](CLI::App& app, OptionFlags& /*settings*/) {
    app.add_option("--config", expect->config, "Profile document, or a ConfigMap")->required()->type_name("FILE");
    app.add_option("--key", expect->key, "Key of that ConfigMap; not needed if it has one")->type_name("KEY");
    CLI::Option* devices =
        app.add_option("--devices", expect->devices, "JSON array of GPUs (fields below)")->type_name("FILE");
    CLI::Option* node = app.add_option("--node", expect->node, "Node manifest")->type_name("FILE");
    devices->excludes(node);
    app.footer(
        "A GPU of --devices, and of the Node annotation gpusharing.dev/devices, has the fields\n"
        "  name               as nvidia-smi prints it, \"Tesla T4\"; required\n"
        "  memoryMiB          15360; absent: no memory label, no MPS memory limit\n"
        "  computeCapability  [7, 5]\n"
        "  pciClass           197120 (0x030200, 3D controller) or 196608 (0x030000, VGA)\n"
        "  migCapable, migEnabled  true or false\n"
        "  migDevices         [{\"profile\": \"1g.5gb\", \"attributes\":\n"
        "                     {\"memory\": 4864, \"multiprocessors\": 14, …}}]\n"
        "Profiles that a component rejects or crashes on are reported as errors.\n" +
        exit_status_of_findings());
    add_output(app, expect->json);
  };
  const auto check = [expect](const Options&) -> k8s::Result<void> {
    if (expect->devices.empty() != expect->node.empty()) return {};
    return k8s::fail(k8s::Reason::invalid, "expect needs exactly one of --devices and --node");
  };
  return {.name = "expect",
          .summary = "Labels and allocatable that a profile must produce on a node",
          .describe = describe,
          .check = check,
          .run = [expect](const Invocation& i) { return run_expect(*expect, i.in, i.out, i.err); }};
}

}  // namespace gso
