// See option_flags.h.
#include "controller/config/option_flags.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iterator>

namespace gso {

void OptionFlags::add_to(CLI::App* app, const std::function<bool(const OptionSpec&)>& wanted) {
  for (const OptionSpec& spec : option_specs()) {
    if (!wanted(spec)) continue;
    std::string& value = values_[spec.name];
    const std::string flag = (spec.name == "namespace" ? "-n,--" : "--") + spec.name;
    CLI::Option* option = spec.flag ? app->add_flag(flag, value, spec.doc) : app->add_option(flag, value, spec.doc);
    option->envname(spec.environment())->group(spec.group);
    if (!spec.flag) option->type_name(spec.type);
    const std::string fallback = spec.get(Options());
    if (!fallback.empty()) option->default_str(fallback);
    options_.emplace_back(&spec, option);
  }
}

void OptionFlags::add_config_to(CLI::App* app) {
  config_ = app->add_option("--config", config_file_, "YAML file with any of these settings, by the same names")
                ->envname("GSO_CONFIG")
                ->type_name("FILE");
}

void OptionFlags::add_request_timeout(CLI::App* app) {
  app->add_option("--request-timeout", request_timeout_, "Longest duration of one request with its retries, 1s to 1h")
      ->type_name("DURATION")
      ->default_str(k8s::format_go_duration(Options().request_timeout))
      ->group("Connection");
}

k8s::Result<Options> OptionFlags::resolve() const {
  Options out;
  const k8s::Result<void> timeout = read_duration("--request-timeout", request_timeout_, out.request_timeout);
  if (!timeout) return std::unexpected(timeout.error());
  std::vector<std::string> given;
  for (const auto& [spec, option] : options_) {
    if (option->count() == 0) continue;
    given.push_back(spec->name);
    const std::string wrong = spec->set(out, option->results().back());
    if (!wrong.empty()) {
      return std::unexpected(
          k8s::Error{k8s::Reason::invalid, 0, fmt::format("--{} (or {}): {}", spec->name, spec->environment(), wrong)});
    }
  }
  if (config_ == nullptr || config_->count() == 0) return out;
  out.config = config_file_;
  std::ifstream file(config_file_);
  if (!file) {
    return std::unexpected(
        k8s::Error{k8s::Reason::invalid, 0, fmt::format("--config {}: cannot be read", config_file_)});
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const k8s::Result<void> applied = apply_config_file(out, config_file_, text, given);
  if (!applied) return std::unexpected(applied.error());
  return out;
}

k8s::Result<void> read_any_duration(const char* flag, const std::string& text, const char* example,
                                    k8s::Duration& out) {
  if (text.empty()) return {};
  const auto parsed = k8s::parse_go_duration(text);
  if (!parsed || *parsed < k8s::Duration::zero()) {
    return k8s::fail(k8s::Reason::invalid, fmt::format("{}: '{}' is not a duration such as {}", flag, text, example));
  }
  out = *parsed;
  return {};
}

k8s::Result<void> read_duration(const char* flag, const std::string& text, k8s::Duration& out) {
  if (text.empty()) return {};
  const auto parsed = k8s::parse_go_duration(text);
  if (!parsed || *parsed < std::chrono::seconds(1) || *parsed > std::chrono::hours(1)) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("{}: '{}' is not a duration from 1s to 1h, such as 30s", flag, text));
  }
  out = *parsed;
  return {};
}

}  // namespace gso
