import { fromSources } from '../program.ts'
import { type CoreUsage, describeUsage, watchCores } from './core-usage.ts'
import { runVitest, type VitestRun } from './run-vitest.ts'
import { type Failure, noCounts, type OutsideError, type Totals } from './totals-reporter.ts'

type Servers = { environment: NodeJS.ProcessEnv; stop: () => Promise<void> }
type Ring = { projects: readonly string[]; startServers?: () => Promise<Servers> }
export type Rings = Record<string, Ring>

const ownFlags = ['--long', '--again', '--sources']

type Options = {
  root: string
  rings: Rings
  /** After the ring that runs, no other one starts. */
  signal?: AbortSignal
  write?: (text: string) => void
}

/**
 * `[--long] [--again] [--sources] [ring] [vitest arguments]`. Without a ring all of them run, in the order they are written, also
 * after one has failed: a run shows everything that is broken, at its end. Returns the exit code.
 */
export async function runTests(args: readonly string[], options: Options): Promise<number> {
  const { root, rings, signal, write = console.log } = options
  const isLong = args.includes('--long')
  const isAgain = args.includes('--again')
  const isFromSources = args.includes('--sources')
  const [first = '', ...others] = args.filter((each) => !ownFlags.includes(each))
  const named = rings[first]
  const chosen = named ? { [first]: named } : rings
  const further = named ? others : [first, ...others].filter((each) => each !== '')
  const results: Result[] = []
  for (const [name, { projects, startServers }] of Object.entries(chosen)) {
    if (signal?.aborted) break
    write(`\n-- ${name}`)
    const readUsage = watchCores()
    const servers = await startServers?.()
    const environment = {
      ...servers?.environment,
      ...(isLong && { LONG_TESTS: '1' }),
      ...(isFromSources && fromSources),
    }
    try {
      const run = { root, projects, further, environment }
      const outcome = await (isAgain ? runTwice(run, signal) : runOnce(run))
      results.push({ ring: name, ...outcome, usage: readUsage() })
    } finally {
      await servers?.stop()
    }
  }
  tell(results, write)
  return results.find(({ code }) => code !== 0)?.code ?? 0
}

type Outcome = { code: number; totals: Totals; /** Failed at first. */ unsteady: string[] }
type Result = Outcome & { ring: string; usage: CoreUsage }

async function runOnce(run: VitestRun): Promise<Outcome> {
  const { code, totals } = await runVitest(run)
  return { code: code || (totals.errors.length > 0 ? 1 : 0), totals, unsteady: [] }
}

/**
 * On a loaded machine a test or the start of its servers may fail for lack of time: its file runs once more, with the machine
 * to itself. Nothing runs again after an error that belongs to no file.
 */
async function runTwice(run: VitestRun, signal?: AbortSignal): Promise<Outcome> {
  const first = await runOnce(run)
  const broken = [...first.totals.failures, ...first.totals.errors]
  const files = new Set(broken.flatMap(({ file }) => file ?? []))
  const canRunAgain = broken.length > 0 && broken.every(({ file }) => file !== undefined)
  if (!canRunAgain || signal?.aborted) return first
  const second = await runOnce({ ...run, further: ['--no-file-parallelism', ...files] })
  const stillBroken = new Set(brokenIn(second.totals).map(({ place }) => place))
  return {
    code: second.code,
    totals: { ...second.totals, counts: { ...first.totals.counts, ...second.totals.counts } },
    unsteady: brokenIn(first.totals).flatMap(({ place, description }) =>
      stillBroken.has(place) ? [] : description,
    ),
  }
}

const describeFailure = ({ file, test, message }: Failure) => `${file}: ${test}: ${message}`
const describeError = ({ file, message }: OutsideError) => (file ? `${file}: ${message}` : message)
/** A test that fails for another reason the second time has failed twice. */
const brokenIn = ({ failures, errors }: Totals) => [
  ...failures.map((each) => ({
    place: `${each.file}: ${each.test}`,
    description: describeFailure(each),
  })),
  ...errors.map((each) => ({ place: `${each.file}`, description: describeError(each) })),
]

function tell(results: readonly Result[], write: (text: string) => void) {
  const list = (title: string, lines: readonly string[]) => {
    if (lines.length === 0) return
    write(`\n${title}`)
    for (const line of lines) write(`  ${line.split('\n')[0]}`)
  }
  const inRings = (describe: (result: Result) => readonly string[]) =>
    results.flatMap((result) => describe(result).map((each) => `${result.ring}: ${each}`))
  const sum = noCounts()
  for (const each of results.flatMap(({ totals }) => Object.values(totals.counts))) {
    sum.passed += each.passed
    sum.failed += each.failed
    sum.skipped += each.skipped
  }
  const unsteady = inRings((result) => result.unsteady)
  const failed = inRings(({ totals }) => totals.failures.map(describeFailure))
  const errors = inRings(({ totals }) => totals.errors.map(describeError))
  list('Failed at first, and passed when their file ran again alone. Find out why:', unsteady)
  list('Failed:', failed)
  list(`Errors outside of tests: ${errors.length}. They fail the run.`, errors.toSorted())
  list(
    'Where the time went:',
    results.map(({ ring, usage }) => describeUsage(ring, usage)),
  )
  const skipped = sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''
  write(`\n${sum.passed} passed, ${sum.failed} failed${skipped}`)
}
