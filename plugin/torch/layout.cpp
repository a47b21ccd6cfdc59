// The probe. A script makes sample tensors and says what torch answers for each field; a field is where all answers of its rows are found.
// Fields without a number of their own (autograd meta, flag, grad_fn, tangent, version counter) are what changes when a tensor takes a step
// that changes just that.
#include "plugin/torch/layout.h"
#include "plugin/torch/torch.h"
#include <cstring>
#include <malloc.h>
#include <set>
#include <vector>

namespace framejit {

Layout layout;

namespace {

// The objects stay alive in the lists while their memory is scanned. Values are chosen to be rare inside a tensor.
constexpr const char* kSamples = R"(
def prepare(torch):
    from torch.utils._python_dispatch import _disable_current_modes
    def samples(probe):
        with torch.inference_mode(False), torch.enable_grad(), torch._C.DisableTorchFunction(), _disable_current_modes():
            def new(*sizes, dtype=torch.float32, device="cpu"):
                return torch.empty(sizes, dtype=dtype, device=device)
            keys = lambda t: torch._C._dispatch_keys(t).raw_repr()
            buffer = new(1000)
            views = [buffer[17:50], buffer.as_strided((4, 6), (7, 19), 123), buffer[5:46]]
            plain = [new(3, 5), new(7, 2, 9), new(11, dtype=torch.int64), new(2, 3, 4, 6, 13, dtype=torch.bfloat16)] + views
            metas = [new(2, device="meta"), new(2, 2, device="meta", dtype=torch.int8)]
            kinds = [torch.float32, torch.int64, torch.bfloat16, torch.bool, torch.complex64, torch.float16, torch.uint8]
            typed = [new(3, dtype=k) for k in kinds] + metas
            # a storage holds {data, context}, the same address for torch's own blocks: a borrowed block tells them apart
            borrowed = torch.frombuffer(bytearray(96), dtype=torch.uint8)
            stores = [t.untyped_storage() for t in plain + [borrowed]]
            rows = {
                "sizes": [(t, t.shape[0], 8) for t in plain],
                "storage": [(t, t.untyped_storage()._cdata, 8) for t in plain],
                "offset": [(t, t.storage_offset(), 8) for t in views],
                "numel": [(t, t.numel(), 8) for t in plain],
                "key_set": [(t, keys(t), 8) for t in plain + metas + [torch.zeros(2, device="cpu").to_sparse()]],
                "dtype": [(t, t.dtype, 2) for t in typed],
                "device": [(t, 0xff00, 2) for t in plain] + [(t, 0xff0e, 2) for t in metas],
                "data": [(s, s.data_ptr(), 8) for s in stores],
                "bytes": [(s, s.nbytes(), 8) for s in stores],
            }
            # the same tensors before and after a step, so that padding cannot mislead
            states = [new(3), new(4, 4), new(2)]
            leaf = new(1).requires_grad_()
            steps = {
                "meta": (states, lambda t: t.requires_grad_()),
                "flag": (states, lambda t: t.requires_grad_(False)),
                "tangent": (states[:2], lambda t: t.copy_(dual)),
                "grad_fn": (states[2:], lambda t: t.mul_(leaf)),
            }
            counted = [new(4), new(5), new(3, 3)]
            for k, t in enumerate(counted):
                for _ in range(17 + 40 * k):
                    t.zero_()
            aliases = [t.detach() for t in counted]
            versions = [t._version for t in counted]
            # A tangent lives no longer than its level. forward_ad.make_dual itself would import a compiler.
            level = torch._C._enter_dual_level()
            try:
                dual = torch._VF._make_dual(new(1), new(1), level=level)
                return probe(rows, steps, counted, aliases, versions)
            finally:
                torch._C._exit_dual_level(level=level)
    return samples
)";

using Offsets = std::set<int>;

Offsets places(const void* block, uint64_t value, int width) {
    Offsets found;
    int size = int(malloc_usable_size(const_cast<void*>(block)));
    for (int offset = 0; offset + width <= size; offset += width) {
        uint64_t word = 0;
        std::memcpy(&word, static_cast<const char*>(block) + offset, width);
        if (word == value) found.insert(offset);
    }
    return found;
}
Offsets nonzero_words(const void* block) {
    Offsets found;
    int size = int(malloc_usable_size(const_cast<void*>(block)));
    for (int offset = 0; offset + 8 <= size; offset += 8)
        if (load<uint64_t>(block, offset)) found.insert(offset);
    return found;
}
void keep_common(Offsets& a, const Offsets& b) {
    std::erase_if(a, [&](int offset) { return !b.contains(offset); });
}
bool only(const Offsets& candidates, int& field) {
    if (candidates.size() != 1) return false;
    field = *candidates.begin();
    return true;
}

// The address behind `_cdata` of a tensor or storage.
void* block_of(PyObject* object) {
    PyRef number = PyRef::steal(PyObject_GetAttrString(object, "_cdata"));
    return number ? PyLong_AsVoidPtr(number.get()) : nullptr;
}
std::vector<void*> blocks_of(PyObject* list) {
    std::vector<void*> blocks;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) blocks.push_back(block_of(PyList_GET_ITEM(list, i)));
    return blocks;
}
uint64_t expected_value(PyObject* value) {
    return PyLong_Check(value) ? PyLong_AsUnsignedLongLongMask(value) : uint64_t(torch_code(value));
}

