// The text form of a graph, one line per node, which parses back:
//
//   graph name
//   call 0 aten::mm id=3 mutates arg=[3,4]/[4,1]+0 result=f32[3,5]/[5,1]
//   %2 = add f32[3,4] %0 %1 (ints) <floats>
//   return %2 %1->0
//
// `->k` is Output::into. Nodes are numbered as they are printed, so a printed text is a fixed point of print and parse.
// Inputs and extern calls are always printed; anything else only when an output or an extern call needs it.
#include <charconv>
#include <map>

#include "src/passes/rebuild.h"

namespace framejit {
namespace {

std::string list(std::span<const int64_t> v) {
    std::string s;
    for (size_t i = 0; i < v.size(); i++) s += (i ? "," : "") + std::to_string(v[i]);
    return s;
}
std::string number(double v) {
    char buffer[40];
    auto r = std::to_chars(buffer, buffer + sizeof buffer, v);
    return {buffer, r.ptr};
}
std::string window(const Window& w) { return "[" + list(w.sizes) + "]/[" + list(w.strides) + "]+" + std::to_string(w.offset); }

std::string call_line(const ExternCall& c, size_t index) {
    std::string s = "call " + std::to_string(index) + " " + c.name + " id=" + std::to_string(c.id);
    if (c.mutates) s += " mutates";
    if (c.raises) s += " raises";
    for (const Window& w : c.args) s += " arg=" + window(w);
    for (size_t i = 0; i < c.results.size(); i++) s += " result=" + std::string(name_of(c.dtypes[i])) + window(c.results[i]);
    return s + "\n";
}

std::string node_line(const Node& n, const std::vector<int>& number_of) {
    std::string s = "%" + std::to_string(number_of[n.id]) + " = " + std::string(n.op->name) + " ";
    s += std::string(name_of(n.dtype)) + "[" + list(n.shape) + "]";
    for (Ref a : n.in) s += " %" + std::to_string(number_of[a->id]);
    if (!n.at.i.empty()) s += " (" + list(n.at.i) + ")";
    if (!n.at.f.empty()) {
        s += " <";
        for (size_t i = 0; i < n.at.f.size(); i++) s += (i ? "," : "") + number(n.at.f[i]);
        s += ">";
    }
    return s + "\n";
}

// ---- parsing: one line at a time, tokens split at blanks ----

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}
    Graph run() {
        while (!text_.empty()) {
            const size_t end = std::min(text_.find('\n'), text_.size());
            split(text_.substr(0, end));
            text_.remove_prefix(std::min(end + 1, text_.size()));
            line_++;
            if (!words_.empty() && words_[0][0] != '#') statement();
        }
        return std::move(graph_);
    }

private:
    using Word = std::string_view;
    [[noreturn]] void bad(const std::string& what) const { throw GraphError("line " + std::to_string(line_) + ": " + what); }

    void split(Word line) {
        words_.clear();
        while (true) {
            const size_t begin = line.find_first_not_of(' ');
            if (begin == line.npos) return;
            line.remove_prefix(begin);
            const size_t end = std::min(line.find(' '), line.size());
            words_.push_back(line.substr(0, end));
            line.remove_prefix(end);
        }
    }
    template <class T> T value(Word w) const {
        T v{};
        auto r = std::from_chars(w.data(), w.data() + w.size(), v);
        if (r.ec != std::errc() || r.ptr != w.data() + w.size()) bad("not a number: " + std::string(w));
        return v;
    }
    template <class T> std::vector<T> values(Word w) const {  // "1,2,3", without brackets
        std::vector<T> out;
        while (!w.empty()) {
            const size_t comma = std::min(w.find(','), w.size());
            out.push_back(value<T>(w.substr(0, comma)));
            w.remove_prefix(std::min(comma + 1, w.size()));
        }
        return out;
    }
    Word bracketed(Word& w) const {  // takes "[...]" off the front
        const size_t end = w.find(']');
        if (w.empty() || w[0] != '[' || end == w.npos) bad("expected [ in " + std::string(w));
        Word inside = w.substr(1, end - 1);
        w.remove_prefix(end + 1);
        return inside;
    }
    DType dtype(Word& w) const {  // takes the name off the front
        const size_t end = std::min(w.find('['), w.size());
        for (int k = 0; k < kDTypeCount; k++) {
            if (name_of(DType(k)) != w.substr(0, end)) continue;
            w.remove_prefix(end);
            return DType(k);
        }
        bad("no dtype " + std::string(w.substr(0, end)));
    }
    Window parse_window(Word w) const {
        Window out;
        out.sizes = values<int64_t>(bracketed(w));
        if (w.empty() || w[0] != '/') bad("expected / before the strides");
        w.remove_prefix(1);
        out.strides = values<int64_t>(bracketed(w));
        if (w.empty() || w[0] != '+') bad("expected + before the offset");
        out.offset = value<int64_t>(w.substr(1));
        return out;
    }
    Ref reference(Word w) const {
        auto it = names_.find(w);
        if (it == names_.end()) bad("no value " + std::string(w));
        return it->second;
    }

