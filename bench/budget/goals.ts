/** `aim` is where a figure should get to; `atMost` is what it may not exceed. */
export type Goal = { what: string; unit: string; atMost: number; aim?: number }

const bare = '÷ bare proxy'
const portkey = '÷ Portkey'

/** What a call may cost. Figures of one run are compared with each other, never with those of another machine. */
export const goals = {
  plainCpu: { what: 'CPU of a plain call', unit: bare, atMost: 3.5, aim: 3 },
  streamCpu: { what: 'CPU of a streamed call', unit: bare, atMost: 3.5, aim: 3 },
  plainPostgres: { what: 'PostgreSQL, plain', unit: bare, atMost: 3 },
  streamPostgres: { what: 'PostgreSQL, streamed', unit: bare, atMost: 3 },
  plainRedis: { what: 'Redis, plain', unit: bare, atMost: 1.3 },
  streamRedis: { what: 'Redis, streamed', unit: bare, atMost: 1.3 },
  plainPortkey: { what: 'CPU of a plain call', unit: portkey, atMost: 0.5 },
  streamPortkey: { what: 'CPU of a streamed call', unit: portkey, atMost: 0.65 },
  plainP50: { what: 'added time, plain, p50', unit: 'ms', atMost: 2 },
  plainP99: { what: 'added time, plain, p99 (or 3 × bare)', unit: 'ms', atMost: 15 },
  streamP50: { what: 'added time, streamed, p50', unit: 'ms', atMost: 2 },
  streamP99: { what: 'added time, streamed, p99 (or 3 × bare)', unit: 'ms', atMost: 15 },
  firstTokenP99: { what: 'added time to the first token, p99', unit: 'ms', atMost: 5 },
  frame: { what: 'CPU per paced frame, above the bare proxy', unit: 'µs', atMost: 10 },
  idleStreams: { what: 'memory of 5,000 idle streams', unit: 'MB', atMost: 250 },
  rulesPlainCpu: { what: 'CPU that 20 rules add to a plain call', unit: bare, atMost: 0.3 },
  rulesStreamCpu: { what: 'CPU that 20 rules add to a streamed call', unit: bare, atMost: 0.3 },
  rulesFirstTokenP99: {
    what: 'time that 20 rules add to the first token, p99 (or 3 × jitter)',
    unit: 'ms',
    atMost: 3,
  },
  processes: { what: 'CPU per request, two processes ÷ one', unit: '', atMost: 1.15 },
} as const satisfies Record<string, Goal>

export type GoalName = keyof typeof goals

/** `holds` is for a goal that can be reached in two ways; without it the value decides. */
type Figure = { value: number; holds?: boolean }
export type Figures = Partial<Record<GoalName, Figure>>
