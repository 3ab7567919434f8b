import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { promisify } from 'node:util'

import { endpoints } from '@gatehouse/contract/endpoints'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'

import { commands } from './command.ts'

// Every test starts processes, and a busy machine starts them slowly.
vi.setConfig({ testTimeout: 30_000 })

const main = join(import.meta.dirname, 'main.ts')
const key = `gate_adm_${'A'.repeat(49)}`
const createdAt = 1_767_225_600

type Seen = { method?: string; url?: string; idempotencyKey?: string; body: unknown }
const seen: Seen[] = []

const projects = ['a', 'b', 'c', 'd', 'e'].map((letter) => ({
  id: `proj_${letter.repeat(24)}`,
  object: 'organization.project',
  name: `Project ${letter}`,
  status: 'active',
  created_at: createdAt,
  archived_at: null,
}))

const newKey = {
  id: `key_${'k'.repeat(24)}`,
  object: 'organization.admin_api_key',
  name: 'ops',
  redacted_value: 'gate_adm_Zz...RU98',
  created_at: createdAt,
  owner: { id: 'org_1', type: 'organization' },
  permissions: ['policies.read', 'policies.write'],
  value: `gate_adm_${'Z'.repeat(49)}`,
}

/** Pages of two, whatever is asked for. */
function pageAfter(after: string | null) {
  const start = projects.findIndex(({ id }) => id === after) + 1
  const data = projects.slice(start, start + 2)
  return {
    object: 'list',
    data,
    has_more: start + 2 < projects.length,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

const error = (code: string, message: string, param: string | null) => ({
  error: { code, message, type: 'x', param, request_id: 'req_1', doc_url: null },
})

function answerTo({ method, url = '', headers }: IncomingMessage): [status: number, body: unknown] {
  const { pathname, searchParams } = new URL(url, 'http://service')
  if (headers.authorization !== `Bearer ${key}`) {
    return [401, error('invalid_api_key', 'The key is not valid.', null)]
  }
  if (method === 'POST' && pathname.endsWith('/admin_api_keys')) return [201, newKey]
  if (pathname.endsWith('/projects')) return [200, pageAfter(searchParams.get('after'))]
  return [404, error('project_not_found', 'There is no such project.', 'path.project_id')]
}

/** A body with the name `refused` is refused, with the place of a parameter. */
function refusalOf(body: unknown): [number, unknown] | undefined {
  const { name = '', permissions } = (body ?? {}) as { name?: string; permissions?: unknown }
  if (name !== 'refused') return undefined
  const param = permissions ? 'body.permissions.1' : 'body.name'
  return [422, error('invalid_parameter', 'The name is taken.', param)]
}

async function serve(request: IncomingMessage, response: ServerResponse) {
  const { method, url, headers } = request
  const hasBody = headers['content-type'] !== undefined
  const body: unknown = hasBody ? await json(request) : undefined
  const idempotencyKey = headers['idempotency-key']
  seen.push({ method, url, body, idempotencyKey } as Seen)
  const [status, answer] = refusalOf(body) ?? answerTo(request)
  response.writeHead(status, { 'x-request-id': 'req_1' }).end(JSON.stringify(answer))
}

const server = createServer((request, response) => void serve(request, response))

async function addressOf(listener: Server) {
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
}

let url = ''
beforeAll(async () => {
  url = await addressOf(server)
})
afterAll(() => void server.close())
beforeEach(() => void seen.splice(0))

type Ended = { code: number; stdout: string; stderr: string }

function gatehouse(args: readonly string[], environment: Record<string, string> = {}) {
  const env = { GATEHOUSE_URL: url, GATEHOUSE_ADMIN_KEY: key, ...environment }
  return new Promise<Ended>((resolve) => {
    execFile(process.execPath, [main, ...args], { env }, (failed, stdout, stderr) =>
      resolve({ code: Number(failed?.code ?? 0), stdout, stderr }),
    )
  })
}

test('a list is a table that says how to go on', async () => {
  expect(await gatehouse(['list-projects', '--limit', '2', '--order', 'desc'])).toEqual({
    code: 0,
    stdout: [
      'id                             name       status  created_at (UTC)',
      'proj_aaaaaaaaaaaaaaaaaaaaaaaa  Project a  active  2026-01-01 00:00',
      'proj_bbbbbbbbbbbbbbbbbbbbbbbb  Project b  active  2026-01-01 00:00',
      '',
      'There is more: --after proj_bbbbbbbbbbbbbbbbbbbbbbbb shows the next page.',
      '',
    ].join('\n'),
    stderr: '',
  })
  expect(seen[0]?.url).toBe('/v1/organization/projects?limit=2&order=desc')
})

test('--json prints the answer and nothing else', async () => {
  const { stdout } = await gatehouse(['list-projects', '--json'])
  expect(stdout).toBe(`${JSON.stringify(pageAfter(null))}\n`)
})

test('--all follows the pages, asking for the largest ones', async () => {
  const { stdout } = await gatehouse(['list-projects', '--all', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ data: projects, has_more: false })
  expect(seen.map((request) => request.url?.split('?')[1])).toEqual([
    'limit=100',
    `limit=100&after=${projects[1]?.id}`,
    `limit=100&after=${projects[3]?.id}`,
  ])
})

test('a created key is shown once, with its note, under a key that makes repeating safe', async () => {
  const permissions = ['--permissions', 'policies.read,policies.write']
  const args = ['create-admin-api-key', '--name', 'ops', ...permissions]
  const { code, stdout } = await gatehouse([...args, '--expires-in-seconds', '3600'])
  expect(code).toBe(0)
  expect(stdout).toContain(`value:           ${newKey.value}\n\nStore the value now`)
  expect(seen).toMatchObject([
    { method: 'POST', idempotencyKey: expect.stringMatching(/^[\w-]{36}$/) },
  ])
  expect(seen[0]?.body).toEqual({
    name: 'ops',
    permissions: newKey.permissions,
    expires_in_seconds: 3600,
  })
})

test('an idempotency key of the caller is used as it is', async () => {
  await gatehouse(['archive-project', 'proj_1', '--idempotency-key', 'mine'])
  expect(seen).toMatchObject([
    { url: '/v1/organization/projects/proj_1/archive', idempotencyKey: 'mine' },
  ])
})

test('an error of the service is one line and exit code 1', async () => {
  expect(await gatehouse(['retrieve-project', 'proj_none'])).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: There is no such project. (project_not_found, --project-id, request req_1)\n',
  })
})

