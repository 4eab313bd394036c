// SPDX-License-Identifier: MIT
#pragma once
// Runs tasks on devices. A task is one program at one frequency on one device; a device runs its tasks one at
// a time in the order of their indices, each as soon as the device is free and every task it depends on has
// ended plus the edge's delay (a transfer). A device stands for a class of equal ranks.
//
// Every change (a kernel starts to work or ends) closes an interval in which all rates and hence all powers
// are constant; energy is power x time over those intervals, so a power trace sums to the reported energy.
//
// A program starts from an idle device, so what a task does depends on its program and frequency alone. A
// record of one run can therefore stand for another run of the same task: with `known` set the task is one
// event and gives the same bytes as when it is run kernel by kernel.

#include "sim/device.h"
#include "sim/engine.h"
#include "sim/error.h"
#include "sim/program.h"

G_BEGIN_DECLS

// What a device is doing, exclusively, at each moment inside a task.
typedef enum {
    NJ_ACTIVITY_GEMM = NJ_KERNEL_GEMM,
    NJ_ACTIVITY_ATTENTION = NJ_KERNEL_ATTENTION,
    NJ_ACTIVITY_MEMORY = NJ_KERNEL_MEMORY,
    NJ_ACTIVITY_COLLECTIVE = NJ_KERNEL_COLLECTIVE, // a collective and no compute kernel: exposed
    NJ_ACTIVITY_GAP,                               // neither: launch gaps, the host is behind
    NJ_N_ACTIVITIES,
} NjActivity;

typedef struct {
    NjTime duration;
    NjTime activity[NJ_N_ACTIVITIES];   // sums to duration
    NjTime overlapped;                  // a collective beside a compute kernel
    double energy_j[NJ_N_KERNEL_KINDS]; // dynamic, with the clock tree
    double peak_w;                      // static + dynamic, highest of any interval
    double flop, hbm_bytes, link_bytes;
} NjTaskRecord;

double nj_task_record_dynamic_j(const NjTaskRecord *record);

typedef struct {
    guint32 device;
    guint32 program;
    double freq_mhz;
    const NjTaskRecord *known; // result of the same program at the same frequency, or NULL: run it
} NjTask;

typedef struct {
    guint32 from, to; // tasks
    NjTime delay;
} NjEdge;

typedef struct {
    NjTime start, end;
    NjTaskRecord record;
} NjTaskResult;

// What is constant between two changes on a device.
typedef struct {
    guint32 device;
    NjTime start, end;
    double power_w;                   // static + dynamic
    double freq_mhz;                  // of the running task; 0 when idle
    double sm_use, hbm_use, link_use; // shares of what the device has, 0..1
} NjInterval;

// One operation, when it has ended.
typedef struct {
    guint32 device, task;
    NjStream stream;
    const NjKernel *kernel;
    guint32 sms;
    double freq_mhz;
    NjTime dispatching;                      // the host begins with it
    NjTime dispatched, issued, begun, ended; // host done; latency begins; work begins; work ends
    double energy_j;                         // dynamic, of its work alone
    double overhead_j; // clock tree and occupied SMs booked to it; with energy_j sums to the task's record
    double mean_sms;   // SMs it had while it worked: a compute kernel has what a collective leaves it
} NjSpan;

// Called as a run goes on; any member may be NULL. Tasks with a known record give no spans and one interval
// each.
typedef struct {
    void (*interval)(gpointer user, const NjInterval *interval);
    void (*span)(gpointer user, const NjSpan *span);
    void (*task)(gpointer user, guint32 task, const NjTaskResult *result);
    gpointer user;
} NjObserver;

typedef struct {
    const NjDeviceSpec *specs; // [n_devices]
    guint n_devices;
    const NjProgram *programs; // [n_programs]
    guint n_programs;
    const NjTask *tasks; // [n_tasks]
    guint n_tasks;
    const NjEdge *edges; // [n_edges]
    guint n_edges;
} NjRunInput;

// Runs all tasks from time 0. results: [n_tasks], caller allocates. observer may be NULL. Gives the time at
// which the last task ended. Tasks that wait for each other in a circle never start: that is the caller's bug
// and asserts.
NjTime nj_run(const NjRunInput *input, const NjObserver *observer, NjTaskResult *results);

// Runs one program alone.
void nj_run_alone(const NjDeviceSpec *spec, const NjProgram *program, double freq_mhz, NjTaskRecord *record);

G_END_DECLS
