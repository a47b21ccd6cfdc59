// Scratch rows per thread. `prepare_fresh` is in framejit/api.h.
#pragma once
#include <cstdint>

namespace framejit {

void* thread_scratch(int64_t bytes);  // 64-byte aligned; valid until the thread asks again

}  // namespace framejit
