#include "controller/config/option_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/selectors.h"

namespace gso::option_kind {

OptionSpec text(std::string name, std::string group, std::string type, std::string doc, Field<std::string> field) {
  return {.name = std::move(name),
          .group = std::move(group),
          .type = std::move(type),
          .doc = std::move(doc),
          .set =
              [field](Options& o, const std::string& value) {
                field(o) = value;
                return std::string();
              },
          .get = [field](const Options& o) { return read(field, o); }};
}

std::set<std::string> split_names(std::string_view text) {
  std::set<std::string> out;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (comma != 0) out.emplace(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return out;
}

namespace {

bool is_dns_label(std::string_view name) {
  constexpr std::size_t kLongest = 63;
  return name.size() <= kLongest && name.find('.') == std::string_view::npos && k8s::is_dns_subdomain(name);
}

}  // namespace

OptionSpec namespaces(std::string name, std::string group, std::string doc, Field<std::string> field) {
  OptionSpec out = text(std::move(name), std::move(group), "NAMESPACE,…", std::move(doc), field);
  out.set = [field](Options& o, const std::string& value) -> std::string {
    for (const std::string& one : split_names(value)) {
      if (!is_dns_label(one)) {
        return fmt::format("'{}' is not a valid namespace name; separate several names with commas", one);
      }
    }
    field(o) = value;
    return {};
  };
  return out;
}

OptionSpec boolean(std::string name, std::string group, std::string doc, Field<bool> field) {
  auto set = [field](Options& o, const std::string& value) -> std::string {
    const std::string lower = k8s::lower(value);
    if (lower != "true" && lower != "false") return fmt::format("'{}' is neither true nor false", value);
    field(o) = lower == "true";
    return {};
  };
  return {.name = std::move(name),
          .group = std::move(group),
          .type = "BOOL",
          .doc = std::move(doc),
          .flag = true,
          .set = set,
          .get = [field](const Options& o) { return read(field, o) ? "true" : "false"; }};
}

OptionSpec duration(std::string name, std::string group, std::string doc, Field<Duration> field, Range range) {
  auto set = [field, range](Options& o, const std::string& value) -> std::string {
    const std::optional<Duration> parsed = k8s::parse_go_duration(value);
    if (!parsed) return fmt::format("'{}' is not a duration such as 500ms, 10s or 1h30m", value);
    const bool off = range.or_zero && *parsed == Duration::zero();
    if (!off && (*parsed < range.least || *parsed > range.most)) {
      return fmt::format("'{}' must be {}from {} to {}", value, range.or_zero ? "0 or " : "",
                         k8s::format_go_duration(range.least), k8s::format_go_duration(range.most));
    }
    field(o) = *parsed;
    return {};
  };
  return {.name = std::move(name),
          .group = std::move(group),
          .type = "DURATION",
          .doc = fmt::format("{} ({}{} to {})", doc, range.or_zero ? "0 or " : "", k8s::format_go_duration(range.least),
                             k8s::format_go_duration(range.most)),
          .set = set,
          .get = [field](const Options& o) { return k8s::format_go_duration(read(field, o)); }};
}

OptionSpec integer(std::string name, std::string group, std::string doc, Field<std::int64_t> field, std::int64_t least,
                   std::int64_t most) {
  auto set = [field, least, most](Options& o, const std::string& value) -> std::string {
    std::int64_t number = 0;
    const char* end = value.data() + value.size();
    const auto [rest, code] = std::from_chars(value.data(), end, number);
    if (code != std::errc{} || rest != end || number < least || number > most) {
      return fmt::format("'{}' is not a whole number from {} to {}", value, least, most);
    }
    field(o) = number;
    return {};
  };
  return {.name = std::move(name),
          .group = std::move(group),
          .type = "NUMBER",
          .doc = std::move(doc),
          .set = set,
          .get = [field](const Options& o) { return std::to_string(read(field, o)); }};
}

OptionSpec share(std::string name, std::string group, std::string doc, Field<IntOrPercent> field) {
  auto set = [field](Options& o, const std::string& value) -> std::string {
    const std::optional<IntOrPercent> parsed = IntOrPercent::parse(value);
    if (!parsed || parsed->value < 1) {
      return fmt::format("'{}' is neither a count of at least 1 nor a percentage from 1% to 100%", value);
    }
    field(o) = *parsed;
    return {};
  };
  return {.name = std::move(name),
          .group = std::move(group),
          .type = "COUNT|PERCENT",
          .doc = std::move(doc),
          .set = set,
          .get = [field](const Options& o) { return read(field, o).to_string(); }};
}

}  // namespace gso::option_kind

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
