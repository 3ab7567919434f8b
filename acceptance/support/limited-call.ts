import { readdir, readFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { createProject } from '@gatehouse/contract/project'
import { createOrganization, type Stack } from '@gatehouse/tools/start-stack'
import { redisUrl } from '@gatehouse/tools/throwaway-database'
import { expect } from 'vitest'

// Calls of the entry limited-main.ts, which are limited as inference is, and a hand in its counters.

export type LimitedAnswer = {
  status: number
  headers: Record<string, string>
  /** As they were written on the wire. */
  headerNames: string[]
  code: string | undefined
  message: string
}

/** What a call reserves, what it turns out to use, and how long it lasts. */
export type Wish = { tokens?: number; used?: number; holdMs?: number }

const agent = new Agent({ keepAlive: true })
const answerMaxMs = 30_000

type Sent = { method: string; path: string; credential: string; body?: object | undefined }

async function send(
  baseUrl: string,
  { method, path, credential, body }: Sent,
  hangUp?: AbortSignal,
): Promise<LimitedAnswer> {
  const deadline = AbortSignal.timeout(answerMaxMs)
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const call = request(new URL(path, baseUrl), {
      ...{ method, agent, signal: hangUp ? AbortSignal.any([deadline, hangUp]) : deadline },
      headers: {
        authorization: `Bearer ${credential}`,
        ...(body && { 'content-type': 'application/json' }),
      },
    })
    call.once('response', resolve)
    call.once('error', reject)
    call.end(body && JSON.stringify(body))
  })
  const { error } = JSON.parse(await readText(response)) as {
    error?: { code: string; message: string }
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers as Record<string, string>,
    headerNames: response.rawHeaders.filter((_, place) => place % 2 === 0),
    ...{ code: error?.code, message: error?.message ?? '' },
  }
}

/** A call that is limited as inference is; `hangUp` ends it from this side. */
export const callLimited = (
  baseUrl: string,
  credential: string,
  wish: Wish = {},
  hangUp?: AbortSignal,
) =>
  send(
    baseUrl,
    { method: 'POST', path: '/v1/chat/completions/limited', credential, body: wish },
    hangUp,
  )

/** A call that is limited as reading the balance is. */
export const readCredits = (baseUrl: string, credential: string) =>
  send(baseUrl, { method: 'GET', path: '/v1/credits/limited', credential })

/** A read of the administration interface. */
export const readAdministration = (baseUrl: string, credential: string) =>
  send(baseUrl, { method: 'GET', path: '/v1/organization/projects?limit=1', credential })

/** Sends until a 429 comes, a few at once; says how many got in, all with the expected status. */
export async function sendUntilRefused(
  sendOne: () => Promise<LimitedAnswer>,
  { status = 200, atOnce = 4, most = 3000 } = {},
): Promise<{ admitted: number; refusal: LimitedAnswer | undefined }> {
  const refusals: LimitedAnswer[] = []
  let admitted = 0
  const sender = async () => {
    while (refusals.length === 0 && admitted < most) {
      const answer = await sendOne()
      if (answer.status === 429) refusals.push(answer)
      else {
        expect(answer.status, answer.message).toBe(status)
        admitted++
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sender))
  return { admitted, refusal: refusals[0] }
}

export type ProjectKey = { id: string; value: string; projectId: string }

/** An organization of a test's own, and what it needs to make keys and projects. */
export async function addTenant(stack: Stack, name: string) {
  const organization = await createOrganization(stack.service, name)
  const client = createClient({
    baseUrl: stack.description.base_url,
    credential: organization.admin_key,
  })
  return {
    id: organization.organization_id,
    adminKey: organization.admin_key,
    projectId: organization.project_id,
    client,
    addProject: async () => (await client.call(createProject, { body: { name: 'Another' } })).id,
    async addKey(
      projectId = organization.project_id,
      permissions: ('model.invoke' | 'credits.read')[] = ['model.invoke', 'credits.read'],
    ): Promise<ProjectKey> {
      const params = { project_id: projectId }
      const body = { name: 'limited', permissions }
      const { id, value } = await client.call(createProjectApiKey, { params, body })
      return { id, value, projectId }
    },
  }
}
export type Tenant = Awaited<ReturnType<typeof addTenant>>

/** What each process has logged about where it counts: `limits_open` means that it counts by itself. */
async function whereItCounts({ folder }: Stack): Promise<string[][]> {
  const names = (await readdir(folder)).filter((name) => /^api-.*\.log$/.test(name))
  const logs = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  return logs.map((log) => log.match(/"limits_(open|returning|closed)"/g) ?? [])
}

/**
 * Figures are exact while all processes count in one place. Where a busy machine stalls one for longer than
 * it waits for Redis, it counts by itself for a moment: only then, what was begun is done once more.
 */
export async function whileExact<T>(stack: Stack, work: () => Promise<T>): Promise<T> {
  const isExact = (events: string[]) => [undefined, '"limits_closed"'].includes(events.at(-1))
  for (let tries = 1; ; tries++) {
    while (!(await whereItCounts(stack)).every(isExact)) await sleep(200)
    const before = await whereItCounts(stack)
    const [result] = await Promise.allSettled([work()])
    await sleep(100) // what it logs takes a moment to arrive
    const hasStalled = (await whereItCounts(stack)).flat().length > before.flat().length
    if (hasStalled && tries < 4) continue
    if (result.status === 'rejected') throw result.reason
    if (hasStalled) throw new Error('This machine is too busy to measure limits.')
    return result.value
  }
}

const keysOf = (stack: Stack, organizationId: string) =>
  ['c', 'l'].map((part) => `${stack.database.name}:rl:{${organizationId}}:${part}`)

/** Forgets what an organization has used: a minute or a day later, at once. */
export async function forgetUse(stack: Stack, organizationId: string) {
  await sendToRedis('DEL', ...keysOf(stack, organizationId))
}

/** Counts what nobody could send in a test as used today, by the function the service uses. */
export async function useToday(
  stack: Stack,
  organizationId: string,
  { field, requests = 0, tokens = 0 }: { field: string; requests?: number; tokens?: number },
) {
  const hourMs = 3_600_000
  // Head: buckets of the minute and of the day, sums of both. Then one bucket of an hour.
  const packed = Buffer.alloc(24 + 14)
  packed.writeUInt16LE(1, 2)
  packed.writeUInt32LE(requests, 14)
  packed.writeUIntLE(tokens, 18, 6)
  packed.writeUInt32LE(Math.floor(Date.now() / hourMs), 24)
  packed.writeUInt32LE(requests, 28)
  packed.writeUIntLE(tokens, 32, 6)
  const keys = keysOf(stack, organizationId)
  await sendToRedis('FCALL', 'gatehouse_limits_1_absorb', '2', ...keys, '0', field, packed, '')
}

/** One command on a connection of its own; fails when the server answers with an error. */
async function sendToRedis(...words: (string | Buffer)[]): Promise<void> {
  const { hostname, port } = new URL(redisUrl)
  const socket = connect(Number(port || 6379), hostname)
  const parts = words.flatMap((word) => {
    const bytes = Buffer.from(word as string)
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]
  })
  socket.write(Buffer.concat([Buffer.from(`*${words.length}\r\n`), ...parts]))
  try {
    const reply = await new Promise<string>((resolve, reject) => {
      socket.once('data', (chunk) => resolve(chunk.toString()))
      socket.once('error', reject)
    })
    if (reply.startsWith('-')) throw new Error(`Redis refuses ${String(words[0])}: ${reply}`)
  } finally {
    socket.destroy()
  }
}
