//===- Profile.cpp - Seconds per op ---------------------------------------===//

#include "runtime/Profile.h"

#include "runtime/File.h"
#include "runtime/Json.h"
#include "runtime/Metadata.h"

#include <map>

namespace espalier::runtime {
namespace {

void appendSeconds(std::string &text, const std::vector<double> &ofRanks) {
  text += "[";
  for (size_t i = 0; i < ofRanks.size(); ++i) {
    char number[32];
    text += i ? ", " : "";
    text.append(number, writeJsonNumber(number, ofRanks[i]));
  }
  text += "]";
}

std::vector<double> column(const Segment &segment, size_t entry) {
  std::vector<double> values;
  for (int32_t rank = 0; rank < segment.plan().ranks; ++rank)
    values.push_back(segment.profile(rank)[entry]);
  return values;
}

void appendEntry(std::string &text, bool &first, const std::string &key,
                 const std::vector<double> &seconds) {
  text += first ? "\n    " : ",\n    ";
  first = false;
  appendJsonText(text, key);
  text += ": ";
  appendSeconds(text, seconds);
}

} // namespace

Status writeProfile(const std::string &path, const Segment &segment,
                    const Metadata &metadata, int64_t steps) {
  const size_t ops = metadata.ops.size();
  std::map<std::string, std::vector<double>> kinds;
  std::string text =
      "{\n  \"version\": 1,\n  \"steps\": " + std::to_string(steps) +
      ",\n  \"ops\": [";
  bool first = true;
  for (size_t i = 0; i < ops; ++i) {
    std::vector<double> seconds = column(segment, i + 1);
    std::vector<double> &sum = kinds[metadata.ops[i].kind];
    sum.resize(seconds.size());
    for (size_t rank = 0; rank < seconds.size(); ++rank)
      sum[rank] += seconds[rank];
    text += first ? "\n    {\"op\": " : ",\n    {\"op\": ";
    first = false;
    appendJsonText(text, metadata.ops[i].name);
    text += ", \"class\": ";
    appendJsonText(text, metadata.ops[i].kind);
    text += ", \"seconds\": ";
    appendSeconds(text, seconds);
    text += "}";
  }
  text += "\n  ],\n  \"classes\": {";
  first = true;
  for (const auto &[kind, seconds] : kinds)
    appendEntry(text, first, kind, seconds);
  text += "\n  },\n  \"outside_ops\": {";
  first = true;
  appendEntry(text, first, "load inputs", column(segment, ops + 1));
  appendEntry(text, first, "wait for the other ranks",
              column(segment, ops + 2));
  appendEntry(text, first, "other", column(segment, 0));
  text += "\n  },\n  \"collectives\": {";
  first = true;
  const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter",
                               "all_to_all"};
  for (size_t kind = 0; kind < 4; ++kind)
    appendEntry(text, first, names[kind], column(segment, ops + 3 + 2 * kind));
  text += "\n  }\n}\n";
  return writeFile(path, text);
}

} // namespace espalier::runtime
