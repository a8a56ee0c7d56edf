//===- Metadata.h - What a binary knows about itself ------------*- C++ -*-===//

#ifndef ESPALIER_LIB_DRIVER_METADATA_H
#define ESPALIER_LIB_DRIVER_METADATA_H

#include "espalier/Target/Cpu.h"

#include "Session.h"

namespace espalier::driver {

/// Checks that every tensor of the program can be given its first values and
/// every input its data; adds messages where not.
void checkSources(const Session &session, Messages &messages);

/// The metadata of a session's compiled program, as runtime/README.md has it.
std::string buildMetadata(const Session &session,
                          const cpu::ProgramLayout &layout);

/// Floating-point operations of the products and convolutions of a step, all
/// devices together.
double countStepFlops(const Session &session);

} // namespace espalier::driver

#endif // ESPALIER_LIB_DRIVER_METADATA_H
