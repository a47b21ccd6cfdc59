#include "plugin/replay/tell.h"
#include "framejit/dump.h"
#include "framejit/log.h"
#include "plugin/frame/frame.h"
#include <cctype>
#include <unordered_set>

namespace framejit {
namespace {

std::string utf8(PyObject* text) {
    const char* bytes = text ? PyUnicode_AsUTF8(text) : nullptr;
    if (!bytes) PyErr_Clear();
    return bytes ? bytes : "?";
}

// At most one line and 80 characters of repr(object).
std::string short_repr(PyObject* object) {
    PyRef repr = PyRef::steal(PyObject_Repr(object));
    if (!repr) PyErr_Clear();
    std::string text = repr ? utf8(repr.get()) : std::string(Py_TYPE(object)->tp_name);
    text = text.substr(0, text.find('\n'));
    return text.size() > 80 ? text.substr(0, 77) + "..." : text;
}

}  // namespace

std::string region_name(PyCodeObject* code, int entry_unit) {
    std::string name = utf8(code->co_name) + "_" + std::to_string(line_at(code, entry_unit));
    for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
}

std::string text_of(const Break& b) {
    std::string text = b.file + ":" + std::to_string(b.line) + " in " + b.function + ": " + b.reason->text;
    return b.detail.empty() ? text : text + ": " + b.detail;
}

void tell_break(const Break& b) {
    if (!log_on(LogTopic::breaks)) return;
    std::string text = text_of(b);
    if (!b.source_line.empty()) text += "\n    " + b.source_line;
    log_line(LogTopic::breaks, text);
}

void tell_recompile(PyCodeObject* code, const Failure& f) {
    if (log_on(LogTopic::recompiles))
        log_line(LogTopic::recompiles, utf8(code->co_qualname) + ": " + f.source + ": expected " + f.expected + ", got " + f.got);
}

void tell_guards(PyCodeObject* code, const Sources& sources, std::span<const Guard> guards) {
    if (!log_on(LogTopic::guards)) return;
    std::string text = utf8(code->co_qualname) + ": " + std::to_string(guards.size()) + " guards";
    for (const Guard& g : guards) {
        text += std::string("\n    ") + name_of(g.kind) + "  " + sources.path(g.source, local_names(code));
        text += "  " + (g.expected ? short_repr(g.expected.get()) : std::to_string(g.n));
    }
    log_line(LogTopic::guards, text);
}

void tell_bytecode(PyCodeObject* code) {
    if (!dump_on(DumpStage::bytecode)) return;
    static std::unordered_set<PyCodeObject*>& told =
        *new std::unordered_set<PyCodeObject*>;  // kept alive: an address stays one code object
    const Code* decoded = decode(code);
    if (!decoded || !told.insert(code).second) return;
    Py_INCREF(code);
    std::string text;
    int line = -1;
    for (size_t i = 0; i < decoded->ins.size(); ++i) {
        const Ins& ins = decoded->ins[i];
        if (int at = line_at(code, ins.unit); at != line) text += "line " + std::to_string(line = at) + "\n";
        text += "    " + std::to_string(i) + "  " + name_of(ins.op) + " " + std::to_string(ins.arg);
        if (ins.target >= 0) text += " -> " + std::to_string(ins.target);
        text += "\n";
    }
    dump(DumpStage::bytecode, utf8(code->co_qualname), text);
}

}  // namespace framejit
