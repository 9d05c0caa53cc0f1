// What the projected objects do beyond holding values.
#include "reconcilers/model/objects.h"

namespace gso {

std::int64_t& ResourceCounts::operator[](const Interned& resource) {
  auto it = std::ranges::lower_bound(entries_, resource, {}, &Entry::first);
  if (it == entries_.end() || it->first != resource) it = entries_.insert(it, {resource, 0});
  return it->second;
}

ResourceCounts::Entries::const_iterator ResourceCounts::find(const Interned& resource) const {
  return std::ranges::find(entries_, resource, &Entry::first);
}

}  // namespace gso
