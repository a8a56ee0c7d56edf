//===- JobReader.h - Reads a job from its YAML tree -------------*- C++ -*-===//

#ifndef ESPALIER_LIB_JOB_JOBREADER_H
#define ESPALIER_LIB_JOB_JOBREADER_H

#include "espalier/Job/Job.h"

namespace espalier {

/// Reads the parts of a job; each method reads one section.
class JobReader {
public:
  using Field = YamlReader::Field;

  JobReader(Job &job, Messages &messages, llvm::StringRef file)
      : job(job), yaml(messages, file) {}

  void readRoot(const YamlNode &node);

private:
  void readDims(const YamlNode &node, const std::string &path);
  void readTrain(const YamlNode &node, const std::string &path);
  void readLoss(const YamlNode &node, const std::string &path);
  void readOptimizer(const YamlNode &node, const std::string &path);
  void readSchedule(const YamlNode &node, const std::string &path);
  void readTied(const YamlNode &node, const std::string &path);
  void readInit(const YamlNode &node, const std::string &path);
  void readData(const YamlNode &node, const std::string &path);
  void readCluster(const YamlNode &node, const std::string &path);
  void readLayout(const YamlNode &node, const std::string &path);
  void readZero(const YamlNode &node, const std::string &path);
  void readTensorDegrees(const YamlNode &node, const std::string &path);
  void readShardings(const YamlNode &node, const std::string &path);
  void readMemory(const YamlNode &node, const std::string &path);

  /// Fields that store what they read.
  Field textField(llvm::StringRef key, bool required, std::string &target);
  Field boolField(llvm::StringRef key, bool &target);
  Field numberField(llvm::StringRef key, bool required, double &target,
                    double least, double most, bool open = false);
  Field textsField(llvm::StringRef key, std::vector<std::string> &target);

  Job &job;
  YamlReader yaml;
};

} // namespace espalier

#endif // ESPALIER_LIB_JOB_JOBREADER_H