test('a service that cannot be reached is named', async () => {
  const closed = createServer()
  const away = await addressOf(closed)
  await new Promise((resolve) => closed.close(resolve))
  const { code, stderr } = await gatehouse(['list-projects'], { GATEHOUSE_URL: away })
  expect(code).toBe(1)
  expect(stderr).toMatch(new RegExp(`^error: ${away} could not be reached: .*ECONNREFUSED.*\\.\n$`))
})

test('a number in a path is sent as it is written', async () => {
  await gatehouse(['retrieve-policy-version', 'pol_1', '3'])
  await gatehouse(['restore-policy-version', 'pol_1', '--version', '3', '--revision', '2'])
  expect(seen).toMatchObject([
    { url: '/v1/organization/policies/pol_1/versions/3' },
    { url: '/v1/organization/policies/pol_1/versions/3/restore', body: { revision: 2 } },
  ])
})

test('a stream is refused: this client prints whole answers', async () => {
  const args = ['create-message', '--model', 'm', '--max-tokens', '5', '--messages', '[]']
  const { code, stderr } = await gatehouse([...args, '--stream'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('leave out --stream')])
  expect(seen).toEqual([])
})

test('a missing setting says which variable to set; nothing is sent', async () => {
  const withoutKey = await gatehouse(['list-projects'], { GATEHOUSE_ADMIN_KEY: '' })
  expect(withoutKey.code).toBe(2)
  expect(withoutKey.stderr).toContain('read -rs GATEHOUSE_ADMIN_KEY && export GATEHOUSE_ADMIN_KEY')
  const withoutUrl = await gatehouse(['list-projects'], { GATEHOUSE_URL: '' })
  expect(withoutUrl.stderr).toContain('export GATEHOUSE_URL=https://')
  expect(seen).toEqual([])
})

