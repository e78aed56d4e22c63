// Releasing and acquiring the GIL by threads that may outlive the interpreter.
//
// A daemon thread that asks for the GIL while the interpreter ends never gets it. Python 3.14 lets
// it sleep; earlier versions call pthread_exit, which glibc carries out as an exception that must
// not be caught and that ends the process at the first noexcept frame, such as a destructor.
// Elsewhere the thread ends without unwinding, and with it a stack that its team still reads. Such
// a thread sleeps here until the process has ended.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>
#include <utility>  // move
#if defined(__GLIBCXX__)
#include <cxxabi.h>  // __forced_unwind
#endif

namespace arboost::bindings {

inline bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// Whether this thread ends the interpreter: it held the GIL when all others had lost it.
inline bool& ends_interpreter() {
  thread_local bool ends = false;
  return ends;
}

[[noreturn]] inline void sleep_for_ever() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Runs a call that waits for the GIL, or that may release and acquire it.
template <class Call>
void call_or_sleep(Call call) {
  if (is_finalizing() && !ends_interpreter()) sleep_for_ever();
#if defined(__GLIBCXX__)
  try {
    call();
  } catch (const abi::__forced_unwind&) {
    sleep_for_ever();  // within the handler, which must not be left
  }
#else
  call();
#endif
}

class GilRelease {
 public:
  GilRelease() {
    ends_interpreter() = is_finalizing();
    state_ = PyEval_SaveThread();
  }
  ~GilRelease() {
    call_or_sleep([this] { PyEval_RestoreThread(state_); });
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

class GilAcquire {
 public:
  GilAcquire() {
    const auto acquire = [this] { state_ = PyGILState_Ensure(); };
    if (PyGILState_Check() != 0)
      acquire();  // nothing to wait for, even in the thread that ends the interpreter
    else
      call_or_sleep(acquire);
  }
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

template <class Call>
auto without_gil(Call call) {
  GilRelease release;
  return call();
}

// Keeps a Python object alive, and gives it back from any thread.
struct PythonOwner {
  explicit PythonOwner(nanobind::object given) : object(std::move(given)) {}
  PythonOwner(const PythonOwner&) = delete;
  PythonOwner& operator=(const PythonOwner&) = delete;
  ~PythonOwner() {
    if (!nanobind::is_alive()) {
      object.release();
      return;
    }
    GilAcquire gil;
    object.reset();
  }
  nanobind::object object;
};

}  // namespace arboost::bindings