    void statement() {
        if (words_[0] == "graph")
            graph_.name = words_.size() > 1 ? std::string(words_[1]) : "";
        else if (words_[0] == "call")
            call();
        else if (words_[0] == "return")
            outputs();
        else
            node();
    }
    void call() {
        if (words_.size() < 4 || value<size_t>(words_[1]) != calls_.size()) bad("expected: call <next number> <name> id=<id>");
        ExternCall c{};
        c.name = words_[2];
        for (size_t i = 3; i < words_.size(); i++) {
            Word w = words_[i];
            if (w == "mutates")
                c.mutates = true;
            else if (w == "raises")
                c.raises = true;
            else if (w.starts_with("id="))
                c.id = value<int>(w.substr(3));
            else if (w.starts_with("arg="))
                c.args.push_back(parse_window(w.substr(4)));
            else if (w.starts_with("result=")) {
                w.remove_prefix(7);
                c.dtypes.push_back(dtype(w));
                c.results.push_back(parse_window(w));
            } else
                bad("what is " + std::string(w));
        }
        calls_.push_back(std::move(c));
    }
    void outputs() {
        for (size_t i = 1; i < words_.size(); i++) {
            const size_t arrow = words_[i].find("->");
            const bool as_is = arrow == Word::npos && words_[i].ends_with('!');  // the memory itself
            Output out{reference(words_[i].substr(0, as_is ? words_[i].size() - 1 : arrow))};
            out.as_is = as_is;
            if (arrow != Word::npos) out.into = value<int>(words_[i].substr(arrow + 2));
            graph_.outputs.push_back(out);
        }
    }
    void node() {
        if (words_.size() < 4 || words_[1] != "=") bad("expected: %x = op dtype[shape] ...");
        Word type = words_[3];
        const DType d = dtype(type);
        const Shape shape = values<int64_t>(bracketed(type));
        std::vector<Ref> in;
        Attrs at;
        for (size_t i = 4; i < words_.size(); i++) {
            Word w = words_[i];
            if (w[0] == '%')
                in.push_back(reference(w));
            else if (w[0] == '(')
                at.i = values<int64_t>(w.substr(1, w.size() - 2));
            else if (w[0] == '<')
                at.f = values<double>(w.substr(1, w.size() - 2));
            else
                bad("what is " + std::string(w));
        }
        Ref n = make(words_[2], std::move(in), std::move(at), d, shape);
        if (n->dtype != d || n->shape != shape) bad("the op's rules say " + std::string(name_of(n->dtype)) + "[" + list(n->shape) + "]");
        names_[words_[0]] = n;
    }
    Ref make(Word name, std::vector<Ref> in, Attrs at, DType d, const Shape& shape) {
        const OpDef* op = find_op(name);
        if (!op) bad("no op " + std::string(name));
        const int64_t next_call = int64_t(graph_.externs.size());
        const bool in_order = at.i.size() == 1 && at.i[0] == next_call && next_call < int64_t(calls_.size());
        if (op == &op_extern && !in_order) bad("extern calls must come in order");
        try {
            if (op == &op_extern) return graph_.extern_call(calls_[next_call], std::move(in));
            return graph_.make(*op, std::move(in), std::move(at), d, shape);
        } catch (const GraphError& e) {
            bad(e.what());
        }
    }

    std::string_view text_;
    std::vector<Word> words_;
    std::map<Word, Ref> names_;
    std::vector<ExternCall> calls_;
    Graph graph_;
    int line_ = 0;
};

}  // namespace

std::string print(const Graph& g) {
    std::string s = "graph " + g.name + "\n";
    for (size_t i = 0; i < g.externs.size(); i++) s += call_line(g.externs[i], i);
    const std::vector<char> live = live_nodes(g);
    std::vector<int> number_of(g.nodes.size());
    int next = 0;
    for (const Node& n : g.nodes) {
        if (!live[n.id]) continue;
        number_of[n.id] = next++;
        s += node_line(n, number_of);
    }
    s += "return";
    for (const Output& o : g.outputs) {
        s += " %" + std::to_string(number_of[o.value->id]);
        if (o.into >= 0) s += "->" + std::to_string(o.into);
        if (o.as_is) s += "!";
    }
    return s + "\n";
}

Graph parse(std::string_view text) { return Parser(text).run(); }

}  // namespace framejit
