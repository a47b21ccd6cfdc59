// The extension module framejit._C. Importing it needs no torch: parts that do look it up when they are first used.
#include "plugin/module.h"
#include "plugin/guard/python.h"
#include "plugin/interpret/watcher.h"
#include "plugin/options.h"
#include "plugin/replay/program.h"
#include "plugin/replay/retired.h"
#include "plugin/replay/tools.h"
#include "plugin/torch/add_torch.h"

namespace framejit {
namespace {

using AddPart = int (*)(PyObject*);
constexpr AddPart kParts[] = {
    add_options, add_interpreter, add_torch, add_guard, add_callable, add_replay, add_retired, add_tools,
};

PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "framejit._C",
    .m_doc = "The native half of framejit.",
    .m_size = -1,
};

int add_parts(PyObject* module) {
    for (AddPart add : kParts)
        if (add(module) < 0) return -1;
    return 0;
}

void apply_environment() {
    if (option_word(Option::interpret) == "all") interpret_everything(true);
}

}  // namespace
}  // namespace framejit

PyMODINIT_FUNC PyInit__C() {
    using namespace framejit;
    if (init_interpreter() < 0) return nullptr;
    PyRef module = PyRef::steal(PyModule_Create(&definition));
    if (!module || add_parts(module.get()) < 0) return nullptr;
    apply_environment();
    return module.release();
}
