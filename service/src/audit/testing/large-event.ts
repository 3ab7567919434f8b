import { hash } from 'node:crypto'

import { buildRevisionEvent, type Event, operator } from '#audit/event.ts'

/** An event as earlier releases wrote it, with all of a large resource in its payload. */
export function largeEvent(organizationId: string, bytes: number, at = new Date()): Event {
  const after = { id: 'x', object: 'thing' }
  const revision = { organizationId, by: operator, action: 'created', before: null, after } as const
  const event = buildRevisionEvent(revision, at)
  // Random, so that PostgreSQL cannot make it small.
  const text = Buffer.from(crypto.getRandomValues(new Uint8Array(65_536))).toString('base64')
  const list = Array.from({ length: Math.ceil(bytes / 64) }, (_, index) => {
    const start = (index * 61) % (text.length - 64)
    return text.slice(start, start + 60)
  })
  const payload = Buffer.from(JSON.stringify({ before: null, after: { ...after, list } }))
  return {
    ...event,
    payload,
    payloadHash: hash('sha256', Buffer.concat([event.salt, payload]), 'buffer'),
  }
}
