// What a region destroys of its own entry: the contents of memory from outside before its first write, and the random generator before its
// first draw. The self-check runs the graph on them. Copies only; no tensor of the program is held.
#pragma once
#include "plugin/torch/operators.h"
#include <functional>
#include <string>
#include <vector>

namespace framejit {

class EntryState {
public:
    // Before an operator runs that writes or draws. Calls torch; no Python error is left.
    void keep(const OpSchema&, PyObject* args, PyObject* kwargs, const std::function<bool(void*)>& made_inside);

    // The tensor as it was at entry: itself, or a view of the copy of its memory. Null, and why(): not known.
    PyRef at_entry(PyObject* tensor);
    const std::string& why() const { return lost_; }  // not empty: something could not be kept

    // Runs with the generator as it was at entry while it lives, and puts today's back.
    class Replayed {
    public:
        explicit Replayed(const EntryState&);
        ~Replayed();
        Replayed(const Replayed&) = delete;

    private:
        PyRef now_;
    };

private:
    struct Content {
        void* storage;  // address of the StorageImpl
        PyRef copy;     // all of it, flat
    };
    void keep_content(PyObject* value, const std::function<bool(void*)>& made_inside);
    void lose(const char* why) {
        if (lost_.empty()) lost_ = why;
    }
    std::vector<Content> contents_;
    PyRef generator_state_;
    int64_t bytes_ = 0;
    std::string lost_;
};

}  // namespace framejit
