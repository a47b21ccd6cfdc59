// The state of a thread that decides what torch's operators do: six words read in place, or torch's own functions when a symbol is missing.
//
// The words: dispatch keys included and excluded by the thread (autocast, modes, functorch, inference), autograd's flag byte (grad mode,
// inference, forward mode, view replay), torch functions disabled, default dtype, number of torch function modes. Each was seen to change
// when its state is toggled (self-test at start-up); otherwise the words come from torch's Python functions and GlobalStateGuard is always
// asked too. A thread-local variable has another address in every thread, so addresses are cached per thread.
#include "plugin/torch/reader.h"
#include "plugin/torch/torch.h"

namespace framejit {

namespace {

enum Word { kIncluded, kExcluded, kFlags, kDisabled, kDefaultDType, kDepth, kWords };

// What a differing word means, for explanations.
constexpr const char* kWordNames[kWords] = {"dispatch keys included by the thread (a mode, functorch)",
                                            "dispatch keys excluded by the thread (autocast, no dispatch)",
                                            "autograd mode",
                                            "torch functions disabled",
                                            "default dtype",
                                            "number of torch function modes"};
// The words when torch is asked instead.
constexpr const char* kAskedNames[kWords] = {"dispatch modes (a mode)", "functorch transforms",
                                             "autograd mode",           "torch functions disabled or enabled",
                                             "default dtype",           "number of torch function modes"};

char* (*autograd_state)() = nullptr;
uint8_t (*functions_disabled)() = nullptr;
int64_t (*function_modes)() = nullptr;
int8_t (*default_dtype)() = nullptr;
int flag_at = 0;  // of the flag byte in AutogradState
uint8_t grad_bit = 0, inference_bit = 0;
bool words_work = false;
uint64_t autocast_keys = 0;
uint64_t inference_included = 0;  // the included word in inference mode
uint64_t mode_keys = 0;           // bits of the included word while any dispatch mode is on

struct ThreadWords {
    uint64_t* keys = nullptr;  // {included, excluded}, stored as difference from torch's defaults
    char* flags = nullptr;
};
thread_local ThreadWords thread_words;

ThreadWords& here() {
    if (!thread_words.keys) [[unlikely]] {
        thread_words.keys = static_cast<uint64_t*>(torch_symbol("_ZN3c104impl26raw_local_dispatch_key_setE"));
        thread_words.flags = autograd_state() + flag_at;
    }
    return thread_words;
}

// Torch's own functions, for a torch whose symbols differ.
struct Asked {
    Builtin grad, inference, modes, dispatch_modes, default_dtype, any_autocast, functorch, functions_on;
} asked;

uint64_t ask(const Builtin& function) {
    if (!function) return 0;
    PyRef answer = PyRef::steal(function.call_no_args());
    int code = answer ? torch_code(answer.get()) : 0;
    uint64_t value = !answer                      ? ~0ull
                     : code >= 0                  ? uint64_t(code)
                     : PyLong_Check(answer.get()) ? PyLong_AsUnsignedLongLongMask(answer.get())
                                                  : ~0ull;
    PyErr_Clear();
    return value;
}

void read_words(uint64_t* words) {
    if (words_work) [[likely]] {
        ThreadWords& thread = here();
        words[kIncluded] = thread.keys[0];
        words[kExcluded] = thread.keys[1];
        words[kFlags] = uint8_t(*thread.flags);
        words[kDisabled] = functions_disabled();
        words[kDefaultDType] = uint64_t(default_dtype());
        words[kDepth] = uint64_t(function_modes());
        return;
    }
    words[kIncluded] = ask(asked.dispatch_modes);
    words[kExcluded] = ask(asked.functorch);
    words[kFlags] = ask(asked.grad) | ask(asked.inference) << 1;
    words[kDisabled] = ask(asked.functions_on);
    words[kDefaultDType] = ask(asked.default_dtype);
    words[kDepth] = ask(asked.modes);
}

// Toggles every state and returns what the words were: [plain, no_grad, inference, autocast, dispatch mode, function mode, disabled,
// dtype].
constexpr const char* kToggle = R"(
def toggle(torch):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.overrides import TorchFunctionMode
    def toggled(look):
        out = [look()]
        def seen(context):
            with context:
                out.append(look())
        with torch.inference_mode(False), torch.enable_grad():
            out[0] = look()
            seen(torch.no_grad())
            seen(torch.inference_mode())
            for device in "cpu", "cuda", "xpu", "mps":
                if device == "cpu" or torch.get_device_module(device).is_available():
                    seen(torch.autocast(device, enabled=not torch.is_autocast_enabled(device)))
            autocasts = len(out)
            seen(TorchDispatchMode())
            seen(TorchFunctionMode())
            seen(torch._C.DisableTorchFunction())
            old = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64 if old != torch.float64 else torch.float32)
            out.append(look())
            torch.set_default_dtype(old)
            return out, autocasts
    return toggled
)";

