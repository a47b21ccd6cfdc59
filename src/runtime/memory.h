// Memory of the runtime: scratch rows per thread, and the pages of large fresh outputs.
#pragma once
#include <cstdint>

namespace framejit {

void* thread_scratch(int64_t bytes);  // 64-byte aligned; valid until the thread asks again
// Half the time of a kernel that writes a large fresh buffer is page faults: asks for huge pages before the first write.
void prepare_fresh(void*, int64_t bytes);

}  // namespace framejit