test('--url and --key-file replace the environment', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-cli-'))
  const file = join(folder, 'key')
  writeFileSync(file, `${key}\n`, { mode: 0o600 })
  const empty = { GATEHOUSE_URL: '', GATEHOUSE_ADMIN_KEY: '' }
  const { code } = await gatehouse(['list-projects', '--url', url, '--key-file', file], empty)
  rmSync(folder, { recursive: true })
  expect(code).toBe(0)
})

test.each([
  [['make-coffee'], "There is no command 'make-coffee'."],
  [['list-project'], "There is no command 'list-project'. Did you mean 'list-projects'?"],
  [
    ['help', 'publsh-policy'],
    "There is no command 'publsh-policy'. Did you mean 'publish-policy'?",
  ],
])('%j: an unknown command is exit code 2 and the way to help', async (args, message) => {
  expect(await gatehouse(args)).toEqual({
    code: 2,
    stdout: '',
    stderr: `error: ${message}\nRun \`gatehouse help\` for the list of commands.\n`,
  })
})

test.each([
  ['create-project', ['--colour', 'red'], "There is no flag '--colour'."],
  ['create-project', ['--nmae', 'x'], "There is no flag '--nmae'. Did you mean '--name'?"],
  ['publish-policy', ['pol_1'], '--revision is missing.'],
  ['publish-policy', [], '--policy-id and --revision are missing.'],
  ['create-project', ['--name'], '--name needs a value.'],
] as const)(
  '%s %j: a wrong or missing flag is exit code 2, and nothing is sent',
  async (name, flags, message) => {
    expect(await gatehouse([name, ...flags])).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: ${message}\nRun \`gatehouse ${name} --help\` for its flags.\n`,
    })
    expect(seen).toEqual([])
  },
)

test('an error of the service about a parameter names its flag', async () => {
  const { code, stderr } = await gatehouse(['update-project', 'proj_1', '--name', 'refused'])
  expect([code, stderr]).toEqual([
    1,
    'error: The name is taken. (invalid_parameter, --name, request req_1)\n',
  ])
  const args = ['create-admin-api-key', '--name', 'refused', '--permissions', 'a,b']
  expect((await gatehouse(args)).stderr).toContain('--permissions (body.permissions.1)')
})

test('help lists every endpoint that needs a credential', async () => {
  const { stdout } = await gatehouse(['help'])
  for (const { id, summary } of endpoints.filter(({ permission }) => permission)) {
    const { name } = commands.find(({ operationId }) => operationId === id) ?? {}
    const line = stdout.split('\n').find((one) => one.startsWith(`  ${name} `))
    expect(line?.endsWith(` ${summary}`)).toBe(true)
  }
  expect((await gatehouse(['--help'])).stdout).toBe(stdout)
})

test('the help of a command shows types, bounds, what is required, and the permission', async () => {
  const { stdout, code } = await gatehouse(['create-admin-api-key', '--help'], {
    GATEHOUSE_URL: '',
  })
  expect(code).toBe(0)
  expect(stdout).toMatch(/--name +text +required +1 to 80 characters/)
  expect(stdout).toMatch(/--expires-in-seconds +integer +optional +1 to 315360000/)
  expect(stdout).toMatch(/--permissions +list +required +comma separated/)
  expect(stdout).toContain('Needs the permission admin_api_keys.write.')
  expect((await gatehouse(['help', 'create-admin-api-key'])).stdout).toBe(stdout)
})

/** The shortest of several runs, in ms. Runs alternate, so that the load of the machine meets all alike. */
async function fastestRuns<Name extends string>(commandLines: Record<Name, readonly string[]>) {
  const fastest = new Map<Name, number>()
  for (let round = 0; round < 7; round++) {
    for (const name of Object.keys(commandLines) as Name[]) {
      const startedAt = performance.now()
      await promisify(execFile)(process.execPath, [...commandLines[name]])
      const ms = performance.now() - startedAt
      fastest.set(name, Math.min(ms, fastest.get(name) ?? Infinity))
    }
  }
  return (name: Name) => fastest.get(name) ?? Infinity
}

test('--help answers soon: the contract is not loaded for it', async () => {
  const commandLines = { bare: ['-e', '0'], help: [main, '--help'] }
  const fastest = await fastestRuns(commandLines)
  // About 4; with the contract it would be about 14. A bare Node takes 40 ms on a machine that is not busy.
  expect(fastest('help') / fastest('bare')).toBeLessThan(8)
}, 60_000)
