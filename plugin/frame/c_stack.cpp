// How much of the C stack is left. A PEP 523 hook makes every Python call use it (CPython alone does not), so with a raised recursion limit
// the process would die where plain CPython goes on.
#include "plugin/frame/frame.h"

#include <pthread.h>

namespace framejit {
namespace {

constexpr uintptr_t kUnknown = 1;  // no stack begins there
constinit thread_local uintptr_t lowest = kUnknown;

[[gnu::noinline]] void find_lowest() {
    lowest = 0;  // unlimited, where the system does not say
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes)) return;
    void* address;
    size_t size;
    if (!pthread_attr_getstack(&attributes, &address, &size)) lowest = (uintptr_t)address;
    pthread_attr_destroy(&attributes);
}

}  // namespace

size_t c_stack_left() {
    if (lowest == kUnknown) [[unlikely]]
        find_lowest();
    const auto here = (uintptr_t)__builtin_frame_address(0);
    return here > lowest ? here - lowest : 0;
}

}  // namespace framejit
