//===- Json.cpp - Strict reading and exact writing of JSON ----------------===//

#include "runtime/Json.h"

#include "runtime/Support.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace espalier::runtime {

void JsonNode::fail(const std::string &message) const {
  if (error->empty())
    *error = (where.empty() ? "" : where + ": ") + message;
}

JsonNode JsonNode::get(const char *key) const {
  std::string path = where.empty() ? key : where + "." + key;
  if (value && !value->is_object())
    fail("expects an object");
  if (!value || !value->is_object())
    return JsonNode(nullptr, path, error);
  auto found = value->find(key);
  bool absent = found == value->end() || found->is_null();
  return JsonNode(absent ? nullptr : &*found, path, error);
}

JsonNode JsonNode::at(const char *key) const {
  JsonNode node = get(key);
  if (!node.present())
    node.fail("is missing");
  return node;
}

void JsonNode::onlyKeys(std::initializer_list<const char *> keys) const {
  if (!value)
    return;
  if (!value->is_object())
    return fail("expects an object");
  for (const auto &entry : value->items()) {
    bool known = false;
    for (const char *key : keys)
      known |= entry.key() == key;
    if (!known)
      return fail("unknown key '" + entry.key() + "'");
  }
}

std::string JsonNode::text() const {
  if (value && value->is_string())
    return value->get<std::string>();
  if (value)
    fail("expects a string");
  return "";
}

bool JsonNode::boolean() const {
  if (value && value->is_boolean())
    return value->get<bool>();
  if (value)
    fail("expects true or false");
  return false;
}

double JsonNode::number() const {
  if (value && value->is_number())
    return value->get<double>();
  if (value)
    fail("expects a number");
  return 0;
}

int64_t JsonNode::integer(int64_t low, int64_t high) const {
  if (!value)
    return low > 0 ? low : 0;
  bool fits = value->is_number_integer() &&
              (!value->is_number_unsigned() ||
               value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  if (fits) {
    int64_t number = value->get<int64_t>();
    if (number >= low && number <= high)
      return number;
  }
  fail(format("expects an integer from %lld to %lld",
              static_cast<long long>(low), static_cast<long long>(high)));
  return low > 0 ? low : 0;
}

size_t JsonNode::size() const {
  if (value && value->is_array())
    return value->size();
  if (value)
    fail("expects a list");
  return 0;
}

JsonNode JsonNode::operator[](size_t index) const {
  return JsonNode(&(*value)[index], where + "[" + std::to_string(index) + "]",
                  error);
}

const nlohmann::json &JsonNode::object() const {
  static const nlohmann::json empty = nlohmann::json::object();
  if (value && value->is_object())
    return *value;
  if (value)
    fail("expects an object");
  return empty;
}

JsonNode JsonNode::member(const std::string &key,
                          const nlohmann::json &of) const {
  return JsonNode(&of, where.empty() ? key : where + "." + key, error);
}

JsonDocument::JsonDocument(std::string what, const std::string &text)
    : what(std::move(what)),
      value(nlohmann::json::parse(text, /*cb=*/nullptr,
                                  /*allow_exceptions=*/false)) {
  if (value.is_discarded()) {
    value = nlohmann::json::object();
    error = "is not valid JSON";
  }
}

Status JsonDocument::status() const {
  return error.empty() ? Status::success() : Status::error(what + ": " + error);
}

void appendJsonText(std::string &to, const std::string &text) {
  to += '"';
  for (unsigned char byte : text) {
    if (byte == '"' || byte == '\\') {
      to += '\\';
      to += static_cast<char>(byte);
    } else if (byte < 0x20) {
      to += format("\\u%04x", byte);
    } else {
      to += static_cast<char>(byte);
    }
  }
  to += '"';
}

char *writeJsonNumber(char *to, double value) {
  if (!std::isfinite(value)) {
    std::memcpy(to, "null", 4);
    return to + 4;
  }
  return std::to_chars(to, to + 32, value).ptr;
}

} // namespace espalier::runtime
