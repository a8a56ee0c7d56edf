// RUN: espalier-opt %s --espalier-build-update --verify-diagnostics

// expected-error @+1 {{expects a function @grad}}
module {}
