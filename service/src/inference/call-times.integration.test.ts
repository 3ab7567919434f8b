import { createMessage } from '@gatehouse/contract/message'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import {
  outcomesOf,
  preparePlainCalls,
  sendPlain,
  sendStream,
  completion,
} from '#testing/plain-calls.ts'

// What the payload of a call's event says of its time, and of the error that ended it.

const waitsMs = 120

type Said = { outcome: string; duration_ms: number; first_token_ms?: number; status?: number }

test('the time of the whole call, and to the first token of a streamed one', async () => {
  const calls = await preparePlainCalls()
  const later = (answer: () => void) => setTimeout(answer, waitsMs)
  calls.upstream.behave = (response) => later(() => sendPlain(response, completion('Hello.')))
  await calls.ask()
  calls.upstream.behave = (response) => later(() => sendStream(response, 'Hello.'))
  await calls.ask({ stream: true })
  calls.upstream.behave = (response) => response.writeHead(400).end('{}')
  await calls.ask()
  await calls.ask({ model: 'none' })
  await calls.send(createMessage, { credential: calls.credential, body: {} as never })
  expect((await outcomesOf(calls)).outcomes).toHaveLength(5)
  const { rows } = await sql<Said>`
    select header->>'outcome' as outcome, said.* from event,
      jsonb_to_record(convert_from(payload, 'UTF8')::jsonb)
        as said (duration_ms integer, first_token_ms integer, status integer)
    where kind = 'enforcement' order by seq`.execute(calls.db)
  const [plain, streamed, failed, unknown, unread] = rows
  expect(plain).toMatchObject({ outcome: 'completed', first_token_ms: null, status: null })
  expect(streamed).toMatchObject({ outcome: 'completed', status: null })
  expect(plain?.duration_ms).toBeGreaterThanOrEqual(waitsMs - 5)
  expect(streamed?.first_token_ms).toBeGreaterThanOrEqual(waitsMs - 5)
  expect(streamed?.duration_ms).toBeGreaterThanOrEqual(streamed?.first_token_ms ?? Infinity)
  expect(failed).toMatchObject({ outcome: 'failed', first_token_ms: null })
  expect(failed?.status).toBeGreaterThanOrEqual(400)
  // The header says the status of a refusal.
  expect([unknown, unread].map((each) => [each?.outcome, each?.status])).toEqual([
    ['refused', null],
    ['refused', null],
  ])
  expect(rows.every(({ duration_ms: ms }) => Number.isInteger(ms) && ms >= 0)).toBe(true)
})
