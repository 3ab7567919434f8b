import { mark, noteSettled, sinceRequest } from './marks.ts'

// Stands in for `service/src/inference/steps.ts` in a process that is traced. Only what is traced is typed here: the other steps
// pass through.

type Settling = { settle(): Promise<unknown> }
type Checks = { beforeHold(): Promise<unknown>; afterHold(): Promise<unknown> }
type Step<Result> = (...args: unknown[]) => Result
type Steps = {
  admit: Step<Promise<Settling>>
  openChecks: Step<Promise<Checks>>
  reserve: Step<Promise<Settling>>
  callModel: Step<AsyncIterable<unknown>>
}
type Original = { createSteps(deps: unknown): Steps }

const original = new URL('../../service/src/inference/steps.ts', import.meta.url).href
const { createSteps: createUntraced } = (await import(original)) as Original

export function createSteps(deps: unknown): Steps {
  const steps = createUntraced(deps)
  const openChecks = timed('preparing the checks', steps.openChecks)
  const admit = timed('limiter, Redis', steps.admit)
  const reserve = timed('hold, PostgreSQL', steps.reserve)
  return {
    ...steps,
    openChecks: async (...args) => timeChecks(await openChecks(...args)),
    async admit(...args) {
      const passed = sinceRequest()
      if (passed !== undefined) mark('reading the request, until the limiter is asked', passed)
      return timeSettling('settling, Redis', await admit(...args))
    },
    reserve: async (...args) => timeSettling('settling, PostgreSQL', await reserve(...args)),
    callModel: (...args) => timePieces(steps.callModel(...args)),
  }
}

const timed =
  <Result>(name: string, step: Step<Promise<Result>>): Step<Promise<Result>> =>
  async (...args) => {
    const startedAt = performance.now()
    const result = await step(...args)
    mark(name, performance.now() - startedAt)
    return result
  }

/** In place, because the request that they may change is read from the same object. */
function timeChecks(checks: Checks): Checks {
  checks.beforeHold = timed('checks before the hold', checks.beforeHold.bind(checks))
  checks.afterHold = timed('checks after the hold', checks.afterHold.bind(checks))
  return checks
}

/** In place, because its owner disposes of the same object. */
function timeSettling(name: string, settling: Settling): Settling {
  const settle = timed(name, settling.settle.bind(settling))
  settling.settle = async () => {
    const result = await settle()
    noteSettled()
    return result
  }
  return settling
}

function timePieces(pieces: AsyncIterable<unknown>): AsyncIterable<unknown> {
  return {
    [Symbol.asyncIterator]() {
      const startedAt = performance.now()
      const iterator = pieces[Symbol.asyncIterator]()
      const next = iterator.next.bind(iterator)
      let isFirst = true
      iterator.next = async () => {
        const result = await next()
        const passed = performance.now() - startedAt
        if (isFirst) mark('upstream, until the first piece', passed)
        if (result.done) mark('upstream, until the last piece', passed)
        isFirst = false
        return result
      }
      return iterator
    },
  }
}
