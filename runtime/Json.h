//===- Json.h - Strict reading and exact writing of JSON --------*- C++ -*-===//
//
// Reading: a JsonNode is a place in a document. Asking it for what it is not
// records an error, with the place's path, in the document; the answer is then
// a harmless default, so that a reader asks for all it needs and looks at the
// error once at the end. Nothing here throws.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_JSON_H
#define ESPALIER_RUNTIME_JSON_H

#include "runtime/Status.h"

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

namespace espalier::runtime {

class JsonDocument;

class JsonNode {
public:
  /// A member; `at` records an error where it is absent or null, `get` then
  /// gives a node that is not present.
  JsonNode at(const char *key) const;
  JsonNode get(const char *key) const;
  bool present() const { return value != nullptr; }
  bool isObject() const { return value && value->is_object(); }
  bool isArray() const { return value && value->is_array(); }
  bool isString() const { return value && value->is_string(); }

  /// Records an error for any member that is not in `keys`.
  void onlyKeys(std::initializer_list<const char *> keys) const;

  std::string text() const;
  bool boolean() const;
  double number() const;
  int64_t integer(int64_t low = INT64_MIN, int64_t high = INT64_MAX) const;

  /// Of an array; not an array is an error.
  size_t size() const;
  JsonNode operator[](size_t index) const;

  /// Members of an object in the order of their names.
  const nlohmann::json &object() const;
  JsonNode member(const std::string &key, const nlohmann::json &of) const;

  void fail(const std::string &message) const;

private:
  friend class JsonDocument;
  JsonNode(const nlohmann::json *value, std::string where, std::string *error)
      : value(value), where(std::move(where)), error(error) {}

  const nlohmann::json *value; // null: not present
  std::string where;           // "tensors[3].shape"
  std::string *error;          // the document's first error; empty: none
};

class JsonDocument {
public:
  /// `what` names the text in messages, for instance a path.
  JsonDocument(std::string what, const std::string &text);
  JsonDocument(const JsonDocument &) = delete;
  JsonDocument &operator=(const JsonDocument &) = delete;

  JsonNode root() { return JsonNode(&value, "", &error); }
  Status status() const;

private:
  std::string what;
  nlohmann::json value;
  std::string error;
};

/// Appends a JSON string, quoted and escaped.
void appendJsonText(std::string &to, const std::string &text);

/// Writes the shortest text that reads back as `value`, or `null` if it is not
/// finite, to `to` (of at least 32 bytes); returns its end. Allocates nothing.
char *writeJsonNumber(char *to, double value);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_JSON_H
