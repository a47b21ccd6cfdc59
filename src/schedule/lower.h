// One kernel: from the values that it must produce back to memory, by pulling with symbolic coordinates.
//
// A position is the linear index of an element in its value's shape, as an affine expression of the loop variables. Views keep the
// position, contiguous memory is addressed by it, and everything else splits it into coordinates by divisions that must come out affine.
// Where they do not, lowering asks for another space (`Request`), computes the coordinate at run time, or gives the value up to a kernel of
// its own
// (`needed`): it never fails for a legal graph.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "src/schedule/kernel.h"

namespace framejit {

// The loops of a kernel. Axes are in the order of the elements of a full root; a root without the reduced axis has one element per row.
struct Axis {
    int64_t extent;
    int var;
    bool operator==(const Axis&) const = default;
};
struct Space {
    std::vector<Axis> axes;
    int red = -1;
    int64_t points() const;
    int64_t rows() const;  // points without the reduced axis
    bool operator==(const Space&) const = default;
};
Space space_of_shape(const Shape&);               // one axis per extent, the last one is the lane
Space space_of_reduction(const Node& reduction);  // the last dimension: over the lane; any other one: over kSeq
bool has_axis(const Space&, int var);

struct Request {
    enum Kind { None, Split, Column } kind = None;
    int var = -1;
    int64_t inner = 0;  // Split: extent of the new inner axis
};
Space apply(const Space&, const Request&);

class Cuts {  // the values that have memory of their own
public:
    bool contains(Ref n) const { return set_.count(n) > 0; }
    bool insert(Ref n) { return set_.insert(n).second; }

private:
    std::unordered_set<Ref> set_;
};

struct Lowered {
    Kernel kernel;
    Space space;
    Request request;           // not None: lower again in apply(space, request)
    std::vector<Ref> needed;   // values that must get memory of their own
    std::vector<Ref> visited;  // pointwise nodes that were expanded
    bool too_big = false;
    bool conflict = false;  // a root is needed at other coordinates than its own: these roots cannot share a kernel
};
// `strides`: by root, where its memory is not contiguous (empty otherwise).
Lowered lower(const std::vector<Ref>& roots, const Space&, const Cuts&, const ScheduleOptions&, const std::vector<Shape>& strides = {});
// Lowers until nothing is requested any more.
Lowered lower_in_best_space(const std::vector<Ref>& roots, Space, const Cuts&, const ScheduleOptions&);
// Reads a value from memory and writes it elsewhere.
Lowered lower_copy(Ref value, const Shape& strides, const Cuts&, const ScheduleOptions&);

bool is_memory(Ref);  // input or result
Shape strides_of(Ref memory);

}  // namespace framejit
