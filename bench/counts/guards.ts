import type { Mode } from '../chat-call.ts'
import { toTable } from '../table.ts'
import type { Counts, Load, Measured } from './measure-counts.ts'

/**
 * What one call may make the service do. `goal` is what is aimed at; the run fails when a figure exceeds `guard`, or, of
 * those that are exact, when it differs. A guard is lowered when a figure has become lower; it is never raised to let a
 * change pass.
 */
type Guard = { goal?: number; guard: number; isExact?: boolean; slack?: number }
type Guards = Record<Mode, Record<Load, Partial<Record<keyof Counts, Guard>>>>

const exactly = (guard: number, goal = guard): Guard => ({ goal, guard, isExact: true })
/** Of counts that depend on how calls happen to meet each other. */
const about = (guard: number, goal?: number): Guard => ({
  guard,
  slack: 0.3,
  ...(goal !== undefined && { goal }),
})

/**
 * What was measured, and 15 % more: code that makes a sixth more garbage or promises than it did is worth a look. Of many calls at
 * once, because what the process does by itself on a slow machine is next to nothing of each of them.
 */
const measured = (guard: number, goal?: number): Guard => ({ ...about(guard, goal), slack: 0.15 })

/** What was measured, and 40 % more: this one is a time, of machines that others use too. */
const cpuGuards: Record<Mode, Guard> = {
  plain: { guard: 6.2, slack: 0.4 },
  stream: { guard: 4.9, slack: 0.4 },
}

const mostOf = ({ guard, slack = 0 }: Guard) => guard * (1 + slack)

/** Below these, further windows need not be measured. */
export const cpuLimits = { plain: mostOf(cpuGuards.plain), stream: mostOf(cpuGuards.stream) }

const guards: Guards = {
  plain: {
    one: {
      statements: exactly(2),
      commits: exactly(2),
      commands: exactly(2),
      socketWrites: exactly(1),
      blockingLogWrites: exactly(0),
      promises: about(290),
      heapBytes: about(300_000),
    },
    many: {
      statements: about(0.3, 0.3),
      blockingLogWrites: exactly(0),
      promises: measured(290, 60),
      heapBytes: measured(278_000, 100_000),
    },
  },
  stream: {
    one: {
      statements: exactly(2),
      commits: exactly(2),
      commands: exactly(2),
      blockingLogWrites: exactly(0),
      promises: about(290),
      heapBytes: about(360_000),
    },
    many: {
      statements: about(0.3, 0.3),
      blockingLogWrites: exactly(0),
      promises: measured(296),
      heapBytes: measured(356_000),
    },
  },
}

const names: Record<keyof Counts, string> = {
  statements: 'SQL statements',
  commits: 'commits that write',
  commands: 'Redis commands',
  socketWrites: 'writes to the caller',
  blockingLogWrites: 'blocking writes to the log',
  logWrites: 'writes to the log',
  promises: 'promises',
  heapBytes: 'heap bytes',
}
const loads: Record<Load, string> = { one: 'one at a time', many: '64 in flight' }

export type Verdict = { what: string; value: string; goal: string; guard: string; holds: boolean }

/** One verdict for each figure; those without a guard always hold. */
export function judge({ counts, cpu }: Measured): Verdict[] {
  const verdicts: Verdict[] = []
  for (const mode of ['plain', 'stream'] as const) {
    for (const load of ['one', 'many'] as const) {
      for (const name of Object.keys(names) as (keyof Counts)[]) {
        const what = `${mode}, ${loads[load]}: ${names[name]}`
        verdicts.push(judgeOne(what, counts[mode][load][name], guards[mode][load][name]))
      }
    }
    const what = `${mode}, ${loads.many}: CPU time ÷ bare proxy`
    verdicts.push(judgeOne(what, cpu[mode], cpuGuards[mode]))
  }
  return verdicts
}

function judgeOne(what: string, value: number, rule: Guard | undefined): Verdict {
  const text = value >= 100 ? value.toFixed(0) : value.toFixed(value < 1 ? 2 : 1)
  if (!rule) return { what, value: text, goal: '', guard: '', holds: true }
  const { goal, guard, isExact = false } = rule
  const most = mostOf(rule)
  // What a process does on its own is subtracted to a few hundredths of a call.
  const holds = isExact ? Math.abs(value - guard) < 0.05 : value <= most
  return {
    what,
    value: text,
    goal: goal === undefined ? '' : String(goal),
    guard: isExact ? `exactly ${guard}` : `at most ${Number(most.toPrecision(3))}`,
    holds,
  }
}

export const countsTableOf = (verdicts: readonly Verdict[]) =>
  toTable([
    ['per call', 'measured', 'goal', 'guard', ''],
    ...verdicts.map(({ what, value, goal, guard, holds }) => [
      what,
      value,
      goal,
      guard,
      holds ? '' : 'EXCEEDED',
    ]),
  ])
