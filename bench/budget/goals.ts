/** `aim` is where a figure should get to; `atMost` or `atLeast` is what it may not exceed, or not fall below. */
export type Goal = { what: string; unit: string; aim?: number } & (
  | { atMost: number }
  | { atLeast: number }
)

const bare = '÷ bare proxy'
const portkey = '÷ Portkey'

/**
 * What a call may cost. Figures of one run are compared with each other, never with those of another machine. The added p50 is 3
 * ms because a call waits for two durable commits: docs/benchmarks.md has the sum.
 */
export const goals = {
  plainCpu: { what: 'CPU of a plain call', unit: bare, atMost: 3.5, aim: 3 },
  streamCpu: { what: 'CPU of a streamed call', unit: bare, atMost: 3.5, aim: 3 },
  plainPostgres: { what: 'PostgreSQL, plain', unit: bare, atMost: 2.2 },
  streamPostgres: { what: 'PostgreSQL, streamed', unit: bare, atMost: 1.6 },
  plainWorker: { what: 'worker, plain', unit: bare, atMost: 0.5 },
  streamWorker: { what: 'worker, streamed', unit: bare, atMost: 0.3 },
  plainRedis: { what: 'Redis, plain', unit: bare, atMost: 1.3 },
  streamRedis: { what: 'Redis, streamed', unit: bare, atMost: 1.3 },
  plainPortkey: { what: 'CPU of a plain call', unit: portkey, atMost: 0.5 },
  streamPortkey: { what: 'CPU of a streamed call', unit: portkey, atMost: 0.65 },
  memory: { what: 'memory after full load', unit: 'MB', atMost: 400, aim: 250 },
  plainP50: { what: 'added time, plain, p50', unit: 'ms', atMost: 3 },
  plainP99: { what: 'added time, plain, p99 (or 3 × bare)', unit: 'ms', atMost: 15 },
  streamP50: { what: 'added time, streamed, p50', unit: 'ms', atMost: 3 },
  streamP99: { what: 'added time, streamed, p99 (or 3 × bare)', unit: 'ms', atMost: 15 },
  firstTokenP99: { what: 'added time to the first token, p99', unit: 'ms', atMost: 8 },
  calmPlainP50: { what: 'added p50, plain, beside background work', unit: '÷ quiet', atMost: 1.2 },
  calmPlainP99: { what: 'added p99, plain, beside background work', unit: '÷ quiet', atMost: 1.2 },
  calmStreamP50: {
    what: 'added p50, streamed, beside background work',
    unit: '÷ quiet',
    atMost: 1.2,
  },
  calmStreamP99: {
    what: 'added p99, streamed, beside background work',
    unit: '÷ quiet',
    atMost: 1.2,
  },
  frame: { what: 'CPU per paced frame, above the bare proxy', unit: 'µs', atMost: 10 },
  pacedFrames: { what: 'paced frames that leave together, on average', unit: '', atMost: 9 },
  pacedFramesMost: { what: 'paced frames that leave together, at most', unit: '', atMost: 16 },
  pacedFirstText: {
    what: "first text after the bare proxy's, paced, p99",
    unit: 'ms',
    atMost: 200,
  },
  remoteFrames: {
    what: 'paced frames that leave together, remote scorer of 80 ms',
    unit: '',
    atMost: 26,
  },
  remoteFirstText: {
    what: 'first text, paced, remote scorer of 80 ms, p99',
    unit: 'ms',
    atMost: 400,
  },
  pageGap: { what: 'longest gap between two changes of a page', unit: 'ms', atMost: 250 },
  remotePageGap: {
    what: 'the same, remote scorer of 80 ms',
    unit: 'ms',
    atMost: 600,
  },
  idleStreams: { what: 'memory of 5,000 idle streams', unit: 'MB', atMost: 250 },
  rulesPlainCpu: { what: 'CPU that 20 rules add to a plain call', unit: bare, atMost: 0.3 },
  rulesStreamCpu: { what: 'CPU that 20 rules add to a streamed call', unit: bare, atMost: 0.3 },
  rulesFirstTokenP99: {
    what: 'time that 20 rules add to the first token, p99 (or 3 × jitter)',
    unit: 'ms',
    atMost: 3,
  },
  overloadGoodput: {
    what: 'served at three times the load, of the capacity',
    unit: '%',
    atLeast: 85,
  },
  overloadP99: { what: 'p99 at three times the load', unit: 'ms', atMost: 1500 },
  overloadRedis: {
    what: 'times that the process counted limits without Redis',
    unit: '',
    atMost: 0,
  },
  processes: { what: 'CPU per request, two processes ÷ one', unit: '', atMost: 1.15 },
} as const satisfies Record<string, Goal>

export type GoalName = keyof typeof goals

/**
 * `value` is of the least windows; `median` is of all of them, for the reader. `holds` is for a goal that can be reached in two
 * ways; without it the value decides. `isNoisy`: other processes had much of the machine, twice.
 */
export type Figure = { value: number; median?: number; holds?: boolean; isNoisy?: boolean }
export type Figures = Partial<Record<GoalName, Figure>>
