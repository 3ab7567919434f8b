// Loaded into a process of the service before anything else: its parent sets the process's wall clock, as an administrator
// or a time server would. The steady clock (`performance.now`) goes on, as it does in the kernel.

export type ClockStep = { aheadMs: number }

const SystemDate = Date
let aheadMs = 0

class SteppedDate extends SystemDate {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(SteppedDate.now())
    else super(...(given as [number]))
  }
  static override now() {
    return SystemDate.now() + aheadMs
  }
}
globalThis.Date = SteppedDate as DateConstructor

process.on('message', (message) => {
  aheadMs = (message as ClockStep).aheadMs
  process.send?.({ aheadMs })
})
// It must not keep a process alive that has stopped.
process.channel?.unref()
