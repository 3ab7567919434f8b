import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import { AdminKeyPermission } from '@gatehouse/contract/permission'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import {
  cookieOf,
  openPage,
  ownPage,
  publicUrl,
  readCsrf,
  signInMember,
} from './support/sessions.ts'
import { useStack } from './support/use-stack.ts'

// Sessions and keys are used, in the right places and in wrong ones; then everything that the processes have written is
// searched for them: answers, logs, metrics, events and the whole database.

const stack = useStack({ models: null, processes: 2, environment: { PUBLIC_URL: publicUrl } })

let database: pg.Client
beforeAll(async () => {
  database = new pg.Client({ connectionString: stack().database.url })
  await database.connect()
})
afterAll(() => database.end())

/** By name, so that a failure does not print them. */
const secrets = new Map<string, string>()

/** The random part of a secret, without the end that redacted keys may show. */
const partOf = (secret: string) => secret.replace(/^gate_\w{3}_/, '').slice(2, 22)

const namesIn = (text: string) =>
  [...secrets].filter(([, secret]) => text.includes(partOf(secret))).map(([name]) => name)

type Sent = Parameters<typeof openPage>[1]

/** Everything that was answered, but for the cookies and tokens that an answer is there to give. */
const answered: string[] = []

async function send(path: string, sent: Sent = {}) {
  const [base = ''] = stack().description.base_urls
  const { status, headers, text } = await openPage(`${base}${path}`, sent)
  const shown = [...headers].filter(([name]) => name !== 'set-cookie')
  answered.push(JSON.stringify([status, shown]), text.replace(/name="csrf" value="[^"]+"/, ''))
  const [, secret] = /gatehouse=(gate_ses_\w+)/.exec(headers.get('set-cookie') ?? '') ?? []
  return { status, secret }
}

async function signIn(name: string, key: string, headers: Record<string, string> = {}) {
  const [base = ''] = stack().description.base_urls
  const { status, secret = '' } = await send('/auth/key', { form: { key }, headers })
  expect(status).toBe(303)
  secrets.set(name, secret)
  secrets.set(`token of ${name}`, await readCsrf(base, secret))
  return secret
}

const projects = '/v1/organization/projects'

/** Every place where a careless client, or an attacker, could put a secret. */
async function misplace(secret: string) {
  const found: [place: string, status: number][] = []
  const place = async (name: string, path: string, sent?: Sent) =>
    void found.push([name, (await send(path, sent)).status])
  const bearer = { authorization: `Bearer ${secret}` }
  await place('bearer', projects, { headers: bearer })
  await place('basic', projects, { headers: { authorization: `Basic ${secret}` } })
  await place('inference', '/v1/models', { headers: cookieOf(secret) })
  await place('inference, bearer', '/v1/models', { headers: bearer })
  await place('x-api-key', '/v1/models', { headers: { 'x-api-key': secret } })
  await place('twice', projects, {
    headers: { cookie: Array(2).fill(cookieOf(secret).cookie).join('; ') },
  })
  await place('another cookie', projects, { headers: { cookie: `session=${secret}` } })
  await place('path', `/v1/organization/members/${secret}`, { headers: cookieOf(secret) })
  await place('no route', `/${secret}`, {})
  await place('cursor', `${projects}?after=${secret}`, { headers: cookieOf(secret) })
  await place('query of a page', `/auth/session?session=${secret}`, {})
  await place('return path', `/auth/sign_in?return_to=https://evil.example/${secret}`, {})
  await place('request id', projects, { headers: { 'x-request-id': secret } })
  await place('form', '/auth/key', { form: { key: secret } })
  const { 'sec-fetch-site': _, ...others } = ownPage
  for (const [name, site] of [
    ['another site', { 'sec-fetch-site': 'cross-site', origin: `https://${secret}.example` }],
    ['a sibling', { 'sec-fetch-site': 'same-site' }],
    ['no site', { ...others, origin: 'https://wiki.example.com' }],
  ] as const) {
    const headers = { ...cookieOf(secret), ...site, 'x-gatehouse-csrf': secret }
    await place(name, '/auth/sign_out', { form: { csrf: secret }, headers })
  }
  return found
}

async function readLogs() {
  const names = (await readdir(stack().folder)).filter((name) => name.endsWith('.log'))
  expect(names.length).toBeGreaterThanOrEqual(3)
  return Promise.all(names.map((name) => readFile(join(stack().folder, name), 'utf8')))
}

async function readMetrics() {
  const { metrics_urls: urls } = stack().description
  return Promise.all(urls.map(async (url) => (await fetch(url)).text()))
}

/** Every row of every table, as text; bytes are in hexadecimal and in plain. */
async function readDatabase() {
  const { rows: tables } = await database.query<{ name: string }>(
    `select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'`,
  )
  const texts: string[] = []
  for (const { name } of tables) {
    const { rows } = await database.query<{ text: string }>(`select t::text as text from ${name} t`)
    texts.push(...rows.map(({ text }) => text))
  }
  const bytes = texts.flatMap((text) => text.match(/\\\\?x[0-9a-f]{8,}/g) ?? [])
  return [
    ...texts,
    ...bytes.map((hex) => Buffer.from(hex.replace(/^\\+x/, ''), 'hex').toString('latin1')),
  ]
}

test('nothing of a session or a key is in answers, logs, metrics, events or the database', async () => {
  const [base = ''] = stack().description.base_urls
  const client = createClient({ baseUrl: base, credential: stack().description.admin_key })
  const permissions = AdminKeyPermission.options
  const { value: key } = await client.call(createAdminApiKey, { body: { name: 'x', permissions } })
  secrets.set('key', key)
  const first = await signIn('first', key)
  const second = await signIn('second', key, cookieOf(first))
  expect(second).not.toBe(first)
  const { secret: mistyped } = await send('/auth/key', { form: { key: `${key.slice(0, -1)}~` } })
  expect(mistyped).toBeUndefined()
  const misplaced = await misplace(second)
  expect(misplaced.filter(([, status]) => status === 500)).toEqual([])
  expect(new Map(misplaced).get('another site')).toBe(403)
  const ada = await signInMember(stack(), database, { role: 'owner' })
  secrets.set('of a member', ada.secret)
  secrets.set('token of a member', await readCsrf(base, ada.secret))
  const headers = cookieOf(ada.secret)
  await send(`/v1/organization/members/${ada.memberId}/sessions`, { headers })
  await misplace(ada.secret)
  await send('/auth/sign_out', { form: { csrf: secrets.get('token of a member')! }, headers })
  const statusAfterwards = async () => (await send(projects, { headers })).status
  await expect.poll(statusAfterwards, { timeout: 20_000 }).toBe(401)

  const events: string[] = []
  for (let after: string | undefined; ;) {
    const page = await client.call(listAuditEvents, {
      query: { limit: '100', ...(after && { after }) },
    })
    events.push(JSON.stringify(page.data))
    if (!page.has_more) break
    after = page.last_id ?? undefined
  }
  const written = {
    answers: answered,
    logs: await readLogs(),
    metrics: await readMetrics(),
    events,
    database: await readDatabase(),
  }
  for (const [where, texts] of Object.entries(written)) {
    expect([where, texts.length > 0, namesIn(texts.join('\n'))]).toEqual([where, true, []])
  }
  // The search finds what is there: the ids of both are no secrets.
  expect(written.events.join('')).toContain(ada.sessionId)
  expect(written.database.join('')).toContain(ada.sessionId)
})
