//===- AllocationTest.cpp - The step loop allocates nothing ---------------===//

#include "gtest/gtest.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <unistd.h>

#include "FakeProgram.h"

using namespace espalier::test;

static std::atomic<uint64_t> allocations{0};

void *operator new(std::size_t size) {
  ++allocations;
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  std::abort();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

namespace {

EspalierFunction wrapped = nullptr;

void countingUpdate(EspalierContext *context) {
  static uint64_t afterFirstStep = 0;
  wrapped(context);
  if (context->step == 1)
    afterFirstStep = allocations;
  else if (context->step > 1 && allocations != afterFirstStep)
    _exit(77);
}

TEST(StepLoop, AllocatesNothingAfterItsFirstStep) {
  TemporaryFolder folder;
  writeFakeData(folder / "data", 23);
  EspalierProgram program = fakeProgram(2);
  EspalierClass counted = program.classes[0];
  wrapped = counted.update;
  counted.update = countingUpdate;
  program.classes = &counted;
  RunResult run =
      runTraining(program, {"--data", folder / "data", "--steps", "50", "--log",
                            folder / "log", "--tensorboard", folder / "tb",
                            "--profile", folder / "profile"});
  EXPECT_EQ(run.status, 0) << run.errors;
}

} // namespace
