import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { listProjects } from '@gatehouse/contract/project'
import { expect, test } from 'vitest'

import { call } from './support/call.ts'
import { useStack } from './support/use-stack.ts'

// The operator's commands, as an operator types them.

const stack = useStack()
const command = fileURLToPath(new URL('../service/src/operator.ts', import.meta.url))

function operator(...args: string[]): Promise<{ code: number; output: string; errors: string }> {
  return new Promise((resolve) => {
    const env = stack().service
    execFile(process.execPath, [command, ...args], { env }, (error, output, errors) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output, errors }),
    )
  })
}

test('create prints the first administrator key once, and it works', async () => {
  const { code, output } = await operator('organizations', 'create', '--name', ' Example  Ltd ')
  expect([code, output]).toEqual([0, expect.stringContaining('it is not shown again')])
  const [, credential] = /^admin_key: (gate_adm_\w{49})$/m.exec(output) ?? []
  const answer = await call(stack().description.base_url, listProjects, { credential })
  expect(answer.json).toMatchObject({ data: [{ name: 'Default', status: 'active' }] })
  const list = await operator('organizations', 'list')
  expect(list.output).toContain('Example  Ltd  active')
  expect(list.output).not.toContain('gate_adm_')
})

test('suspend and reinstate say what is now true, and may be repeated', async () => {
  const { organization_id: id } = stack().description
  for (const [word, status] of [
    ['suspend', 'suspended'],
    ['suspend', 'suspended'],
    ['reinstate', 'active'],
  ] as const) {
    const { code, output } = await operator('organizations', word, id, '--json')
    expect([code, JSON.parse(output)]).toEqual([0, expect.objectContaining({ id, status })])
  }
})

test('recover gives a new key to an organization that has lost its own', async () => {
  const { organization_id: id, base_url } = stack().description
  const { output } = await operator('organizations', 'recover', id, '--json')
  const { admin_key: credential } = JSON.parse(output) as { admin_key: string }
  expect((await call(base_url, listProjects, { credential })).status).toBe(200)
  const missing = await operator('organizations', 'recover', 'org_none')
  expect([missing.code, missing.errors]).toEqual([1, expect.stringContaining('org_none')])
})

test('list is paged', async () => {
  const first = JSON.parse((await operator('organizations', 'list', '--json')).output) as {
    data: { id: string }[]
  }
  const after = first.data[0]?.id ?? ''
  const { output } = await operator('organizations', 'list', '--after', after, '--json')
  const rest = JSON.parse(output) as typeof first
  expect(rest.data).toEqual(first.data.slice(1))
})

test.each([
  [['organizations', 'create'], 2, 'Give the organization a name'],
  [['organizations', 'create', '--name', ''], 2, 'Give the organization a name'],
  [['organizations', 'create', '--nmae', 'x'], 2, "Unknown option '--nmae'"],
  [['organizations', 'suspend'], 2, 'Name the organization'],
  [['organizations', 'suspend', 'org_none'], 1, "No organization has the id 'org_none'"],
  [['organizations', 'list', '--after', 'org_none'], 1, "No organization has the id 'org_none'"],
  [['organizations', 'destroy'], 2, "There is no command 'destroy'"],
  [['planets', 'list'], 2, "There is no topic 'planets'"],
] as const)('%j is explained', async (args, code, text) => {
  const result = await operator(...args)
  expect([result.code, result.errors]).toEqual([code, expect.stringContaining(text)])
  if (code === 2) expect(result.errors).toContain('Usage:')
})

test('without arguments it shows what it can do', async () => {
  expect((await operator()).output).toContain('reinstate <organization id>')
})
