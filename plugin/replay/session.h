// A session: one slow call of a compiled function on one thread. It watches the interpreter and, for every frame that is a root, either
// replays a region, or records one, or lets the instruction run as it is.
//   * A frame is driven (a root) if it is the compiled function's, or was entered from a *site*: an instruction during which a recording
//   broke.
//   * At its start and after every site a driven frame stands at a *point*. There an entry is looked up; a miss starts a recording.
//   * A recording ends at the frame's return, or right before one of its sites. Then a plan is built, and the site runs natively, its
//   callees
//     being roots of their own.
//   * A break inside a recording makes the current instruction of every frame on the chain a site and gives the recording up. So a chain of
//     frames is captured after two calls, however deep the break is.
#pragma once
#include "plugin/interpret/watcher.h"
#include "plugin/replay/program.h"
#include <deque>
#include <memory>

namespace framejit {

class Session final : public Watcher {
public:
    explicit Session(FunctionProgram&);
    ~Session() override;
    void* enter(Frame*, int throwflag) override;
    const Ins* before(void* shadow, Frame*, const Ins&, PyObject**& sp) override;
    bool moves(void* shadow, Frame*, const Ins&, PyObject** sp) override;
    void after(void* shadow, Frame*, const Ins&, PyObject** sp) override;
    void unwound(void* shadow, Frame*, int depth) override;
    void leave(void* shadow, Frame*, PyObject* result, int depth, Exit) override;

    bool watches_new_frames() const;
    bool recorded = false, compiled = false;

private:
    struct Activation {
        Frame* frame = nullptr;
        Recorder::Shadow* shadow = nullptr;
        long recording = 0;     // serial of the recording that `shadow` belongs to
        bool driven = false;    // a root: points are looked up
        bool at_point = false;  // before the next instruction
        bool is_root = false;   // of the current recording
        bool watched_before = false;
        const Ins* begun = nullptr;  // where the recording of this root began
    };
    bool records(const Activation& a) const { return recorder_ && a.recording == serial_; }
    const Ins* point(Activation&, Frame*, const Ins&, PyObject**& sp);
    const Ins* replay(Activation&, Frame*, Entry&, PyObject**& sp, int& status);
    void start(Activation&, Frame*, const Ins&, PyObject** sp);
    bool give_up_or_raise();
    void give_up();                                                                 // after a break
    void put_off(const std::string& why);                                           // the next recording at this point
    void abandon(const std::string& why);                                           // the region raised, or cannot be replayed
    bool finish(Activation&, Frame*, const Ins&, PyObject** sp, PyObject* result);  // false: a Python error is set
    ExitState exit_state(Activation&, Frame*, const Ins&, PyObject** sp, PyObject* result);
    void stop_recording();
    void restore_modes();
    void store(Recorder&, ExitState, int line);
    PyObject* const* entry_slots(Frame*, int depth);

    FunctionProgram& program_;
    std::unique_ptr<Recorder> recorder_;
    Point* recording_point_ = nullptr;
    std::deque<Activation> pool_;
    std::vector<Activation*> free_;
    std::vector<PyObject*> slots_;
    long serial_ = 0;
    int frames_ = 0;
    bool watch_calls_ = false, mode_pushed_ = false, entered_ = false;
    bool whole_ = false;  // the recording goes past all sites: maybe their breaks happened in the first calls only
    PyObject* exception_at_start_ = nullptr;
    double started_ms_ = 0;
    Session* outer_;
    Watcher* outer_watcher_;
    long idle_before_;
};

extern thread_local Session* session;
PyObject* raise_break(const Break&);  // GraphBreakError; always null

}  // namespace framejit
