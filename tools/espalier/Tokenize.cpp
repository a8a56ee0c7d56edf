//===- Tokenize.cpp - espalier tokenize -----------------------------------===//

#include "espalier/Tokenize/Tokenizer.h"

#include "llvm/Support/raw_ostream.h"

#include "CommandLine.h"
#include "Commands.h"

using namespace llvm;
using namespace espalier;

static int fail(Error error) {
  errs() << toString(std::move(error)) << "\n";
  return InputAtFault;
}

int espalier::runTokenize(ArrayRef<StringRef> words) {
  std::vector<std::string> texts;
  std::optional<std::string> output, vocabulary;
  CommandLine line("tokenize", "text... -o corpus.bin [--vocab F]",
                   "Makes a file of tokens from texts: their bytes, or the "
                   "tokens of a vocabulary");
  line.arguments(texts, 1, SIZE_MAX, "a text");
  line.required("-o", output, "F", "the file of tokens");
  line.option("--vocab", vocabulary, "F",
              "a byte-level BPE vocabulary, in the JSON form of `tokenizers`");
  if (std::optional<int> status = line.parse(words))
    return *status;

  Expected<std::unique_ptr<Tokenizer>> tokenizer =
      vocabulary ? readVocabulary(*vocabulary)
                 : Expected<std::unique_ptr<Tokenizer>>(makeByteTokenizer());
  if (!tokenizer)
    return fail(tokenizer.takeError());
  for (const std::string &remark : (*tokenizer)->remarks())
    errs() << remark << "\n";
  Expected<Corpus> corpus = tokenizeFiles(texts, **tokenizer, *output);
  if (!corpus)
    return fail(corpus.takeError());
  outs() << *output << ": " << corpus->tokens << " tokens from "
         << corpus->bytes << " bytes; dtype: " << corpus->dtype
         << ", vocabulary: " << (*tokenizer)->vocabularySize() << "\n";
  return Done;
}
