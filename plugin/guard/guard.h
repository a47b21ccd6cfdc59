// Guards: rows {kind, source, expected} over an interned tree of sources, one evaluator, which can also explain a failure.
// A source says where a value is found from the frame at entry. Evaluation runs no Python code (exact str/int keys, no descriptors written
// in Python) and holds no tensor. After a full check succeeds the set is *armed*: it remembers dict version tags, type versions and
// pointers, so that a later call with the same root objects costs a compare per dict instead of a look-up per row (part.h).
#pragma once
#include "plugin/flat_map.h"
#include "plugin/py.h"
#include "plugin/torch/tensor.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace framejit {

enum class SourceKind : uint8_t {  // what each one resolves to: source.def
#define SOURCE(name, place, meaning) name,
#include "plugin/guard/source.def"
#undef SOURCE
};
const char* name_of(SourceKind);
struct GuardSource {
    SourceKind kind = SourceKind::None;
    int parent = 0;
    PyRef key;
    int index = 0;
    int other = 0;
};

class Sources {  // interned; 0 is None; a parent has a smaller number than its children
public:
    Sources();
    int slot(int index);
    int constant(PyObject*);
    int child(SourceKind, int parent, PyObject* key = nullptr, int index = 0);
    int combine(SourceKind, int left, int right, int op);  // Binary, Compare, Unary (right 0)
    const GuardSource& operator[](int i) const { return rows_[i]; }
    int size() const { return int(rows_.size()); }
    void freeze();  // nothing more comes: drops what only interning needs
    // "self.layers[3].weight"; names: the root code's local names (tuple), for slots
    std::string path(int source, PyObject* names) const;

private:
    int intern(GuardSource);
    std::vector<GuardSource> rows_;
    std::unique_ptr<FlatMap> table_;  // hash -> source; null when frozen
};

enum class GuardKind : uint8_t {  // what each one demands: guard.def
#define GUARD(name, arming, meaning) name,
#include "plugin/guard/guard.def"
#undef GUARD
};
const char* name_of(GuardKind);
struct Guard {
    GuardKind kind;
    int source;
    PyRef expected;
    int64_t n = 0;
};
struct Failure {
    std::string guard, source, expected, got;
};  // printable; "self.scale: expected int 2, got 3"

struct GuardSetCounts {
    uint64_t evaluations = 0;  // parts read in full
    uint64_t repairs = 0;      // dicts read again because their version had moved
};

class GuardSet {
public:
    GuardSet() = default;  // nothing may be asked of it
    // wanted: sources whose values the plan reads after a successful check (tensor inputs, targets of events). Rows are checked in order.
    GuardSet(const Sources&, std::vector<Guard>, std::vector<TensorSpec>, std::vector<int> wanted, PyRef slot_names);
    // slots: the root frame's slots (or the callable's bound arguments in slot order). Needs the GIL; leaves no Python error behind.
    bool check(PyObject* const* slots);
    PyObject* const* values() const;  // of `wanted`, borrowed, valid until something else runs
    size_t wanted() const;
    void release();  // drops what attribute reads made (a fresh p.grad): after values() were used. check() does it too
    Failure explain(PyObject* const* slots) const;  // the first row that fails (guard empty if none does)
    bool dead() const;                              // an object it needs has died: it can never match again
    void disarm();                                  // forget what is armed: the next check evaluates every row
    size_t rows() const;
    GuardSetCounts counts() const;
    int traverse(visitproc, void*) const;  // strong references, for the cycle collector
private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace framejit
