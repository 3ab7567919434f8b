import type { z } from 'zod'

import type { Endpoint, InputOf } from '../endpoint.ts'

type Part<E extends Endpoint, Name extends 'params' | 'body'> = E[Name] extends z.ZodType
  ? { [N in Name]: InputOf<E>[N & keyof InputOf<E>] }
  : unknown

/** One call of an operation as a caller would make it, and what it is answered. */
export type ExampleOf<E extends Endpoint> = Part<E, 'params'> &
  Part<E, 'body'> & {
    query?: E['query'] extends z.ZodType ? z.input<E['query']> : never
    answer: z.input<E['response']>
  }

/** The same for operations that are not known by name. */
export type Example = {
  params?: Record<string, unknown>
  query?: Record<string, unknown>
  body?: unknown
  answer: unknown
}

/** Ids that all examples share, so that they read as one story. */
export const ids = {
  organization: 'org_06f8q3k2r5s7t9v1w3x5y7a1',
  project: 'proj_06f8q3k2r5s7t9v1w3x5y7b2',
  policy: 'pol_06f8q3k2r5s7t9v1w3x5y7c3',
  version: 'polver_06f8q3k2r5s7t9v1w3x5y7d4',
  adminKey: 'key_06f8q3k2r5s7t9v1w3x5y7e5',
  projectKey: 'key_06f8q3k2r5s7t9v1w3x5y7f6',
  revision: 'hist_06f8q3k2r5s7t9v1w3x5y7h8',
  simulation: 'hist_06f8q3k2r5s7t9v1w3x5y7j9',
  export: 'exp_06f8q3k2r5s7t9v1w3x5y7k1',
  guardrail: 'grd_06f8q3k2r5s7t9v1w3x5y7m2',
  member: 'mem_06f8q3k2r5s7t9v1w3x5y7n3',
  session: 'ses_06f8q3k2r5s7t9v1w3x5y7r6',
  approval: 'apr_06f8q3k2r5s7t9v1w3x5y7q5',
  proposal: 'prop_06f8q3k2r5s7t9v1w3x5y7p4',
  event: '019a4330-1e80-7c3a-9b51-2f60d4c1a7e8',
  request: 'req_06f8q3k2r5s7t9v1w3x5y7g7',
} as const

/** 2026-11-02, 09:00 UTC. */
export const morning = 1_793_610_000
