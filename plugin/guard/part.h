// How a set of rows is evaluated, and how it is armed.
//
// Sources are Live or Proven (source.def). A Proven value hangs below something with a version, so it can be known without looking at it:
// whoever compares the version has proved the value. Live values (arguments, list items, cells, C attributes) are read on every call: that
// is a load or two each, and nothing has to be held. The rows are cut into parts, each one a tree of Proven sources below one *root*: the
// constants, or a Live value (usually `self`). Parts are checked in order; a part's Live sources and rows come after its Proven ones.
//
// A part is armed by root object: a Binding remembers, for one root, the words that prove everything below it.
//   {address of a dict's version tag, tag}       {address of an object's type pointer, type}
//   {address of an object's dict slot, dict}     {address of a function's code (...), code}      {class, version}
// They are compared in order, parents first, and the first difference ends it: a word is read only when the words before it proved that its
// object is alive. Dict tags and class versions are unique in the process, so a dead object whose address came back cannot pass for itself,
// and a binding holds no reference at all: it keeps no model alive, and a part keeps several, one for each module that shares the code.
// What holds a version may not be *looked at* through a pointer that only another pointer vouches for; therefore only kinds whose children
// are proved by (address, type, own words) are Proven.
//
// A dict whose tag moved (train() and eval() again, a counter that the plan itself wrote) is repaired: its guarded items are read again,
// and if they and their rows are as before, the new tag is taken. Everything else that differs evaluates the part in full.
#pragma once
#include "plugin/guard/read.h"
#include "plugin/guard/row.h"

namespace framejit::guards {

struct Step {
    enum Op : uint8_t { Slot, Read, Check, Tensor } op;
    int a;      // Slot, Read, Tensor: the source; Check: the row
    int b = 0;  // Slot: its number; Tensor: the spec
};

struct Word {
    using Loaded = uint64_t __attribute__((may_alias));
    const Loaded* at;
    uint64_t expected;
};
static_assert(sizeof(void*) == sizeof(Word::Loaded));

struct Segment {  // words up to `end`, then the class that proves the look-ups after it
    size_t end;
    PyTypeObject* type;  // null in the last segment
    uint32_t version;
};

struct Binding {
    PyObject* key = nullptr;
    std::vector<Word> words;
    std::vector<int> owners;  // per word: the dict source whose tag it is, or -1
    std::vector<Segment> segments;
    std::vector<PyObject*> values;     // of the part's sources, borrowed: alive once the words are proved
    std::vector<PyTypeObject*> types;  // theirs
    std::vector<int> unproved;         // rows that have to be evaluated on every call for these values
};

struct Part {
    static constexpr size_t kBindings = 16;
    int root = 0;              // Live source, 0 for constants
    bool by_type = false;      // only its class matters
    std::vector<int> sources;  // Proven, parents first
    std::vector<Step> proven, live;
    std::vector<int> exports;  // Proven sources that are read outside of `proven`
    std::vector<Binding> bindings;
    int current = -1;  // the binding whose exports are in the value array
    size_t victim = 0;
    size_t misses = 0;  // in a row: roots that no binding knew
};

// Everything that does not change after construction, and the parts.
struct Layout {
    Sources sources;
    std::vector<Py_hash_t> hashes;  // of the keys
    std::vector<Row> rows;
    std::vector<TensorSpec> specs;
    std::vector<int> wanted;
    std::vector<int> pairs;  // rows
    std::vector<Part> parts;
    struct Home {
        int part = -1, local = -1;
    };  // local: position among the part's Proven sources; -1: Live
    std::vector<Home> homes;
    std::vector<std::vector<int>> items;   // per dict source: its Proven items
    std::vector<std::vector<int>> checks;  // per Proven source: its rows among `proven`
};
Layout make_layout(const Sources&, const std::vector<Guard>&, std::vector<TensorSpec>, const std::vector<int>& wanted);

struct Evaluation {                // the state of one check
    std::vector<PyObject*> value;  // per source
    std::vector<PyRef> made;
    GuardSetCounts* counts;
};

bool bind(const Layout&, Part&, Evaluation&);  // proves or evaluates the Proven sources and rows of a part
bool run(const Layout&, const std::vector<Step>&, PyObject* const* slots, Evaluation&);

}  // namespace framejit::guards