PyObject* look(PyObject*, PyObject*) {
    const uint64_t* keys = here().keys;
    const char* state = autograd_state();
    return Py_BuildValue("(KKy#iiL)", (unsigned long long)keys[0], (unsigned long long)keys[1], state, Py_ssize_t(48),
                         int(functions_disabled()), int(default_dtype()), (long long)function_modes());
}
PyMethodDef look_def = {"look", look, METH_NOARGS, nullptr};

uint64_t key_word(PyObject* seen, int word) { return PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(seen, word)); }
const char* state_bytes(PyObject* seen) { return PyBytes_AsString(PyTuple_GET_ITEM(seen, kFlags)); }
bool differs(PyObject* a, PyObject* b, int word) {
    return PyObject_RichCompareBool(PyTuple_GET_ITEM(a, word), PyTuple_GET_ITEM(b, word), Py_NE) == 1;
}

bool self_test() {
    PyRef toggled = PyRef::steal(run_script(kToggle, "toggle"));
    PyRef looker = PyRef::steal(PyCFunction_New(&look_def, nullptr));
    PyRef result = toggled && looker ? PyRef::steal(PyObject_CallOneArg(toggled.get(), looker.get())) : PyRef();
    if (!result) return false;
    PyObject* list = PyTuple_GET_ITEM(result.get(), 0);
    auto at = [&](long i) { return PyList_GET_ITEM(list, i); };
    long autocasts_end = PyLong_AsLong(PyTuple_GET_ITEM(result.get(), 1));
    const char *plain = state_bytes(at(0)), *no_grad = state_bytes(at(1)), *inference = state_bytes(at(2));
    int changed = 0;
    for (int i = 0; i < 48; ++i) {
        if (plain[i] == no_grad[i]) continue;
        flag_at = i;
        ++changed;
    }
    grad_bit = uint8_t(plain[flag_at] & ~no_grad[flag_at]);
    inference_bit = uint8_t(inference[flag_at] & ~plain[flag_at]);  // inference mode turns the grad bit off too
    inference_included = key_word(at(2), kIncluded);
    for (long i = 3; i < autocasts_end; ++i) autocast_keys |= key_word(at(i), kExcluded) ^ key_word(at(0), kExcluded);
    mode_keys = key_word(at(0), kIncluded) ^ key_word(at(autocasts_end), kIncluded);
    auto one_bit = [](uint8_t bits) { return bits && !(bits & (bits - 1)); };
    return changed == 1 && one_bit(grad_bit) && inference_bit && autocast_keys && differs(at(0), at(autocasts_end), kIncluded) &&
           differs(at(0), at(autocasts_end + 1), kDepth) && differs(at(0), at(autocasts_end + 2), kDisabled) &&
           differs(at(0), at(autocasts_end + 3), kDefaultDType);
}

void find_functions() {
    asked.grad = builtin(torch.C, "is_grad_enabled", METH_NOARGS);
    if (!asked.grad) asked.grad = builtin(torch.module, "is_grad_enabled", METH_NOARGS);
    asked.inference = builtin(torch.C, "is_inference_mode_enabled", METH_NOARGS);
    if (!asked.inference) asked.inference = builtin(torch.module, "is_inference_mode_enabled", METH_NOARGS);
    asked.modes = builtin(torch.C, "_len_torch_function_stack", METH_NOARGS);
    asked.dispatch_modes = builtin(torch.C, "_len_torch_dispatch_stack", METH_NOARGS);
    asked.functions_on = builtin(torch.C, "_is_torch_function_enabled", METH_NOARGS);
    asked.default_dtype = builtin(torch.module, "get_default_dtype", METH_NOARGS);
    asked.any_autocast = builtin(torch.C, "_is_any_autocast_enabled", METH_NOARGS);
    PyRef functorch = PyRef::steal(PyImport_ImportModule("torch._C._functorch"));
    if (!functorch) PyErr_Clear();
    Builtin active = builtin(torch.C, "_are_functorch_transforms_active", METH_NOARGS);
    if (!active && functorch) active = builtin(functorch.get(), "_are_functorch_transforms_active", METH_NOARGS);
    asked.functorch = active;
}

// A bound `check` of a new torch GlobalStateGuard, which remembers the state of this moment.
PyRef new_slow_guard() {
    PyRef dynamo = PyRef::steal(PyObject_GetAttrString(torch.C, "_dynamo"));
    PyRef guards = dynamo ? PyRef::steal(PyObject_GetAttrString(dynamo.get(), "guards")) : PyRef();
    PyRef guard = guards ? PyRef::steal(PyObject_CallMethod(guards.get(), "GlobalStateGuard", nullptr)) : PyRef();
    PyRef check = guard ? PyRef::steal(PyObject_GetAttrString(guard.get(), "check")) : PyRef();
    PyErr_Clear();
    return check;
}
bool slow_matches(PyObject* check) {
    PyRef answer = PyRef::steal(PyCFunction_CheckExact(check) && PyCFunction_GET_FLAGS(check) == METH_NOARGS
                                    ? PyCFunction_GET_FUNCTION(check)(PyCFunction_GET_SELF(check), nullptr)
                                    : PyObject_CallNoArgs(check));
    if (!answer) PyErr_Clear();
    return answer.get() == Py_True;
}

}  // namespace

