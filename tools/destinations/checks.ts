import { gunzipSync } from 'node:zlib'

import type { DoubleAnswer, DoubleRequest } from './double.ts'

export type Members = Record<string, unknown>

export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const answerJson = (status: number, value: unknown): DoubleAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
})

/** The text of a request; undefined if it is not compressed as its header says. */
export function readText({ headers, body }: DoubleRequest): string | undefined {
  try {
    return (headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()
  } catch {
    return undefined
  }
}

export function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return undefined
  }
}

/** What is expected of every request with JSON. */
export function findRequestProblems(
  { method, url, headers }: DoubleRequest,
  expected: { path: string; encoding: 'gzip' | undefined },
): string[] {
  return [
    method !== 'POST' && `the method is ${method}`,
    url.pathname !== expected.path && `the path is ${url.pathname}`,
    !/^application\/json\b/.test(headers['content-type'] ?? '') && 'the content is not called JSON',
    headers['content-encoding'] !== expected.encoding &&
      `the encoding is ${headers['content-encoding']}`,
  ].filter((problem) => problem !== false)
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** What is missing in a record for a reader who has to find, order and check it. */
export function findRecordProblems(record: Members): string[] {
  const { event_id, event_type, created_at, org_id, org_seq } = record
  return [
    !uuid.test(String(event_id)) && 'event_id is no UUID',
    typeof event_type !== 'string' && 'event_type is no text',
    !time.test(String(created_at)) && 'created_at is no time with milliseconds',
    typeof org_id !== 'string' && 'org_id is no text',
    !Number.isSafeInteger(org_seq) && 'org_seq is no integer',
  ].filter((problem) => problem !== false)
}

export const isUuid = (text: unknown) => typeof text === 'string' && uuid.test(text.toLowerCase())
