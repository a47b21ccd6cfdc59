// Spaces: which loops a kernel has.
#include "src/schedule/lower.h"

namespace framejit {

int64_t Space::points() const {
    int64_t n = 1;
    for (const Axis& a : axes) n *= a.extent;
    return n;
}
int64_t Space::rows() const {
    int64_t n = 1;
    for (const Axis& a : axes)
        if (a.var != red) n *= a.extent;
    return n;
}
bool has_axis(const Space& s, int var) {
    for (const Axis& a : s.axes)
        if (a.var == var) return true;
    return false;
}

namespace {
struct Extent {
    int64_t n;
    bool red;
};

// Row variables are few: the outermost axes are merged until they suffice, and their coordinates are computed at run time.
void merge_outermost(std::vector<Extent>& dims, size_t most) {
    while (dims.size() > most) {
        size_t at = 0;
        while (at + 1 < dims.size() && (dims[at].red || dims[at + 1].red)) at++;
        if (at + 1 >= dims.size()) return;
        dims[at + 1].n *= dims[at].n;
        dims.erase(dims.begin() + int64_t(at));
    }
}

// Gives variables to extents: the reduced one as told, the last of the others the lane (unless the lane is reduced), rows from 0.
Space make_space(std::vector<Extent> dims, int red) {
    std::erase_if(dims, [](const Extent& e) { return e.n == 1 && !e.red; });
    merge_outermost(dims, kRows + (red == kSeq ? 2 : 1));
    Space s;
    s.red = red;
    int lane = -1;
    for (size_t d = 0; d < dims.size(); d++)
        if (red != kLane && !dims[d].red) lane = int(d);
    int row = 0;
    for (size_t d = 0; d < dims.size(); d++) s.axes.push_back({dims[d].n, dims[d].red ? red : int(d) == lane ? kLane : row++});
    return s;
}
}  // namespace

Space space_of_shape(const Shape& shape) {
    std::vector<Extent> dims;
    for (int64_t n : shape) dims.push_back({n, false});
    return make_space(std::move(dims), -1);
}

Space space_of_reduction(const Node& n) {
    const Shape& in = n.in[0]->shape;
    const int64_t dim = n.at.i[0];
    if (in[dim] <= 1) return space_of_shape(n.shape);
    std::vector<Extent> dims;
    int64_t inner = 1;
    for (size_t d = 0; d < in.size(); d++) {
        dims.push_back({in[d], int64_t(d) == dim});
        if (int64_t(d) > dim) inner *= in[d];
    }
    return make_space(std::move(dims), inner == 1 ? kLane : kSeq);
}

Space apply(const Space& s, const Request& r) {
    Space out = s;
    if (r.kind == Request::Column) {
        for (Axis& a : out.axes)
            if (a.var == r.var) a.var = kSeq;
        out.red = kSeq;
    }
    if (r.kind == Request::Split) {
        unsigned used = 0;
        for (const Axis& a : s.axes) used |= bit(a.var);
        int fresh = 0;
        while (used & bit(fresh)) fresh++;
        for (size_t k = 0; k < out.axes.size(); k++) {
            if (out.axes[k].var != r.var) continue;
            out.axes[k].extent /= r.inner;
            out.axes[k].var = fresh;
            out.axes.insert(out.axes.begin() + int64_t(k) + 1, {r.inner, r.var});
            break;
        }
    }
    return out;
}

}  // namespace framejit