bool find_row(PyObject* rows, const char* name, int& field) {
    PyObject* list = PyDict_GetItemString(rows, name);
    if (!list || PyList_GET_SIZE(list) == 0) return false;
    Offsets left;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        PyObject* sample = PyList_GET_ITEM(list, i);
        void* block = block_of(PyTuple_GET_ITEM(sample, 0));
        if (!block) return false;
        Offsets here = places(block, expected_value(PyTuple_GET_ITEM(sample, 1)), int(PyLong_AsLong(PyTuple_GET_ITEM(sample, 2))));
        if (i == 0)
            left = here;
        else
            keep_common(left, here);
    }
    return only(left, field);
}

bool plausible_pointer(uint64_t word) { return word >= 4096 && word >> 47 == 0 && word % 8 == 0; }

// A detached alias shares the version counter with its base, and otherwise only what all tensors share and the storage.
bool find_version(const std::vector<void*>& base, const std::vector<void*>& alias, PyObject* versions) {
    int found = 0;
    for (int offset = 0; offset <= layout.key_set; offset += 8) {
        if (offset == layout.storage) continue;
        std::set<uint64_t> distinct;
        bool shared = true;
        for (size_t i = 0; i < base.size(); ++i) {
            uint64_t word = load<uint64_t>(base[i], offset);
            shared = shared && word == load<uint64_t>(alias[i], offset) && plausible_pointer(word);
            distinct.insert(word);
        }
        if (!shared || distinct.size() != base.size()) continue;
        Offsets counts;
        for (size_t i = 0; i < base.size(); ++i) {
            uint64_t version = PyLong_AsUnsignedLongLongMask(PyList_GET_ITEM(versions, Py_ssize_t(i)));
            Offsets here = places(load<void*>(base[i], offset), version, 4);
            if (i == 0)
                counts = here;
            else
                keep_common(counts, here);
        }
        for (int count : counts) {
            layout.version = offset;
            layout.count = count;
            ++found;
        }
    }
    return found == 1;
}

// An owning pointer: one word, or the two of a std::shared_ptr, of which the first is the object (grad_fn in torch 2.10).
bool only_pointer(const Offsets& candidates, int& field) {
    if (candidates.empty() || candidates.size() > 2) return false;
    field = *candidates.begin();
    return candidates.size() == 1 || *candidates.rbegin() == field + 8;
}

// Takes a step with each of its tensors. What changed as described in the block of every one of them?
struct Change {
    const char* step;
    Offsets (*before)(const void*);
    Offsets (*after)(const void*);
    bool in_meta;  // in AutogradMeta, otherwise in TensorImpl
};
Offsets zero_words(const void* block) { return places(block, 0, 8); }
Offsets zero_bytes(const void* block) { return places(block, 0, 1); }
Offsets one_bytes(const void* block) { return places(block, 1, 1); }

Offsets changed(PyObject* steps, const Change& change) {
    PyObject* step = PyDict_GetItemString(steps, change.step);
    PyObject* tensors = PyTuple_GET_ITEM(step, 0);
    Offsets left;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i) {
        PyObject* tensor = PyList_GET_ITEM(tensors, i);
        void* block = change.in_meta ? load<void*>(block_of(tensor), layout.meta) : block_of(tensor);
        if (!block) return {};
        Offsets here = change.before(block);
        PyRef done = PyRef::steal(PyObject_CallOneArg(PyTuple_GET_ITEM(step, 1), tensor));
        if (!done) return {};
        keep_common(here, change.after(block));
        if (i == 0)
            left = here;
        else
            keep_common(left, here);
    }
    return left;
}
bool find_autograd(PyObject* steps) {
    return only(changed(steps, {"meta", zero_words, nonzero_words, false}), layout.meta) &&
           only(changed(steps, {"flag", one_bytes, zero_bytes, true}), layout.flag) &&
           only_pointer(changed(steps, {"tangent", zero_words, nonzero_words, true}), layout.tangent) &&
           only_pointer(changed(steps, {"grad_fn", zero_words, nonzero_words, true}), layout.grad_fn);
}

bool probe(PyObject* made) {
    PyObject *rows, *steps, *counted, *aliases, *versions;
    if (!PyArg_ParseTuple(made, "OOOOO", &rows, &steps, &counted, &aliases, &versions)) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(counted); ++i)
        if (impl_of(PyList_GET_ITEM(counted, i)) != block_of(PyList_GET_ITEM(counted, i))) return false;
    return find_row(rows, "sizes", layout.sizes) && find_row(rows, "storage", layout.storage) && find_row(rows, "offset", layout.offset) &&
           find_row(rows, "numel", layout.numel) && find_row(rows, "key_set", layout.key_set) && find_row(rows, "dtype", layout.dtype) &&
           find_row(rows, "device", layout.device) && find_row(rows, "data", layout.data) && find_row(rows, "bytes", layout.bytes) &&
           find_autograd(steps) && find_version(blocks_of(counted), blocks_of(aliases), versions);
}

PyObject* probe_samples(PyObject*, PyObject* made) {
    bool found = probe(made);
    PyErr_Clear();
    return PyBool_FromLong(found);
}
PyMethodDef probe_def = {"probe", probe_samples, METH_VARARGS, nullptr};

}  // namespace

bool probe_layout() {
    PyRef samples = PyRef::steal(run_script(kSamples, "prepare"));
    PyRef callback = PyRef::steal(PyCFunction_New(&probe_def, nullptr));
    PyRef found = samples && callback ? PyRef::steal(PyObject_CallOneArg(samples.get(), callback.get())) : PyRef();
    PyErr_Clear();
    return found.get() == Py_True;
}

}  // namespace framejit
