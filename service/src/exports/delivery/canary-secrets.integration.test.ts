import { listExportDeadLetters, testExport } from '@gatehouse/contract/exports/export-sink'
import { secretMembers, sinkTypes } from '@gatehouse/contract/exports/sink-config'
import type { DoubleRequest } from '@gatehouse/tools/destinations/double'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { caughtUp, openDelivery } from './testing/test-delivery.ts'

/** Everything that was sent, in all the places where one destination or another has its errors. */
function echo({ headers, body }: DoubleRequest): string {
  const all = `${JSON.stringify(headers)}\n${body.toString()} ${headers.authorization ?? ''}`
  const error = { type: all, reason: all, code: all, message: all }
  const [text, message, error_description] = [all, all, all]
  return JSON.stringify({ text, code: 6, message, errors: [all], error, error_description })
}
const plainEcho = ({ headers, body }: DoubleRequest) =>
  `${headers.authorization ?? ''} ${String(headers['dd-api-key'])} ${body.toString()}`

const answers = [400, 401, 500].flatMap((status) =>
  [echo, plainEcho].map((say) => ({ name: `${status} ${say.name}`, status, say })),
)

test.each(answers)(
  'no secret that a destination repeats is shown or kept ($name)',
  async ({ status, say }) => {
    const { api, doubles, logged, createSink, write, startWorker, readSink } = await openDelivery()
    const { password, ...basic } = { username: 'auditor', password: 'canary-of-the-password' }
    const withPassword = { ...doubles.elastic.config, ...basic, password, api_key: undefined }
    const ids = await Promise.all([
      ...sinkTypes.map((type) => createSink(type)),
      createSink('elastic', withPassword),
    ])
    for (const type of sinkTypes) {
      // The login of Azure works, so that its token is repeated too.
      doubles[type].double.intervene((request) =>
        request.url.pathname.endsWith('/token') && status !== 401
          ? undefined
          : { status, body: say(request) },
      )
    }
    await write(2)
    startWorker()
    const shown: unknown[] = []
    for (const id of ids) {
      await expect.poll(async () => (await readSink(id)).last_error, caughtUp).not.toBeNull()
      const params = { export_id: id }
      shown.push(await readSink(id), (await api.send(testExport, { params })).body)
      shown.push((await api.send(listExportDeadLetters, { params })).body)
    }
    const configured = sinkTypes.flatMap((type) =>
      secretMembers[type].map((name) => (doubles[type].config as Record<string, unknown>)[name]),
    )
    const canaries = [
      ...configured.filter((value) => typeof value === 'string'),
      password,
      Buffer.from(`auditor:${password}`).toString('base64'),
    ]
    expect(canaries).toHaveLength(9)
    shown.push(logged, await api.house.metrics.registry.metrics())
    const { rows: tables } = await sql<{ name: string }>`
      select tablename as name from pg_tables where schemaname = 'public'`.execute(api.db)
    for (const { name } of tables) {
      shown.push((await sql`select t::text from ${sql.table(name)} as t`.execute(api.db)).rows)
    }
    const text = JSON.stringify(shown)
    for (const canary of canaries) {
      const forms = [canary, Buffer.from(canary).toString('base64'), encodeURIComponent(canary)]
      for (const form of [...forms, Buffer.from(canary).toString('hex')]) {
        expect([canary, text.includes(form)]).toEqual([canary, false])
      }
    }
    for (const id of ids) {
      const { last_error: error } = await readSink(id)
      expect(error).toMatch(/^[^\n\r]{1,500}$/)
    }
  },
)
