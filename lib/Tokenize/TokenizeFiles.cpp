//===- TokenizeFiles.cpp - Text files to a file of tokens -----------------===//

#include "espalier/Tokenize/Tokenizer.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <array>

using namespace llvm;
using namespace espalier;

namespace {

class ByteTokenizer : public Tokenizer {
public:
  uint32_t vocabularySize() const override { return 256; }

  Error encode(StringRef text, Sink sink) override {
    std::array<uint32_t, 4096> tokens;
    while (!text.empty()) {
      StringRef part = text.take_front(tokens.size());
      std::copy(part.bytes_begin(), part.bytes_end(), tokens.begin());
      sink(ArrayRef(tokens).take_front(part.size()));
      text = text.drop_front(part.size());
    }
    return Error::success();
  }

  std::string decode(ArrayRef<uint32_t> tokens) const override {
    std::string text;
    for (uint32_t token : tokens)
      if (token < 256)
        text += char(token);
    return text;
  }
};

} // namespace

std::unique_ptr<Tokenizer> espalier::makeByteTokenizer() {
  return std::make_unique<ByteTokenizer>();
}

template <typename Word>
static void write(raw_ostream &os, ArrayRef<uint32_t> tokens) {
  std::array<char, 4096 * sizeof(Word)> bytes;
  while (!tokens.empty()) {
    ArrayRef<uint32_t> part = tokens.take_front(4096);
    char *at = bytes.data();
    for (uint32_t token : part) {
      support::endian::write<Word>(at, Word(token), endianness::little);
      at += sizeof(Word);
    }
    os.write(bytes.data(), part.size() * sizeof(Word));
    tokens = tokens.drop_front(part.size());
  }
}

static Error tokenizeFile(StringRef path, Tokenizer &tokenizer, bool wide,
                          raw_ostream &os, Corpus &corpus) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError(path.str() + ": " + buffer.getError().message());
  StringRef text = (*buffer)->getBuffer();
  corpus.bytes += text.size();
  Error error = tokenizer.encode(text, [&](ArrayRef<uint32_t> tokens) {
    corpus.tokens += tokens.size();
    if (wide)
      write<uint32_t>(os, tokens);
    else
      write<uint16_t>(os, tokens);
  });
  if (error)
    return createStringError(path.str() + ": " + toString(std::move(error)));
  return Error::success();
}

/// Writes a file under another name first, so that what has the right name is
/// whole.
static Error writeWhole(StringRef path,
                        function_ref<Error(raw_ostream &)> write) {
  if (sys::fs::exists(path) && !sys::fs::is_regular_file(path))
    return createStringError(path.str() + ": is no regular file");
  auto file = sys::fs::TempFile::create(path + ".part-%%%%%%",
                                        sys::fs::all_read | sys::fs::all_write);
  if (!file)
    return createStringError(path.str() + ": " + toString(file.takeError()));
  Error error = Error::success();
  {
    raw_fd_ostream os(file->FD, /*shouldClose=*/false);
    error = write(os);
    os.flush();
    if (!error && os.has_error())
      error = createStringError(path.str() + ": " + os.error().message());
    os.clear_error();
  }
  if (error)
    return joinErrors(std::move(error), file->discard());
  return file->keep(path);
}

Expected<Corpus> espalier::tokenizeFiles(ArrayRef<std::string> texts,
                                         Tokenizer &tokenizer,
                                         StringRef output) {
  for (StringRef path : texts)
    if (sys::fs::equivalent(path, output))
      return createStringError(path.str() +
                               ": the text would be replaced by its tokens");
  bool wide = tokenizer.vocabularySize() > 0x10000;
  Corpus corpus;
  corpus.dtype = wide ? "uint32" : "uint16";
  Error error = writeWhole(output, [&](raw_ostream &os) -> Error {
    for (StringRef path : texts)
      if (Error wrong = tokenizeFile(path, tokenizer, wide, os, corpus))
        return wrong;
    return Error::success();
  });
  if (error)
    return error;
  return corpus;
}
