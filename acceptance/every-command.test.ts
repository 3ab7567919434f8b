import { execFile } from 'node:child_process'

import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { programFile } from '@gatehouse/tools/program'
import { describe, expect, test } from 'vitest'

import { operations } from './support/description.ts'
import {
  type Changes,
  exampleCalls,
  exampleIn,
  exampleModels,
  type Json,
} from './support/example-calls.ts'
import { useStack } from './support/use-stack.ts'

// Every command of the client, run as a person runs it, with the example of its operation. A new operation is tested
// without further work.

const stack = useStack({ models: exampleModels })

const guarded: readonly Endpoint[] = endpoints.filter(({ permission }) => permission !== null)
const commandOf = (id: string) => id.replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase()
const flagOf = (name: string) => `--${name.replaceAll('_', '-')}`

type Ended = { code: number; stdout: string; stderr: string }

function gatehouse(args: readonly string[], environment: Record<string, string> = {}) {
  const { base_url, admin_key, project_key } = stack().description
  const env = {
    GATEHOUSE_URL: base_url,
    GATEHOUSE_ADMIN_KEY: admin_key,
    GATEHOUSE_API_KEY: project_key,
    ...environment,
  }
  return new Promise<Ended>((resolve) => {
    execFile(
      process.execPath,
      [programFile('gatehouse'), ...args],
      { env },
      (failed, stdout, stderr) => resolve({ code: Number(failed?.code ?? 0), stdout, stderr }),
    )
  })
}

/** The example as flags; the body as JSON, because some members have no short form. */
function argumentsFor(id: string, changes: Changes): string[] {
  const example = exampleIn(operations.get(id)!)
  const given = { ...example.params, ...changes.params, ...example.query, ...changes.query }
  const flags = Object.entries(given).filter(([, value]) => value !== undefined)
  const body = example.body && { ...example.body, ...changes.body }
  return [
    commandOf(id),
    ...flags.map(([name, value]) => `${flagOf(name)}=${String(value)}`),
    ...(body ? ['--body', JSON.stringify(body)] : []),
  ]
}

/** What a person reads, as an object: `export.id:  exp_1` is a member of a member. */
function readLines(text: string): Json {
  const read: Json = {}
  for (const [, path = '', value] of text.matchAll(/^([\w.]+): +(.*)$/gm)) {
    const [name = '', ...inside] = path.split('.')
    const [member] = inside
    if (member === undefined) read[name] = value
    else read[name] = { ...(read[name] as Json), [member]: value }
  }
  return read
}

/** A proof needs a checkpoint, which the worker signs within seconds. */
async function runUntilReady(args: readonly string[]): Promise<Ended> {
  let ended = await gatehouse(args)
  await expect
    .poll(async () => (ended = await gatehouse(args)).stderr, { timeout: 60_000 })
    .not.toContain('proof_not_ready')
  return ended
}

const answers = new Map<string, Json>()
const calls = exampleCalls(answers)
const inOrder = Object.keys(calls).filter((id) => guarded.some((endpoint) => endpoint.id === id))
const stackTrace = /^\s+at /m

test('help lists the commands that are run here', async () => {
  const { stdout } = await gatehouse(['help'])
  const [, listed = ''] = /^Commands:\n(.*?)\n\n/ms.exec(stdout) ?? []
  const names = listed.split('\n').map((line) => line.trim().split(' ')[0])
  expect(new Set(names)).toEqual(new Set(inOrder.map(commandOf)))
})

/** A key approves nothing, and the member of the examples has never signed in. */
const ofMembers = new Set([
  'approvePolicy',
  'withdrawPolicyApproval',
  'approveGatewayProposal',
  'deleteMemberSession',
])

describe.each(inOrder)('%s', (id) => {
  const isRead = guarded.some((endpoint) => endpoint.id === id && endpoint.method === 'GET')

  test('succeeds, unless it is for members who have signed in only', async () => {
    const args = argumentsFor(id, calls[id]!())
    if (ofMembers.has(id)) {
      const refused = await gatehouse(args)
      expect([refused.code, refused.stdout]).toEqual([1, ''])
      return expect(refused.stderr).toMatch(
        /\((permission_denied|approval_not_found|session_not_found), /,
      )
    }
    const run = id === 'readAuditProof' ? runUntilReady : gatehouse
    const { code, stdout, stderr } = await run(args)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).not.toMatch(stackTrace)
    answers.set(id, readLines(stdout))
    if (!isRead) return
    const json = JSON.parse((await gatehouse([...args, '--json'])).stdout) as Json
    answers.set(id, json)
    if (Array.isArray(json['data'])) expectTable(stdout)
  })

  test('without a valid key, it says so in one line', async () => {
    const keys = { GATEHOUSE_ADMIN_KEY: 'gate_adm_wrong', GATEHOUSE_API_KEY: 'gate_prj_wrong' }
    const ended = await gatehouse(argumentsFor(id, calls[id]!()), keys)
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^error: .* \(invalid_api_key, request req_\w+\)\n$/)
  })
})

/** No line is wider than 80 columns, and times are not those of machines. */
function expectTable(text: string) {
  for (const line of text.split('\n')) expect(Array.from(line).length, text).toBeLessThanOrEqual(80)
  expect(text).not.toMatch(/\d{4}-\d\d-\d\dT\d\d:|\b1[789]\d{8}\b/)
}

test('quotas and budgets show their numbers', async () => {
  const { project_id } = stack().description
  const budget = JSON.stringify({ credits: 90_000_000 })
  const set = await gatehouse(['update-project', project_id, '--monthly-budget', budget])
  expect(set).toMatchObject({ code: 0, stderr: '' })
  const { stdout } = await gatehouse(['list-gateway-quotas'])
  expect(stdout).toMatch(new RegExp(`^${project_id} +\\d+/90000000 `, 'm'))
})
