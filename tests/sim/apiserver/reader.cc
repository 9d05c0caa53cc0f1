// Reads. Lists follow the table of resourceVersion and resourceVersionMatch in Kubernetes' API concepts.
#include "tests/sim/apiserver/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/builtin_kinds.h"

namespace gso::sim {
namespace {

using nlohmann::json;

const Noun kListOptions{"meta.k8s.io", "", "ListOptions"};

Outcome<std::uint64_t> parse_revision(const std::string& text) {
  if (text.empty()) return 0;
  std::uint64_t revision = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (error != std::errc() || stop != text.data() + text.size()) {
    return std::unexpected(
        bad_request(fmt::format("invalid resource version: resourceVersion: Invalid value: {0}: "
                                "strconv.ParseUint: parsing {0}: invalid syntax",
                                json(text).dump())));
  }
  return revision;
}

ApiError too_large(std::uint64_t wanted, std::uint64_t current) {
  ApiError error(504, "Timeout", fmt::format("Timeout: Too large resource version: {}, current: {}", wanted, current),
                 json::object());
  error.cause("ResourceVersionTooLarge", "Too large resource version").retry_after(1);
  return error;
}

// Continue tokens: base64url without padding of {"v","rv","start"}; rv -1 continues without consistency.
std::string write_token(std::int64_t revision, const std::string& start) {
  std::string token = base64(json({{"v", "meta.k8s.io/v1"}, {"rv", revision}, {"start", start}}).dump());
  std::replace(token.begin(), token.end(), '+', '-');
  std::replace(token.begin(), token.end(), '/', '_');
  token.erase(std::find(token.begin(), token.end(), '='), token.end());
  return token;
}

struct ContinueToken {
  std::int64_t revision = 0;
  std::string start;
};

std::optional<ContinueToken> read_token(const std::string& text) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (char c : text) {
    if (c == '+') c = '-';
    if (c == '/') c = '_';
    if (c == '=') break;
    const auto value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    group = (group << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 0xff);
    }
  }
  const json token = json::parse(bytes, nullptr, false);
  if (!token.is_object() || !token.contains("rv") || !token["rv"].is_number_integer() || !token.contains("start") ||
      !token["start"].is_string()) {
    return std::nullopt;
  }
  return ContinueToken{token["rv"].get<std::int64_t>(), token["start"].get<std::string>()};
}

// With a token that goes on from the same place without consistency.
ApiError expired_continue(const std::string& start) {
  ApiError error = expired(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list "
      "without the "
      "continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
      "Continuing "
      "with the provided token results in an inconsistent list - objects that were created, modified, or deleted "
      "between the "
      "time the first chunk was returned and now may show up in the list.");
  error.set_continue(write_token(-1, start));
  return error;
}

std::uint64_t stale(const Storage& storage, const Bucket& bucket, std::uint64_t revisions) {
  const std::uint64_t now = storage.revision();
  return std::max(bucket.forgotten(), now > revisions ? now - revisions : 0);
}

