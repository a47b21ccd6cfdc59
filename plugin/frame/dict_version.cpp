// Where a dict keeps its version, for callers that compare many of them (guards). The tag is taken from one counter of the process, so no
// two states of any dicts share one.
#include "plugin/frame/frame.h"

namespace framejit {

const uint64_t* dict_version_word(PyObject* dict) {
#if PY_VERSION_HEX < 0x030D0000
    return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
    return nullptr;
#endif
}

}  // namespace framejit
