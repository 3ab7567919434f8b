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

// Calls to the service started by limited-main.ts, which limits them as inference, and access to its counters.

export type LimitedAnswer = {
  status: number
  headers: Record<string, string>
  /** As spelled on the wire. */
  headerNames: string[]
  code: string | undefined
  message: string
}

/** How many tokens a call reserves, how many it uses, and how long it lasts. */
export type LimitedCallOptions = { tokens?: number; used?: number; holdMs?: number }

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
      method,
      agent,
      signal: hangUp ? AbortSignal.any([deadline, hangUp]) : deadline,
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
    headerNames: response.rawHeaders.filter((_, index) => index % 2 === 0),
    code: error?.code,
    message: error?.message ?? '',
  }
}

/** Sends a call that is limited like an inference call; `hangUp` aborts it. */
export const callLimited = (
  baseUrl: string,
  credential: string,
  options: LimitedCallOptions = {},
  hangUp?: AbortSignal,
) =>
  send(
    baseUrl,
    { method: 'POST', path: '/v1/chat/completions/limited', credential, body: options },
    hangUp,
  )

/** Sends a call that is limited like a read of the balance. */
export const readCredits = (baseUrl: string, credential: string) =>
  send(baseUrl, { method: 'GET', path: '/v1/credits/limited', credential })

/** Reads from an administration endpoint. */
export const readAdministration = (baseUrl: string, credential: string) =>
  send(baseUrl, { method: 'GET', path: '/v1/organization/projects?limit=1', credential })

/** Sends calls, a few at once, until one is refused with 429. All others must have the expected status. */
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

/** Creates an organization for one test, with a client that adds keys and projects. */
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

/** For each process, the log codes that report where it counts. */
async function readCountingEvents({ folder }: Stack): Promise<string[][]> {
  const names = (await readdir(folder)).filter((name) => /^api-.*\.log$/.test(name))
  const logs = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  return logs.map(
    (log) => log.match(/"limits_(counted_in_redis|counted_locally|returning_to_redis)"/g) ?? [],
  )
}

/**
 * Runs work whose figures are exact only while all processes count in Redis. If a busy machine stalls a process
 * for longer than it waits for Redis, the process counts locally for a while, and the work is repeated.
 */
export async function whileExact<T>(stack: Stack, work: () => Promise<T>): Promise<T> {
  const isExact = (events: string[]) =>
    [undefined, '"limits_counted_in_redis"'].includes(events.at(-1))
  for (let tries = 1; ; tries++) {
    while (!(await readCountingEvents(stack)).every(isExact)) await sleep(200)
    const before = await readCountingEvents(stack)
    const [result] = await Promise.allSettled([work()])
    await sleep(100) // until the log is written
    const hasStalled = (await readCountingEvents(stack)).flat().length > before.flat().length
    if (hasStalled && tries < 4) continue
    if (result.status === 'rejected') throw result.reason
    if (hasStalled) throw new Error('This machine is too busy to measure limits.')
    return result.value
  }
}

const keysOf = (stack: Stack, organizationId: string) =>
  ['c', 'l', 'i'].map((part) => `${stack.database.name}:rl:{${organizationId}}:${part}`)

/** Deletes the counters of an organization, as if a day had passed. */
export async function clearCounters(stack: Stack, organizationId: string) {
  await sendToRedis('DEL', ...keysOf(stack, organizationId))
}

/** How many slots an organization has in use or has left behind. */
export async function countSlots(stack: Stack, organizationId: string): Promise<number> {
  const [, leases = ''] = keysOf(stack, organizationId)
  return Number((await sendToRedis('ZCARD', leases)).slice(1))
}

/** Adds usage to the current day, more than a test could send, through the service's own Redis function. */
export async function addUsageToday(
  stack: Stack,
  organizationId: string,
  { field, requests = 0, tokens = 0 }: { field: string; requests?: number; tokens?: number },
) {
  const hourMs = 3_600_000
  const usage = [uint(requests, 4), uint(tokens, 6)]
  const noUsage = [uint(0, 4), uint(0, 6)]
  const hour = uint(Math.floor(Date.now() / hourMs), 4)
  // The layout is described in service/src/limits/counters/byte-layout.ts: no bucket for a second, one for an hour.
  const head = [uint(0, 2), uint(1, 2), ...noUsage, ...usage]
  const packed = Buffer.concat([...head, hour, ...usage])
  const keys = keysOf(stack, organizationId)
  await sendToRedis('FCALL', 'gatehouse_limits_4_absorb', '3', ...keys, '0', field, packed, '')
}

function uint(value: number, width: number): Buffer {
  const bytes = Buffer.alloc(width)
  bytes.writeUIntLE(value, 0, width)
  return bytes
}

/** Sends one command on its own connection; fails if the server answers with an error. */
async function sendToRedis(...words: (string | Buffer)[]): Promise<string> {
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
    if (reply.startsWith('-')) throw new Error(`Redis refused ${String(words[0])}: ${reply}`)
    return reply
  } finally {
    socket.destroy()
  }
}
