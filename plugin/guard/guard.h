// Guards: rows {kind, source, expected} over an interned tree of sources, one evaluator, which can also explain a failure.
// A source says where a value is found from the frame at entry. Evaluation runs no Python code (exact str/int keys, no descriptors written in
// Python) and holds no tensor. After a full check succeeds the set is *armed*: it remembers dict version tags, type versions, dict pointers and
// list contents, so that a later call with the same root objects costs a few compares per dict instead of a look-up per row.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
#include "plugin/py.h"
#include "plugin/torch/tensor.h"

namespace framejit {

// One row per kind in source.def: name, printed form, what it resolves to.
enum class SourceKind : uint8_t {
    None,
    Slot,         // index: slot of the root frame at entry (argument, local, cell, stack)
    Const,        // key: an object that is always there (a globals dict, a class found through C)
    Dict,         // parent.__dict__ (null when absent)
    Item,         // parent[key]: dict with exact str/int/... key (hash and eq run no Python), list or tuple with index
    Attr,         // PyObject_GenericGetAttr-like read decided by a C descriptor (slot, getset, member): parent.key
    TypeOf,       // type(parent)
    TypeLookup,   // _PyType_Lookup(parent is a type ? parent : type(parent), key); null when absent
    Cell,         // contents of closure cell `index` of function parent
    ClosureCell,  // the cell object `index` of function parent's closure
    CellValue,    // contents of the cell object parent
    Default,      // parent.__defaults__[index]
    KwDefault,    // parent.__kwdefaults__[key]
    MethodSelf,   // parent.__self__ of a bound method or builtin
    MethodFunc,   // parent.__func__
    Len,          // len() of a list, tuple, dict, set or str
    Binary,       // parent op other, both exact int, float or bool; index: CPython's NB_ number
    Compare,      // the same; index: Py_LT ... Py_GE
    Unary,        // index: 0 -x, 1 +x, 2 ~x, 3 not x, 4 bool(x), 5 int(x), 6 float(x), 7 abs(x)
    ContextVar,   // value of contextvars.ContextVar parent in this context (null when it has none)
};
struct Source { SourceKind kind = SourceKind::None; int parent = 0; PyRef key; int index = 0; int other = 0; };

class Sources {   // interned; 0 is None
public:
    Sources();
    int slot(int index);
    int constant(PyObject*);
    int child(SourceKind, int parent, PyObject* key = nullptr, int index = 0);
    int combine(SourceKind, int left, int right, int op);   // Binary, Compare, Unary (right 0)
    const Source& operator[](int i) const { return rows_[i]; }
    int size() const { return int(rows_.size()); }
    // "self.layers[3].weight"; names: the root code's local names (tuple), for slots
    std::string path(int source, PyObject* names) const;
private:
    std::vector<Source> rows_;
    std::unordered_multimap<uint64_t, int> table_;
};

enum class GuardKind : uint8_t {
    Type,        // type(source) is expected
    Identity,    // source is expected (weakly held where possible: a set whose object died never matches again)
    Value,       // same exact type and equal: int, float (bits), bool, str, bytes, None, complex, slice, tuples of those, torch.dtype/device
    Tensor,      // matches tensor spec n
    Length,      // len() of list, tuple, dict, set, str is n
    Keys,        // dict: the same keys in the same order (expected: tuple of keys)
    Present,     // source resolves to something
    Missing,     // source (Item of a dict, TypeLookup, Dict, cell) resolves to nothing
    Function,    // python function: same code, defaults, kwdefaults and closure objects (expected: the function as recorded)
    Same,        // source is the same object as source `n`
    NotSame,     // ... is another object than source `n`
    Disjoint,    // tensors source and n do not share storage (one of them is mutated)
    SharedStorage,   // ... share storage, as recorded
};
const char* name_of(GuardKind);
struct Guard { GuardKind kind; int source; PyRef expected; int64_t n = 0; };
struct Failure { std::string guard, source, expected, got; };   // printable; "self.scale: expected int 2, got 3"

class GuardSet {
public:
    // wanted: sources whose values the plan reads after a successful check (tensor inputs, targets of events). Rows are checked in order.
    GuardSet(Sources, std::vector<Guard>, std::vector<TensorSpec>, std::vector<int> wanted, PyRef slot_names);
    // slots: the root frame's slots (or the callable's bound arguments in slot order). Needs the GIL; leaves no Python error behind.
    bool check(PyObject* const* slots);
    PyObject* const* values() const;               // of `wanted`, borrowed, valid until something else runs
    Failure explain(PyObject* const* slots) const; // the first row that fails (guard empty if none does)
    bool dead() const;                             // an object it needs has died: it can never match again
    void disarm();                                 // after the plan itself wrote to guarded places
    size_t rows() const;
    int traverse(visitproc, void*) const;          // strong references, for the cycle collector
private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace framejit
