#ifndef HERALD_CFUZZER_H
#define HERALD_CFUZZER_H

#include <stddef.h>
#include <stdint.h>

/// libFuzzer as a library (https://llvm.org/docs/LibFuzzer.html#using-libfuzzer-as-a-library).
int LLVMFuzzerRunDriver(int *_Nonnull argc, char *_Nullable *_Nullable *_Nonnull argv,
                        int (*_Nonnull body)(const uint8_t *_Nullable bytes, size_t count));

#endif