// Options of a list that exclude each other.
FieldErrors list_option_errors(const RequestInfo& info) {
  FieldErrors errors;
  const std::string match = info.option("resourceVersionMatch");
  const std::string version = info.option("resourceVersion");
  const char* field = "resourceVersionMatch";
  if (!match.empty()) {
    if (version.empty())
      errors.push_back(forbidden_value(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    if (!info.option("continue").empty())
      errors.push_back(forbidden_value(field, "resourceVersionMatch is forbidden when continue is provided"));
    if (match != "Exact" && match != "NotOlderThan")
      errors.push_back(not_supported(field, match, {"Exact", "NotOlderThan", ""}));
    if (match == "Exact" && version == "0")
      errors.push_back(forbidden_value(field, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
  }
  if (!info.option("sendInitialEvents").empty())
    errors.push_back(forbidden_value("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  return errors;
}

// The same for a watch.
FieldErrors watch_option_errors(const RequestInfo& info) {
  FieldErrors errors;
  const std::string match = info.option("resourceVersionMatch");
  const bool initial = !info.option("sendInitialEvents").empty();
  const char* field = "resourceVersionMatch";
  if (initial && match != "NotOlderThan")
    errors.push_back(forbidden_value(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  if (match.empty()) return errors;
  if (!initial) {
    errors.push_back(
        forbidden_value(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
  }
  if (match != "NotOlderThan") errors.push_back(not_supported(field, match, {"NotOlderThan"}));
  return errors;
}

// Which state a list reads: a revision in the past, or nullopt for now.
struct View {
  std::optional<std::uint64_t> revision;
  std::string start;
};

Outcome<View> choose_view(const Storage& storage, const RequestInfo& info, std::int64_t limit) {
  const std::string match = info.option("resourceVersionMatch");
  const std::string version = info.option("resourceVersion");
  if (auto errors = list_option_errors(info); !errors.empty())
    return std::unexpected(invalid(kListOptions, "", errors));
  if (const std::string token = info.option("continue"); !token.empty()) {
    if (!version.empty() && version != "0")
      return std::unexpected(bad_request("specifying resource version is not allowed when using continue"));
    auto parsed = read_token(token);
    if (!parsed) {
      return std::unexpected(
          bad_request("invalid continue token: continue key is not valid: invalid character "
                      "'\\u009e' looking for beginning of value"));
    }
    View view{std::nullopt, parsed->start};
    if (parsed->revision > 0) view.revision = static_cast<std::uint64_t>(parsed->revision);
    return view;
  }
  auto revision = parse_revision(version);
  if (!revision) return std::unexpected(revision.error());
  if (*revision > storage.revision()) return std::unexpected(too_large(*revision, storage.revision()));
  View view;
  if (*revision > 0 && (match == "Exact" || (match.empty() && limit > 0))) view.revision = *revision;
  return view;
}

ListPage cut_page(const Bucket::Objects& objects, const RequestInfo& info, const Selection& selection, const View& view,
                  std::int64_t limit, std::uint64_t revision) {
  ListPage page;
  page.revision = revision;
  auto [it, last] = Bucket::range(objects, info.key.ns);
  // A token of another namespace would start outside of the range.
  if (!view.start.empty() && !info.key.ns.empty() && !view.start.starts_with(info.key.ns + "/"))
    it = last;
  else if (!view.start.empty())
    it = objects.lower_bound(view.start);
  for (; it != last; ++it) {
    if (!selection.matches(*it->second)) continue;
    if (limit > 0 && std::ssize(page.objects) == limit) {
      page.continue_token =
          write_token(static_cast<std::int64_t>(revision), storage_key(page.objects.back()->key()) + '\0');
      if (selection.everything()) page.remaining = std::distance(it, last);
      break;
    }
    page.objects.push_back(it->second);
  }
  return page;
}

// Each kind's conversion words it in its own way.
ApiError unknown_field(const Resource& resource, const std::string& path) {
  const bool own_fields = !resource.selectable.empty() || resource.custom;
  if (own_fields) return bad_request(fmt::format("field label not supported: {}", path));
  return bad_request(
      fmt::format("\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", path));
}

}  // namespace

Outcome<Selection> parse_selection(const Resource& resource, const RequestInfo& info) {
  Selection selection;
  auto labels = LabelSelector::parse(info.option("labelSelector"));
  if (!labels) return std::unexpected(bad_request("unable to parse requirement: " + labels.error()));
  auto fields = FieldSelector::parse(info.option("fieldSelector"));
  if (!fields) return std::unexpected(bad_request(fields.error()));
  for (const auto& r : fields->requirements()) {
    const bool known =
        r.path == "metadata.name" || (resource.namespaced && r.path == "metadata.namespace") ||
        std::find(resource.selectable.begin(), resource.selectable.end(), r.path) != resource.selectable.end();
    if (!known) return std::unexpected(unknown_field(resource, r.path));
  }
  selection.labels = std::move(*labels);
  selection.fields = std::move(*fields);
  return selection;
}

Outcome<ObjectPtr> Reader::get(const Resource& resource, const RequestInfo& info, const RequestContext& context) const {
  const Bucket& bucket = storage_.bucket(resource.bucket);
  auto revision = parse_revision(info.option("resourceVersion"));
  if (!revision) return std::unexpected(revision.error());
  if (*revision > storage_.revision()) return std::unexpected(too_large(*revision, storage_.revision()));
  ObjectPtr object = bucket.find(info.key);
  if (context.stale_revisions > 0) {
    const auto past = bucket.at(stale(storage_, bucket, context.stale_revisions));
    auto it = past->find(storage_key(info.key));
    object = it == past->end() ? nullptr : it->second;
  }
  if (object == nullptr) return std::unexpected(not_found(resource.noun(), info.key.name));
  return object;
}

Outcome<ListPage> Reader::list(const Resource& resource, const RequestInfo& info, const RequestContext& context) const {
  auto selection = parse_selection(resource, info);
  if (!selection) return std::unexpected(selection.error());
  std::int64_t limit = 0;
  const std::string limit_text = info.option("limit");
  std::from_chars(limit_text.data(), limit_text.data() + limit_text.size(), limit);
  auto view = choose_view(storage_, info, limit);
  if (!view) return std::unexpected(view.error());
  const Bucket& bucket = storage_.bucket(resource.bucket);
  if (context.stale_revisions > 0 && !view->revision) view->revision = stale(storage_, bucket, context.stale_revisions);
  if (!view->revision || *view->revision == storage_.revision())
    return cut_page(bucket.objects(), info, *selection, *view, limit, storage_.revision());
  const auto past = bucket.at(*view->revision);
  if (!past) {
    return std::unexpected(view->start.empty()
                               ? expired(fmt::format("The resourceVersion for the provided list is too old."))
                               : expired_continue(view->start));
  }
  return cut_page(*past, info, *selection, *view, limit, *view->revision);
}

Outcome<std::shared_ptr<WatchStream>> Reader::watch(const ResourcePtr& resource, const RequestInfo& info,
                                                    const Format& format, const RequestContext& context) {
  auto selection = parse_selection(*resource, info);
  if (!selection) return std::unexpected(selection.error());
  const bool initial = info.flag("sendInitialEvents");
  const bool initial_given = !info.option("sendInitialEvents").empty();
  if (auto errors = watch_option_errors(info); !errors.empty())
    return std::unexpected(invalid(kListOptions, "", errors));
  auto revision = parse_revision(info.option("resourceVersion"));
  if (!revision) {  // A watch reports it from deeper down than a list does.
    const std::string text = revision.error().message();
    return std::unexpected(ApiError(500, "", text.substr(text.find(": ") + 2)));
  }
  if (initial && *revision > storage_.revision()) return std::unexpected(too_large(*revision, storage_.revision()));
  WatchOptions options;
  options.resource = resource;
  options.ns = info.key.ns;
  options.labels = std::move(selection->labels);
  options.fields = std::move(selection->fields);
  if (!info.key.name.empty()) options.fields = *FieldSelector::parse("metadata.name=" + info.key.name);
  options.revision = *revision;
  options.initial_events = initial;
  options.from_state = initial || (!initial_given && *revision == 0);
  if (initial_given && !initial && *revision == 0) options.revision = storage_.revision();
  if (initial && context.stale_revisions > 0)
    options.state_at = stale(storage_, storage_.bucket(resource->bucket), context.stale_revisions);
  options.bookmarks = info.flag("allowWatchBookmarks");
  options.format = format;
  std::int64_t seconds = 0;
  const std::string timeout = info.option("timeoutSeconds");
  if (std::from_chars(timeout.data(), timeout.data() + timeout.size(), seconds).ec != std::errc() && !timeout.empty()) {
    return std::unexpected(
        bad_request(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", json(timeout).dump())));
  }
  // Without a limit of the client's the real server takes a random time from 30 minutes to an hour.
  options.timeout =
      seconds > 0 ? std::chrono::seconds(seconds) : std::chrono::seconds(1800 + storage_.revision() * 7919 % 1800);
  return hub_.open(std::move(options));
}

}  // namespace gso::sim
