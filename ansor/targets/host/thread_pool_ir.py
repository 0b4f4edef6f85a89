"""The native code of the thread pool, in LLVM's language; `pool_code` explains it.

Words that begin with "@" and a capital are replaced by numbers.
"""

from __future__ import annotations

IR = """
%Slot = type { i32, i32, ptr, [112 x i8] }
%Env = type { ptr, i32 }
%Pool = type { i64, i32, i32, ptr, [40 x i8], ptr, ptr, ptr, i32, [36 x i8], [@MAX x %Slot] }

@pool = internal global ptr null

declare i64 @pthread_self()
declare i64 @syscall(i64, ...)

; Makes the pool in this memory the process's.
define void @ansor_pool_use(ptr %pool) {
  store atomic ptr %pool, ptr @pool release, align 8
  ret void
}

; Holds the pool for the calling thread, for launches of so many tasks; whether nobody else does.
define i32 @ansor_pool_acquire(i32 %threads) {
  %pool = load atomic ptr, ptr @pool acquire, align 8
  %self = call i64 @pthread_self()
  %asked = cmpxchg ptr %pool, i64 0, i64 %self acquire monotonic
  %free = extractvalue { i64, i1 } %asked, 1
  br i1 %free, label %mine, label %end
mine:
  %limit = getelementptr %Pool, ptr %pool, i64 0, i32 2
  store i32 %threads, ptr %limit, align 4
  br label %end
end:
  %answer = zext i1 %free to i32
  ret i32 %answer
}

define void @ansor_pool_release() {
  %pool = load atomic ptr, ptr @pool acquire, align 8
  store atomic i64 0, ptr %pool release, align 8
  ret void
}

; Wakes a thread that sleeps on a state.
define internal void @wake(ptr %state) {
  %done = call i64 (i64, ...) @syscall(i64 @FUTEX, ptr %state, i32 129, i32 1, ptr null)
  ret void
}

; Sleeps unless the state has changed; may return early.
define internal void @sleep(ptr %state, i32 %seen) {
  %done = call i64 (i64, ...) @syscall(i64 @FUTEX, ptr %state, i32 128, i32 %seen, ptr null)
  ret void
}

; Runs tasks first, first + 1 .. last - 1; the number of those that fail.
define internal i32 @tasks(ptr %lambda, ptr %env, ptr %data, i32 %first, i32 %last) {
entry:
  br label %next
next:
  %task = phi i32 [ %first, %entry ], [ %after, %run ]
  %failed = phi i32 [ 0, %entry ], [ %sum, %run ]
  %more = icmp slt i32 %task, %last
  br i1 %more, label %run, label %end
run:
  %result = call i32 %lambda(i32 %task, ptr %env, ptr %data)
  %bad = icmp ne i32 %result, 0
  %one = zext i1 %bad to i32
  %sum = add i32 %failed, %one
  %after = add i32 %task, 1
  br label %next
end:
  ret i32 %failed
}

; What a worker's thread runs, for ever.
define ptr @ansor_pool_worker(ptr %slot) {
entry:
  %task.at = getelementptr %Slot, ptr %slot, i64 0, i32 1
  %pool.at = getelementptr %Slot, ptr %slot, i64 0, i32 2
  %task = load i32, ptr %task.at, align 4
  %end = add i32 %task, 1
  %pool = load ptr, ptr %pool.at, align 8
  %lambda.at = getelementptr %Pool, ptr %pool, i64 0, i32 5
  %data.at = getelementptr %Pool, ptr %pool, i64 0, i32 6
  %env.at = getelementptr %Pool, ptr %pool, i64 0, i32 7
  %failed.at = getelementptr %Pool, ptr %pool, i64 0, i32 8
  br label %poll
poll:
  %count = phi i32 [ 0, %entry ], [ %counted, %pause ], [ 0, %take ], [ 0, %done ], [ 0, %slept ]
  %state = load atomic i32, ptr %slot monotonic, align 4
  %offered = icmp eq i32 %state, @OFFERED
  br i1 %offered, label %take, label %idle
idle:
  %patient = icmp slt i32 %count, @IDLE_POLLS
  br i1 %patient, label %pause, label %doze
pause:
  call void asm sideeffect "@PAUSE", ""()
  %counted = add i32 %count, 1
  br label %poll
doze:
  %told = cmpxchg ptr %slot, i32 @IDLE, i32 @ASLEEP acq_rel acquire
  call void @sleep(ptr %slot, i32 @ASLEEP)
  br label %slept
slept:
  %then = load atomic i32, ptr %slot monotonic, align 4
  %still = icmp eq i32 %then, @ASLEEP
  br i1 %still, label %doze, label %poll
take:
  %asked = cmpxchg ptr %slot, i32 @OFFERED, i32 @RUNNING acq_rel monotonic
  %mine = extractvalue { i32, i1 } %asked, 1
  br i1 %mine, label %work, label %poll
work:
  %lambda = load ptr, ptr %lambda.at, align 8
  %data = load ptr, ptr %data.at, align 8
  %env = load ptr, ptr %env.at, align 8
  %failed = call i32 @tasks(ptr %lambda, ptr %env, ptr %data, i32 %task, i32 %end)
  %before = atomicrmw add ptr %failed.at, i32 %failed monotonic
  %last = atomicrmw xchg ptr %slot, i32 @IDLE acq_rel
  %awaited = icmp eq i32 %last, @AWAITED
  br i1 %awaited, label %notify, label %done
notify:
  call void @wake(ptr %slot)
  br label %done
done:
  br label %poll
}

; Offers a task to each of the first so many workers.
define internal void @offer(ptr %pool, i32 %helpers) {
entry:
  br label %next
next:
  %i = phi i32 [ 0, %entry ], [ %after, %offered ]
  %more = icmp slt i32 %i, %helpers
  br i1 %more, label %one, label %end
one:
  %slot = getelementptr %Pool, ptr %pool, i64 0, i32 10, i32 %i
  %state = atomicrmw xchg ptr %slot, i32 @OFFERED acq_rel
  %asleep = icmp eq i32 %state, @ASLEEP
  br i1 %asleep, label %rouse, label %offered
rouse:
  call void @wake(ptr %slot)
  br label %offered
offered:
  %after = add i32 %i, 1
  br label %next
end:
  ret void
}

; Runs what workers have not begun; the number of tasks that fail.
define internal i32 @take_back(ptr %pool, ptr %lambda, ptr %env, ptr %data, i32 %helpers) {
entry:
  br label %next
next:
  %i = phi i32 [ 0, %entry ], [ %after, %end.one ]
  %failed = phi i32 [ 0, %entry ], [ %sum, %end.one ]
  %more = icmp slt i32 %i, %helpers
  br i1 %more, label %one, label %end
one:
  %slot = getelementptr %Pool, ptr %pool, i64 0, i32 10, i32 %i
  %after = add i32 %i, 1
  %asked = cmpxchg ptr %slot, i32 @OFFERED, i32 @IDLE acq_rel monotonic
  %mine = extractvalue { i32, i1 } %asked, 1
  br i1 %mine, label %run, label %end.one
run:
  %stop = add i32 %after, 1
  %bad = call i32 @tasks(ptr %lambda, ptr %env, ptr %data, i32 %after, i32 %stop)
  br label %end.one
end.one:
  %found = phi i32 [ 0, %one ], [ %bad, %run ]
  %sum = add i32 %failed, %found
  br label %next
end:
  ret i32 %failed
}

; Waits for a worker that has begun.
define internal void @join(ptr %slot) {
entry:
  br label %poll
poll:
  %count = phi i32 [ 0, %entry ], [ %counted, %pause ], [ %count, %doze ]
  %state = load atomic i32, ptr %slot acquire, align 4
  %running = icmp eq i32 %state, @RUNNING
  %awaited = icmp eq i32 %state, @AWAITED
  %busy = or i1 %running, %awaited
  br i1 %busy, label %wait, label %end
wait:
  %patient = icmp slt i32 %count, @JOIN_POLLS
  br i1 %patient, label %pause, label %doze
pause:
  call void asm sideeffect "@PAUSE", ""()
  %counted = add i32 %count, 1
  br label %poll
doze:
  %told = cmpxchg ptr %slot, i32 @RUNNING, i32 @AWAITED acq_rel acquire
  call void @sleep(ptr %slot, i32 @AWAITED)
  br label %poll
end:
  ret void
}

; Waits for the first so many workers.
define internal void @join_all(ptr %pool, i32 %helpers) {
entry:
  br label %next
next:
  %i = phi i32 [ 0, %entry ], [ %after, %one ]
  %more = icmp slt i32 %i, %helpers
  br i1 %more, label %one, label %end
one:
  %slot = getelementptr %Pool, ptr %pool, i64 0, i32 10, i32 %i
  call void @join(ptr %slot)
  %after = add i32 %i, 1
  br label %next
end:
  ret void
}

; Runs a launch with the help of so many workers; the number of tasks that fail.
define internal i32 @shared(ptr %pool, ptr %lambda, ptr %data, i32 %tasks, i32 %helpers) {
  %env = alloca %Env, align 8
  store ptr null, ptr %env, align 8
  %count.at = getelementptr %Env, ptr %env, i64 0, i32 1
  store i32 %tasks, ptr %count.at, align 4
  %lambda.at = getelementptr %Pool, ptr %pool, i64 0, i32 5
  %data.at = getelementptr %Pool, ptr %pool, i64 0, i32 6
  %env.at = getelementptr %Pool, ptr %pool, i64 0, i32 7
  %failed.at = getelementptr %Pool, ptr %pool, i64 0, i32 8
  store ptr %lambda, ptr %lambda.at, align 8
  store ptr %data, ptr %data.at, align 8
  store ptr %env, ptr %env.at, align 8
  store atomic i32 0, ptr %failed.at monotonic, align 4
  call void @offer(ptr %pool, i32 %helpers)
  %first = add i32 %helpers, 1
  %own = call i32 @tasks(ptr %lambda, ptr %env, ptr %data, i32 0, i32 1)
  %rest = call i32 @tasks(ptr %lambda, ptr %env, ptr %data, i32 %first, i32 %tasks)
  %taken = call i32 @take_back(ptr %pool, ptr %lambda, ptr %env, ptr %data, i32 %helpers)
  call void @join_all(ptr %pool, i32 %helpers)
  %theirs = load atomic i32, ptr %failed.at monotonic, align 4
  store ptr null, ptr %lambda.at, align 8
  %failed.1 = add i32 %own, %rest
  %failed.2 = add i32 %failed.1, %taken
  %bad = icmp ne i32 %failed.2, 0
  %only = icmp ne i32 %theirs, 0
  br i1 %bad, label %end, label %others
others:
  br i1 %only, label %fail, label %end
fail:
  %fail.at = getelementptr %Pool, ptr %pool, i64 0, i32 3
  %set = load ptr, ptr %fail.at, align 8
  call void %set(ptr @kind, ptr @message)
  br label %end
end:
  %failed = add i32 %failed.2, %theirs
  ret i32 %failed
}

@kind = private constant [13 x i8] c"RuntimeError\\00"
@message = private constant [38 x i8] c"a task of a parallel loop has failed.\\00"

; What TVM's code calls for a parallel loop: see TVMBackendParallelLaunch in TVM's c_backend_api.h.
define i32 @ansor_pool_launch(ptr %lambda, ptr %data, i32 %wanted) {
entry:
  %pool = load atomic ptr, ptr @pool acquire, align 8
  %self = call i64 @pthread_self()
  %owner = load atomic i64, ptr %pool monotonic, align 8
  %held = icmp eq i64 %owner, %self
  br i1 %held, label %inside, label %ask
inside:
  %lambda.at = getelementptr %Pool, ptr %pool, i64 0, i32 5
  %running = load ptr, ptr %lambda.at, align 8
  %nested = icmp ne ptr %running, null
  %limit.at = getelementptr %Pool, ptr %pool, i64 0, i32 2
  %limit = load i32, ptr %limit.at, align 4
  br i1 %nested, label %alone, label %run
ask:
  %asked = cmpxchg ptr %pool, i64 0, i64 %self acquire monotonic
  %mine = extractvalue { i64, i1 } %asked, 1
  br i1 %mine, label %run, label %alone
run:
  %most = phi i32 [ %limit, %inside ], [ @MAX, %ask ]
  %workers.at = getelementptr %Pool, ptr %pool, i64 0, i32 1
  %workers = load i32, ptr %workers.at, align 4
  %below = sub i32 %most, 1
  %allowed = call i32 @llvm.smin.i32(i32 %workers, i32 %below)
  %all = add i32 %allowed, 1
  %any = icmp eq i32 %wanted, 0
  %tasks = select i1 %any, i32 %all, i32 %wanted
  %others = sub i32 %tasks, 1
  %helpers = call i32 @llvm.smin.i32(i32 %allowed, i32 %others)
  %failed.1 = call i32 @shared(ptr %pool, ptr %lambda, ptr %data, i32 %tasks, i32 %helpers)
  br i1 %held, label %end, label %give
give:
  store atomic i64 0, ptr %pool release, align 8
  br label %end
alone:
  %env = alloca %Env, align 8
  %tasks.1 = call i32 @llvm.smax.i32(i32 %wanted, i32 1)
  %count.at = getelementptr %Env, ptr %env, i64 0, i32 1
  store ptr null, ptr %env, align 8
  store i32 %tasks.1, ptr %count.at, align 4
  %failed.2 = call i32 @tasks(ptr %lambda, ptr %env, ptr %data, i32 0, i32 %tasks.1)
  br label %end
end:
  %failed = phi i32 [ %failed.1, %run ], [ %failed.1, %give ], [ %failed.2, %alone ]
  %bad = icmp ne i32 %failed, 0
  %status = sext i1 %bad to i32
  ret i32 %status
}

declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)

; The address of one of the functions, by its number, in TVM's calling convention.
define i32 @__tvm_ffi_address(ptr %self, ptr %arguments, i32 %count, ptr %result) {
  %number.at = getelementptr i8, ptr %arguments, i64 8
  %number = load i64, ptr %number.at, align 8
  %function.at = getelementptr [@COUNT x ptr], ptr @functions, i64 0, i64 %number
  %function = load i64, ptr %function.at, align 8
  %value.at = getelementptr i8, ptr %result, i64 8
  store i64 1, ptr %result, align 8 ; an integer
  store i64 %function, ptr %value.at, align 8
  ret i32 0
}

@functions = private constant [@COUNT x ptr] [@TABLE]
"""
