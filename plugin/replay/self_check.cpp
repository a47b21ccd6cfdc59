// The self-check: before a plan serves, its graph runs once on the recording's own inputs, and every tensor is compared with what eager
// made; what it writes to its inputs is compared too, on copies of what they held before (entry_state.h). Skipped, and the report says why,
// where the inputs are no longer what they were.
#include "plugin/replay/plan.h"
#include <cmath>

namespace framejit {
namespace {

double load(const char* p, DType d) {
    switch (d) {
    case DType::b1:
    case DType::u8: return *(const uint8_t*)p;
    case DType::i8: return *(const int8_t*)p;
    case DType::i16: return *(const int16_t*)p;
    case DType::i32: return *(const int32_t*)p;
    case DType::i64: return double(*(const int64_t*)p);
    case DType::f32: return *(const float*)p;
    case DType::f64: return *(const double*)p;
    case DType::f16: return double(*(const _Float16*)p);
    case DType::bf16: {
        uint32_t bits = uint32_t(*(const uint16_t*)p) << 16;
        float f;
        __builtin_memcpy(&f, &bits, 4);
        return f;
    }
    default: return 0;
    }
}
double tolerance(DType d) {
    switch (d) {
    case DType::bf16: return 2e-2;
    case DType::f16: return 3e-3;
    case DType::f32:
    case DType::c64: return 1e-4;
    case DType::f64:
    case DType::c128: return 1e-9;
    default: return 0;
    }
}
// A result is as exact as the least exact type on the way to it.
double tolerance(const Recorder& r) {
    double most = 0;
    for (const TensorRow& t : r.tensors) most = std::max(most, tolerance(t.spec.dtype));
    return most;
}
// Memory that torch.empty made holds anything where nobody has written.
bool uninitialised(const Recorder& r, int row) {
    for (const TensorRow& t : r.tensors)
        if (t.storage == r.tensors[size_t(row)].storage && t.op >= 0) {
            const std::string& name = r.ops[size_t(t.op)].schema->name;
            return name.starts_with("aten::empty") || name.starts_with("aten::new_empty");
        }
    return false;
}
// Share of elements that differ by more than the tolerance, relative to the largest magnitude. A comparison in the program may flip a few.
std::string compare(PyObject* want, PyObject* got, double least_exact) {
    TensorSpec a = spec_of(want), b = spec_of(got);
    if (a.dtype != b.dtype || a.sizes != b.sizes || a.strides != b.strides) return "is " + describe(b) + ", eager made " + describe(a);
    TensorView x = view_of(want), y = view_of(got);
    const bool complex = x.dtype == DType::c64 || x.dtype == DType::c128;
    if ((!computable(x.dtype) && !complex) || !x.data || x.device_type != 0) return "";
    const DType part = x.dtype == DType::c64 ? DType::f32 : x.dtype == DType::c128 ? DType::f64 : x.dtype;
    const int size = size_of(part), parts = complex ? 2 : 1;
    const double tol = tolerance(part) > 0 ? least_exact : 0;
    double largest = 0;
    auto at = [&](const TensorView& v, int64_t k) {
        int64_t p = 0, which = k % parts;
        k /= parts;
        for (int d = v.ndim; d-- > 0; k /= v.sizes[d]) p += k % v.sizes[d] * v.strides[d];
        return load((const char*)v.data + (p * parts + which) * size, part);
    };
    const int64_t n = x.numel * parts, step = std::max<int64_t>(1, n / 200000);
    int64_t count = 0, off = 0;
    for (int64_t k = 0; k < n; k += step)
        if (double v = std::fabs(at(x, k)); std::isfinite(v)) largest = std::max(largest, v);
    for (int64_t k = 0; k < n; k += step, ++count) {
        double u = at(x, k), v = at(y, k);
        bool same =
            u == v || (std::isnan(u) && std::isnan(v)) || std::fabs(u - v) <= tol * std::max(std::fabs(u), largest) + (tol ? 1e-30 : 0);
        off += !same;
    }
    if (off == 0 || (tol > 0 && double(off) < 1e-4 * double(count))) return "";
    return "differs in " + std::to_string(off) + " of " + std::to_string(count) + " compared elements (" + describe(a) + ")";
}

// The text of the Python error that is set, which goes; without one an index was out of range.
std::string error_text() {
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    PyRef text = PyRef::steal(value ? PyObject_Str(value) : nullptr);
    std::string why = text ? PyUnicode_AsUTF8(text.get()) : "index out of range";
    PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(tb);
    return why;
}

}  // namespace

std::string RegionPlan::self_check(Recorder& r, std::string& unchecked) const {
    const CapturedGraph& g = program_->captured();
    auto skip = [&](const char* why) {
        unchecked = why;
        return "";
    };
    if (!r.entry.why().empty()) return skip(r.entry.why().c_str());
    std::vector<PyRef> inputs, held, recorded;
    std::vector<PyObject*> list;
    for (int t : g.inputs) {
        if (t < 0) {
            inputs.push_back(r.numbers[~t]);
            held.push_back(inputs.back());
            list.push_back(held.back().get());
            continue;
        }
        PyObject* o = r.tensors[t].constant ? r.tensors[t].constant.get() : PyWeakref_GET_OBJECT(r.tensors[t].weak.get());
        if (o == Py_None || !matches(o, r.tensors[t].spec)) return skip("an input was gone or changed when the recording ended");
        inputs.push_back(PyRef::share(o));
        held.push_back(r.entry.at_entry(o));
        if (!r.entry.why().empty()) return skip(r.entry.why().c_str());
        list.push_back(held.back().get());
    }
    const size_t results = wanted_rows_.size() - deferred_.size() - extra_;
    for (size_t k = 0; k < results; ++k) {
        PyObject* o = PyWeakref_GET_OBJECT(r.tensors[wanted_rows_[k]].weak.get());
        if (o == Py_None) return skip("a result was gone when the recording ended");
        recorded.push_back(PyRef::share(o));
    }
    Objects made;
    const EntryState::Replayed generator(r.entry);
    if (program_->run(list.data(), made)) {
        return "the compiled graph raised: " + error_text();
    }
    const double least_exact = tolerance(r);
    const char* partly = "";
    std::string wrong = deferred_hold(made) ? "" : "a test of a tensor's value has another outcome";
    for (size_t k = 0; k < made.size(); ++k) {
        const bool anything = k < results && uninitialised(r, wanted_rows_[k]);
        if (anything) partly = "a result is memory of torch.empty, which holds anything";
        std::string difference = k < results && !anything ? compare(recorded[k].get(), made[k], least_exact) : "";
        if (!difference.empty() && wrong.empty()) {
            const TensorRow& row = r.tensors[wanted_rows_[k]];
            wrong = "the result of " + (row.op >= 0 ? r.ops[row.op].schema->name : std::string("an input")) + " " + difference;
        }
        Py_DECREF(made[k]);
    }
    for (int w : g.written) {
        std::string difference = compare(inputs[size_t(w)].get(), held[size_t(w)].get(), least_exact);
        if (!difference.empty() && wrong.empty()) wrong = "an input that the region writes " + difference;
    }
    unchecked = partly;
    return wrong;
}

}  // namespace framejit
