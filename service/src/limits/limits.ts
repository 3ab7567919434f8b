/** Where a call is counted: in its organization, in its project and for its key. */
export const scopes = ['organization', 'project', 'key'] as const
export type Scope = (typeof scopes)[number]

/** What is counted; the order is the one in which several refusals of equal length are told (G8.19). */
export const metrics = [
  'requests_per_minute',
  'requests_per_day',
  'tokens_per_minute',
  'tokens_per_day',
  'concurrent_requests',
] as const
export type Metric = (typeof metrics)[number]

/** How much is allowed, or how much is used. `Infinity` allows everything. */
export type Amounts = Readonly<Record<Metric, number>>

export type Limits = Readonly<Record<Scope, Amounts>>
export type Usage = Readonly<Record<Scope, Amounts>>

/** One call that asks to be let in. */
export type Attempt = {
  organizationId: string
  /** '' where a scope does not apply: what is counted there is nobody's. */
  projectId: string
  keyId: string
  tokens: number
  /** The id of the request: asking again with it, because the answer was lost, counts once. */
  leaseId: string
  /** How long the slot is held unless it is renewed; 0: the call takes none. */
  leaseMs: number
}

/** What was decided, and how much is used afterwards. All or nothing: a refusal has counted nowhere. */
export type Verdict = {
  nowMs: number
  usage: Usage
  refusal: Refusal | null
}

/** The limit with the longest wait, and after how long the same call would fit. */
export type Refusal = { scope: Scope; metric: Metric; waitMs: number }

/** Ends a call: frees its slot and corrects what it reserved to what it used. */
export type Settlement = Pick<Attempt, 'organizationId' | 'projectId' | 'keyId' | 'leaseId'> & {
  reserved: number
  used: number
  /** When it was let in, by the clock of the counters. */
  admittedAtMs: number
}

export type Lease = Pick<Attempt, 'organizationId' | 'projectId' | 'keyId' | 'leaseId'>

export const unlimited: Amounts = {
  requests_per_minute: Infinity,
  requests_per_day: Infinity,
  tokens_per_minute: Infinity,
  tokens_per_day: Infinity,
  concurrent_requests: Infinity,
}

/** Slots end by themselves a minute after their process died. */
export const leaseMs = 60_000
