import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

import { listProjects } from '@gatehouse/contract/project'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'
import { masterKey } from '#testing/test-gateway.ts'

// A database of an earlier release has API keys, and nothing yet that shows which master key is the right one.

const program = fileURLToPath(new URL('../operator.ts', import.meta.url))

async function operator(env: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [program, ...args], { env })
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
  return { output, errors }
}

const refused = { output: '', errors: expect.stringContaining('MASTER_KEYS may not belong to') }
const done = (output: string) => ({ output: expect.stringContaining(output), errors: '' })

test('commands that make keys or seal secrets wait until the master key is proved', async () => {
  const { db, house, organization, send } = await createTestApi()
  const { DATABASE_URL, MASTER_KEYS } = house.config
  const [{ version, bytes }] = MASTER_KEYS
  const right = { DATABASE_URL, MASTER_KEYS: `${version}:${bytes.toString('base64')}` }
  const wrong = { DATABASE_URL, MASTER_KEYS: masterKey(1) }
  const recover = ['organizations', 'recover', organization.organizationId]
  for (const env of [wrong, right]) {
    expect(await operator(env, 'organizations', 'create', '--name', 'A')).toEqual(refused)
    expect(await operator(env, ...recover)).toEqual(refused)
    expect(await operator(env, 'secrets', 'rewrap')).toEqual(refused)
    expect(await operator(env, 'organizations', 'list')).toEqual(done('Example Ltd'))
  }
  expect((await send(listProjects)).status).toBe(200)
  await waitUntil(
    async () =>
      (await sql`select from installation where key_check is not null`.execute(db)).rows.length ===
      1,
  )
  expect(await operator(right, ...recover)).toEqual(done('gate_adm_'))
  const { errors } = await operator(wrong, 'secrets', 'adopt')
  expect(errors).toContain('MASTER_KEYS does not belong to this database')
})

test('a master key that was lost: another one is adopted', async () => {
  const { house, organization } = await createTestApi()
  const env = { DATABASE_URL: house.config.DATABASE_URL, MASTER_KEYS: masterKey(1) }
  expect(await operator(env, 'secrets', 'adopt')).toEqual(done('adopted: true'))
  expect(await operator(env, 'secrets', 'adopt')).toEqual(done('adopted: false'))
  const recover = ['organizations', 'recover', organization.organizationId]
  expect(await operator(env, ...recover)).toEqual(done('gate_adm_'))
})
