import type { Clock } from '#platform/clock.ts'

type Options = { now: Clock; onChange: (state: CircuitState) => void }

/** `returning`: it answers again, but others may not have noticed yet. */
export type CircuitState = 'closed' | 'open' | 'returning'

const errorsMax = 5
const withinMs = 1000
/** Longer than the pause between two probes: by then everybody has come back. */
const returningMs = 2000

/** Whether a store that may fail should be asked. Opens after a few errors without a success between. */
export function createCircuit({ now, onChange }: Options) {
  let state: CircuitState = 'closed'
  let errorTimes: number[] = []
  let returnedAtMs = 0

  function enter(next: CircuitState) {
    if (state === next) return
    state = next
    errorTimes = []
    onChange(next)
  }

  return {
    state(): CircuitState {
      if (state === 'returning' && now().getTime() - returnedAtMs >= returningMs) enter('closed')
      return state
    },
    succeeded() {
      errorTimes = []
    },
    failed() {
      const nowMs = now().getTime()
      errorTimes = [...errorTimes.filter((atMs) => nowMs - atMs < withinMs), nowMs]
      if (state === 'returning' || errorTimes.length >= errorsMax) enter('open')
    },
    /** A probe was answered. */
    returned() {
      if (state !== 'open') return
      returnedAtMs = now().getTime()
      enter('returning')
    },
  }
}
export type Circuit = ReturnType<typeof createCircuit>