int init_state() {
    find_functions();
    bool found = find_symbol(autograd_state, "_ZN3c1013AutogradState13get_tls_stateEv") &&
                 find_symbol(functions_disabled, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv") &&
                 find_symbol(function_modes, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv") &&
                 find_symbol(default_dtype, "_ZN3c1031get_default_dtype_as_scalartypeEv") &&
                 torch_symbol("_ZN3c104impl26raw_local_dispatch_key_setE");
    words_work = tensor_tier() <= kCAbi && found && self_test();  // the other tiers use no symbols
    PyErr_Clear();
    thread_words = {};  // the flag byte was not known yet
    if (!words_work && !(asked.grad && asked.inference)) {
        PyErr_SetString(PyExc_ImportError, "framejit: this torch does not tell its grad mode");
        return -1;
    }
    return 0;
}

GlobalState global_state(bool full) {
    GlobalState state;
    read_words(state.words);
    if (torch.ready && (full || !words_work || ask(asked.any_autocast))) state.slow = new_slow_guard();
    return state;
}

bool GlobalState::matches() const {
    uint64_t now[kWords];
    read_words(now);
    uint64_t differing = 0;
    for (int i = 0; i < kWords; ++i) differing |= now[i] ^ words[i];
    return differing == 0 && (!slow || slow_matches(slow.get()));
}

std::string GlobalState::difference() const {
    uint64_t now[kWords];
    read_words(now);
    uint64_t flags = now[kFlags] ^ words[kFlags];
    const uint8_t grad = words_work ? grad_bit : 1, inference = words_work ? inference_bit : 2;
    auto mode = [&](const char* name, uint8_t bit) {
        bool on = now[kFlags] & bit;
        return std::string(name) + (on ? " is on, recorded with it off" : " is off, recorded with it on");
    };
    if (flags & inference) return mode("inference mode", inference);
    if (flags & grad) return mode("grad mode", grad);
    if (words_work && ((now[kExcluded] ^ words[kExcluded]) & autocast_keys)) return "autocast differs from the recorded state";
    const auto& names = words_work ? kWordNames : kAskedNames;
    for (int i = 0; i < kWords; ++i)
        if (now[i] != words[i]) return std::string(names[i]) + ": " + std::to_string(now[i]) + ", recorded " + std::to_string(words[i]);
    if (slow && !slow_matches(slow.get())) return "autocast, determinism or matmul precision settings differ from the recorded ones";
    return "";
}

bool grad_enabled() { return words_work ? uint8_t(*here().flags) & grad_bit : ask(asked.grad); }
bool inference_mode() { return words_work ? uint8_t(*here().flags) & inference_bit : ask(asked.inference); }

bool mode_is_on() {
    if (words_work) [[likely]]
        return (here().keys[0] & mode_keys) || function_modes();
    return ask(asked.dispatch_modes) || ask(asked.modes);
}

bool ordinary_thread() {
    if (!words_work) return false;
    uint64_t included = here().keys[0];
    return (included == 0 || included == inference_included) && function_modes() == 0;
}

namespace {
void set_grad(bool on) {
    if (words_work) {
        char& flags = *here().flags;
        flags = char(on ? flags | grad_bit : flags & ~grad_bit);
        return;
    }
    PyRef args = PyRef::steal(PyTuple_Pack(1, on ? Py_True : Py_False));
    PyRef done = args ? PyRef::steal(torch.set_grad_enabled.call_tuple(args.get())) : PyRef();
    if (!done) PyErr_Clear();
}
}  // namespace

NoGrad::NoGrad() : was_on_(grad_enabled()) {
    if (was_on_) set_grad(false);
}
NoGrad::~NoGrad() {
    if (was_on_) set_grad(true);
}

// In the stored difference a set autocast bit of the excluded word means: no longer excluded, autocast is on.
NoAutocast::NoAutocast() {
    if (words_work) [[likely]] {
        uint64_t& excluded = here().keys[1];
        removed_ = excluded & autocast_keys;
        excluded &= ~removed_;
        return;
    }
    if (!ask(asked.any_autocast)) return;
    context_ = PyRef::steal(PyObject_CallMethod(torch.C, "_DisableAutocast", nullptr));
    PyRef entered = context_ ? PyRef::steal(PyObject_CallMethod(context_.get(), "__enter__", nullptr)) : PyRef();
    if (!entered) {
        PyErr_Clear();
        context_ = {};
    }
}
NoAutocast::~NoAutocast() {
    if (removed_) here().keys[1] |= removed_;
    if (!context_) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyRef left = PyRef::steal(PyObject_CallMethod(context_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
    PyErr_Restore(type, value, traceback);
}

}  // namespace framejit
