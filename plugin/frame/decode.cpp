// Code objects -> neutral instructions, once per code object.
//
// The decoded form lives in a side table, and the code type's tp_dealloc takes rows out of it. The official places do not work: co_extra
// calls the free functions of every registered tool for every code object that has any extra, and weak references show in gc.get_objects().
// Bytes come from PyCode_GetCode(): co_code_adaptive is specialised in place.
#include "plugin/frame/decode.h"

#include <array>
#include <memory>
#include <unordered_map>

namespace framejit {
namespace {

// A null row: cannot be decoded. Never destroyed: daemon threads run Python code while the process exits.
auto& decoded = *new std::unordered_map<PyObject*, std::unique_ptr<Code>>;
destructor original_dealloc;

// The table's front: every Python call looks its code up, and a hash map is a noticeable part of a short call.
struct Recent {
    PyObject* code = nullptr;
    const Code* decoded = nullptr;
};
std::array<Recent, 1024> recent;

Recent& recent_slot(PyObject* code) { return recent[((uintptr_t)code >> 5) % recent.size()]; }

void forget_code(PyObject* code) {
    decoded.erase(code);
    if (Recent& slot = recent_slot(code); slot.code == code) slot = {};
    original_dealloc(code);
}

Code* remember(PyObject* code, std::unique_ptr<Code> row) {
    if (!original_dealloc) {
        original_dealloc = PyCode_Type.tp_dealloc;
        PyCode_Type.tp_dealloc = forget_code;
    }
    return (decoded[code] = std::move(row)).get();
}

struct Parsed {
    std::unique_ptr<Code> code = std::make_unique<Code>();
    std::vector<int> jumps_to;  // per instruction: the code unit jumped to, or -1
};

bool parse_instructions(const uint8_t* bytes, int units, Parsed& out) {
    Code& code = *out.code;
    code.at.reserve(units + 1);
    code.ins.reserve(units / 2 + 1);  // a little more than half are caches
    out.jumps_to.reserve(units / 2 + 1);
    for (int unit = 0; unit < units;) {
        const int start = unit;
        int arg = 0;
        while (bytes[2 * unit] == kExtendedArg) {
            arg = (arg | bytes[2 * unit + 1]) << 8;
            ++unit;
        }
        const Opcode* row = opcode_row(bytes[2 * unit]);
        if (!row) return false;
        arg |= bytes[2 * unit + 1];
        const int next = unit + 1 + row->caches;
        out.jumps_to.push_back(row->jump ? next + row->jump * arg : -1);
        // Every unit maps to an instruction, caches too: gen.throw() leaves a frame's position inside them.
        code.at.resize(unit + 1, (int)code.ins.size());
        code.ins.push_back({row->op, arg, unit, start, -1});
        unit = next;
    }
    code.at.resize(units + 1, (int)code.ins.size());
    return true;
}

bool link_jumps(const std::vector<int>& jumps_to, Code& code) {
    for (size_t i = 0; i < jumps_to.size(); ++i) {
        if (jumps_to[i] < 0) continue;
        if (jumps_to[i] >= (int)code.at.size()) return false;
        code.ins[i].target = code.at[jumps_to[i]];
    }
    return true;
}

// CPython's Objects/exception_handling_notes.txt: varints of 6 bits, big end first; (start, size, target, depth * 2 + lasti) per entry.
void parse_handlers(PyObject* table, Code& code) {
    auto* p = (const unsigned char*)PyBytes_AS_STRING(table);
    const auto* end = p + PyBytes_GET_SIZE(table);
    auto varint = [&p] {
        int value = *p & 63;
        while (*p & 64) value = (value << 6) | (*++p & 63);
        ++p;
        return value;
    };
    const int units = (int)code.at.size() - 1;
    code.handler.resize(units + 1);
    while (p < end) {
        const int start = varint();
        const int size = varint();
        const int target = varint();
        const int depth = varint();
        for (int unit = start; unit < start + size && unit < units; ++unit)
            code.handler[unit] = {code.at[target], depth >> 1, (depth & 1) != 0};
    }
}

std::unique_ptr<Code> parse(PyCodeObject* co) {
    PyObject *type, *value, *traceback;  // a frame may be decoded while an exception is thrown into it
    PyErr_Fetch(&type, &value, &traceback);
    PyRef bytes = PyRef::steal(PyCode_GetCode(co));
    PyErr_Restore(type, value, traceback);
    if (!bytes) return nullptr;
    Parsed parsed;
    const int units = (int)(PyBytes_GET_SIZE(bytes.get()) / 2);
    if (!parse_instructions((const uint8_t*)PyBytes_AS_STRING(bytes.get()), units, parsed)) return nullptr;
    if (!link_jumps(parsed.jumps_to, *parsed.code)) return nullptr;
    parse_handlers(co->co_exceptiontable, *parsed.code);
    return std::move(parsed.code);
}

Code* find_or_parse(PyObject* code) {
    if (auto row = decoded.find(code); row != decoded.end()) return row->second.get();
    return remember(code, parse((PyCodeObject*)code));
}

}  // namespace

const Code* decode(PyCodeObject* co) {
    auto* code = (PyObject*)co;
    Recent& slot = recent_slot(code);
    if (slot.code != code) slot = {code, find_or_parse(code)};
    return slot.decoded;
}

size_t decoded_count() { return decoded.size(); }

void mark_native(PyCodeObject* co) {
    if (Code* code = find_or_parse((PyObject*)co)) code->native = true;
}

const char* name_of(Op op) {
    static const char* const names[] = {
#define INSTRUCTION(name) #name,
#include "plugin/interpret/instruction.def"
#undef INSTRUCTION
    };
    return names[(int)op];
}

}  // namespace framejit
