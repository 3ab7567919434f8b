import { execFile } from 'node:child_process'

import { listMembers, type Member } from '@gatehouse/contract/members/member'
import { programFile } from '@gatehouse/tools/program'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { call } from './support/call.ts'
import { useStack } from './support/use-stack.ts'

// The operator's commands about members, for organizations that cannot help themselves.

const stack = useStack({ models: null })

let database: pg.Client
beforeAll(async () => {
  database = new pg.Client({ connectionString: stack().database.url })
  await database.connect()
})
afterAll(() => database.end())

type Ended = { code: number; output: string; errors: string }

function members(command: string, ...args: string[]): Promise<Ended> {
  const { organization_id: id } = stack().description
  const words = [programFile('gatehouse'), 'operator', 'members', command, id, ...args]
  return new Promise((resolve) => {
    execFile(process.execPath, words, { env: stack().service }, (error, output, errors) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output, errors }),
    )
  })
}

const json = async (command: string, ...args: string[]) => {
  const { code, output } = await members(command, ...args, '--json')
  expect(code).toBe(0)
  return JSON.parse(output) as Member & { data: Member[]; has_more: boolean }
}

/** As a sign-in does. */
const signIn = (email: string) =>
  database.query(`update member set status = 'active', last_seen_at = now() where email = $1`, [
    email,
  ])

const ada = ['--email', 'Ada@example.com']
const bob = ['--email', 'bob@example.com']

test('members are invited, listed, given roles and suspended', async () => {
  expect((await members('list')).output).toBe('The organization has no members yet.\n')
  const owner = await json('invite', ...ada, '--role', 'owner', '--name', ' Ada ')
  expect(owner).toMatchObject({
    email: 'ada@example.com',
    name: 'Ada',
    role: 'owner',
    status: 'invited',
    last_seen_at: null,
  })
  const viewer = await json('invite', ...bob, '--role', 'viewer')
  const listed = await members('list')
  expect(listed.output).toBe(
    `${owner.id}  ada@example.com  owner  invited  Ada\n${viewer.id}  bob@example.com  viewer  invited  bob\n`,
  )
  // Only who has invited the member gets the link.
  const known = Object.fromEntries(
    Object.entries(viewer).filter(([name]) => !name.startsWith('invitation_')),
  )
  expect((await json('list', '--after', owner.id)).data).toEqual([known])
  const { base_url, admin_key: credential } = stack().description
  const seen = await call(base_url, listMembers, { credential })
  expect(seen.json).toMatchObject({ data: [{ id: owner.id }, { id: viewer.id }] })

  await signIn('ada@example.com')
  await signIn('bob@example.com')
  const lastOwner = {
    code: 1,
    output: '',
    errors: 'operator: This is the last active owner; make another active member an owner first.\n',
  }
  expect(await members('suspend', ...ada)).toEqual(lastOwner)
  expect(await members('set-role', ...ada, '--role', 'admin')).toEqual(lastOwner)
  expect(await json('set-role', ...bob, '--role', 'owner')).toMatchObject({ role: 'owner' })
  for (let times = 0; times < 2; times++) {
    expect(await json('suspend', ...ada)).toMatchObject({ status: 'suspended' })
  }
  expect(await members('suspend', ...bob)).toEqual(lastOwner)
})

test.each([
  [['invite', ...bob, '--role', 'viewer'], 1, 'Another member has the address bob@example.com.'],
  [['suspend', '--email', 'eve@example.com'], 1, "no member with the address 'eve@example.com'"],
  [['list', '--after', 'mem_none'], 1, "No member has the id 'mem_none'"],
  [['invite', '--email', 'eve', '--role', 'viewer'], 2, '--email takes an address'],
  [['invite', '--email', 'eve@example.com', '--role', 'king'], 2, '--role takes owner'],
  [['suspend', ...bob, '--role', 'viewer'], 2, "does not take '--role'"],
] as const)('%j is explained', async ([command, ...args], code, text) => {
  const ended = await members(command, ...args)
  expect([ended.code, ended.errors]).toEqual([code, expect.stringContaining(text)])
})

test('an invitation is printed with its member, and again on request', async () => {
  const { organization_id: id } = stack().description
  const run = (command: string, ...args: string[]) =>
    new Promise<string>((resolve) => {
      const words = [programFile('gatehouse'), 'operator', 'members', command, id, ...args]
      const env = { ...stack().service, PUBLIC_URL: 'https://gateway.example.com' }
      execFile(process.execPath, words, { env }, (_, output, errors) => resolve(output + errors))
    })
  const dora = ['--email', 'dora@example.com']
  const link = /invitation_url: https:\/\/gateway\.example\.com\/auth\/invitation#gate_inv_\w{49}\n/
  const first = await run('invite', ...dora, '--role', 'viewer')
  expect(first).toMatch(link)
  const second = await run('invitation', ...dora)
  expect(second).toMatch(link)
  expect(link.exec(second)?.[0]).not.toBe(link.exec(first)?.[0])
  await signIn('dora@example.com')
  expect(await run('invitation', ...dora)).toContain('whose status is invited')
})

test('a link that signs a member in is printed, if there is sign-in with links', async () => {
  const { organization_id: id } = stack().description
  const email = 'carl@example.com'
  await members('invite', '--email', email, '--role', 'viewer')
  const words = [programFile('gatehouse'), 'operator', 'sign-in-link', '--organization', id]
  const run = (environment: Record<string, string>, of = email) =>
    new Promise<Ended>((resolve) => {
      const env = { ...stack().service, ...environment }
      const all = [...words, '--email', of]
      execFile(process.execPath, all, { env }, (error, output, errors) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, output, errors }),
      )
    })
  const PUBLIC_URL = 'https://gateway.example.com'
  const made = await run({ PUBLIC_URL })
  expect([made.code, made.output]).toEqual([
    0,
    expect.stringMatching(
      /^https:\/\/gateway\.example\.com\/auth\/link#gate_lnk_\w{49}\nIt signs carl@example\.com in once/,
    ),
  ])
  expect((await run({})).errors).toContain('PUBLIC_URL is not set')
  expect((await run({ PUBLIC_URL, SIGN_IN_WITH_KEYS: 'false' })).errors).toContain(
    'Links do not sign in here',
  )
  expect((await run({ PUBLIC_URL }, 'eve@example.com')).errors).toContain('has no member')
})

test('an organization that does not exist is named', async () => {
  const words = [programFile('gatehouse'), 'operator', 'members', 'list', 'org_none']
  const errors = await new Promise((resolve) => {
    execFile(process.execPath, words, { env: stack().service }, (_, __, text) => resolve(text))
  })
  expect(errors).toBe("operator: No organization has the id 'org_none'.\n")
})
