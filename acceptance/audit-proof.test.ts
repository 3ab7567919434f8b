import { execFile } from 'node:child_process'
import { createHash, createPublicKey, randomUUID, verify } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createAdminApiKey, deleteAdminApiKey } from '@gatehouse/contract/api-key'
import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import {
  type AuditRecord,
  listAuditCheckpoints,
  listAuditRecords,
  readAuditKeys,
  readAuditProof,
} from '@gatehouse/contract/exports/audit-log'
import { createMessage } from '@gatehouse/contract/message'
import { createPolicy, deletePolicy, publishPolicy, updatePolicy } from '@gatehouse/contract/policy'
import { createProject } from '@gatehouse/contract/project'
import { programFile } from '@gatehouse/tools/program'
import { createOrganization } from '@gatehouse/tools/start-stack'
import { beforeAll, expect, onTestFinished, test } from 'vitest'

import { type Answer, call, codeOf, type Sent } from './support/call.ts'
import { useStack } from './support/use-stack.ts'

// The audit log as auditors see it: what the service signs verifies without the service.

const stack = useStack()

type Checkpoint = { org_seq: number; root: string; key_id: number; note: string }
type Proof = {
  event: AuditRecord
  org_seq: number
  leaf: string
  hashes: string[]
  checkpoint: Checkpoint
}
type List<Item> = { data: Item[] }

const administer = (endpoint: Parameters<typeof call>[1], sent: Sent = {}): Promise<Answer> => {
  const { base_url, admin_key } = stack().description
  return call(base_url, endpoint, { credential: admin_key, ...sent })
}
const read = async <Body>(...args: Parameters<typeof administer>): Promise<Body> =>
  (await administer(...args)).json as Body

const checkpoints = () => read<List<Checkpoint>>(listAuditCheckpoints)
const records = () => read<List<{ record: AuditRecord }>>(listAuditRecords)

/** Asks again until something is there; the timeout of the test detects a hang. */
async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await look()
    if (found) return found
    await sleep(250)
  }
}

beforeAll(async () => {
  const { base_url, project_key: credential } = stack().description
  const messages = [{ role: 'user', content: 'Hello' }]
  const body = { model: 'claude-scripted', max_tokens: 20, messages }
  for (const name of ['One', 'Two', 'Three']) {
    await administer(createProject, { body: { name } })
    await call(base_url, createMessage, { credential, body })
  }
  // If the first one was signed before these events had their numbers, the next is a minute away.
  await until(async () => (await checkpoints()).data.some(({ org_seq: size }) => size > 2))
}, 120_000)

function run(...args: string[]): Promise<{ code: number; output: string; errors: string }> {
  const { base_url, admin_key } = stack().description
  const env = { ...process.env, GATEHOUSE_URL: base_url, GATEHOUSE_ADMIN_KEY: admin_key }
  return new Promise((resolve) => {
    const command = [programFile('gatehouse'), 'audit', ...args]
    execFile(process.execPath, command, { env }, (error, output, errors) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output, errors }),
    )
  })
}

async function makeFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-proof-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const keys = join(folder, 'keys.json')
  const published = await call(stack().description.base_url, readAuditKeys)
  await writeFile(keys, published.text)
  const at = (name: string) => join(folder, name)
  return { keys, bundle: at('bundle.ndjson'), proof: at('proof.json'), changed: at('changed') }
}

test('an export of the running service verifies with its published keys, and a changed byte is found', async () => {
  const { keys, bundle, changed } = await makeFolder()
  const exported = await run('export', '--out', bundle)
  expect([exported.code, exported.errors]).toEqual([0, ''])
  const verified = await run('verify', bundle, '--keys', keys)
  expect([verified.code, verified.errors]).toEqual([0, ''])
  expect(verified.output).toContain(`of organization ${stack().description.organization_id}`)

  const lines = (await readFile(bundle, 'utf8')).split('\n')
  const at = lines.findIndex((line) => line.includes('"org_seq":2,'))
  const line = lines[at] ?? ''
  const place = line.indexOf('"created_at":"2') + '"created_at":"2'.length
  lines[at] = `${line.slice(0, place)}${line[place] === '0' ? '1' : '0'}${line.slice(place + 1)}`
  await writeFile(changed, lines.join('\n'))
  const refused = await run('verify', changed, '--keys', keys)
  expect([refused.code, refused.errors]).toEqual([1, expect.stringContaining('Record 2 ')])
  expect(refused.errors).toContain('has been changed')
})

test('a proof of the running service verifies offline, and a changed one does not', async () => {
  const { keys, proof, changed } = await makeFolder()
  const { data } = await records()
  const { record } = data[1]!
  const answer = await administer(readAuditProof, { params: { event_id: record.event_id } })
  await writeFile(proof, answer.text)
  const verified = await run('verify', proof, '--keys', keys)
  expect([verified.code, verified.errors]).toEqual([0, ''])
  expect(verified.output).toContain(`Verified: record ${record.org_seq} of organization `)
  expect(verified.output).toContain(record.event_id)
  for (const [from, to] of [
    [`"org_seq":${record.org_seq}`, `"org_seq":${record.org_seq + 1}`],
    [String(record['actor']), 'key_somebody'],
    ['"before":', '"befOre":'],
    [(answer.json as Proof).leaf, '0'.repeat(64)],
    [(answer.json as Proof).hashes[0]!, '0'.repeat(64)],
  ] as const) {
    expect(answer.text).toContain(from)
    await writeFile(changed, answer.text.replace(from, to))
    const refused = await run('verify', changed, '--keys', keys)
    expect([from, refused.code, refused.output]).toEqual([from, 1, ''])
  }
})

test('audit who says who changed a policy, when and how, also when it is deleted', async () => {
  const made = await read<{ id: string; value: string }>(createAdminApiKey, {
    body: { name: 'Second pair of eyes', permissions: ['policies.write', 'policies.publish'] },
  })
  const rule = `Nobody may be rude, ${'and nobody may be loud, '.repeat(10)}or late.`
  const policy = await read<{ id: string }>(createPolicy, { body: { name: 'Manners', rule } })
  const params = { policy_id: policy.id }
  const second = { params, credential: made.value }
  const edited = { ...second, body: { revision: 1, rule: rule.replace('rude', 'unkind') } }
  expect((await administer(updatePolicy, edited)).status).toBe(200)
  expect((await administer(publishPolicy, { params, body: { revision: 2 } })).status).toBe(200)
  expect((await administer(deletePolicy, { params, query: { revision: 3 } })).status).toBe(200)
  await administer(deleteAdminApiKey, { params: { key_id: made.id } })

  const who = await run('who', policy.id)
  expect([who.code, who.errors]).toEqual([0, ''])
  const lines = who.output.split('\n')
  for (const line of lines) expect(Array.from(line).length).toBeLessThanOrEqual(80)
  expect(lines[0]).toBe(`${policy.id} "Manners": 4 changes, the newest first`)
  const deeds = lines.filter((line) => /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  /.test(line))
  expect(deeds.map((line) => line.slice(25))).toEqual([
    'deleted (revision 3)',
    'published version 1 (revision 3)',
    'updated (revision 2)',
    'created (revision 1)',
  ])
  const [first, ...others] = lines.filter((line) => line.startsWith('  by '))
  expect(first).toMatch(/^ {2}by key_\w{24} \(admin_key\) "First administrator key"$/)
  // The key is gone, and its name with it; its id stays.
  expect(others[1]).toBe(`  by ${made.id} (admin_key)`)
  expect(who.output).toMatch(
    /draft\.rule:\n {4}before "Nobody may be rude.*…\n {4}after {2}"Nobody/,
  )

  const page = await run('who', policy.id, '--limit', '3')
  const [, after = ''] = /--after (\S+)/.exec(page.output) ?? []
  const rest = JSON.parse(
    (await run('who', policy.id, '--after', after, '--json')).output,
  ) as object
  expect(rest).toMatchObject({ changes: [{ action: 'created', revision: 1 }], has_more: false })
  const unknown = await run('who', 'pol_none')
  expect([unknown.code, unknown.output]).toEqual([1, ''])
  expect(unknown.errors).toContain('No change of pol_none is recorded')
})

// The rest verifies by its own code, as somebody would who trusts neither the service nor the command.

const sha256 = (...parts: (Buffer | string)[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
const nodeOf = (left: Buffer, right: Buffer) => sha256(Buffer.from([1]), left, right)

/** RFC 8785; what records contain needs no more than sorted members. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const names = Object.keys(value).toSorted()
  const members = value as Record<string, unknown>
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(members[name])}`).join(',')}}`
}

/** RFC 9162, 2.1.3.2. */
function rootBy({ org_seq, hashes, checkpoint }: Proof, leaf: Buffer): Buffer {
  let [index, last, root] = [org_seq - 1, checkpoint.org_seq - 1, leaf]
  for (const text of hashes) {
    const hash = Buffer.from(text, 'hex')
    if (index % 2 === 1 || index === last) {
      root = nodeOf(hash, root)
      while (index % 2 === 0 && index !== 0) [index, last] = [index >> 1, last >> 1]
    } else {
      root = nodeOf(root, hash)
    }
    ;[index, last] = [index >> 1, last >> 1]
  }
  expect(last).toBe(0)
  return root
}

async function publicKey(id: number) {
  const { keys } = (await call(stack().description.base_url, readAuditKeys)).json as {
    keys: { id: number; public_key: string }[]
  }
  const bytes = Buffer.from(keys.find((key) => key.id === id)?.public_key ?? '', 'base64')
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bytes])
  return createPublicKey({ key: der, format: 'der', type: 'spki' })
}

const proofOf = (event_id: string) => administer(readAuditProof, { params: { event_id } })

test('the proof of every covered event leads from its members to a root that was signed', async () => {
  const [newest] = (await checkpoints()).data
  const covered = (await records()).data.filter(({ record }) => record.org_seq <= newest!.org_seq)
  expect(covered.length).toBeGreaterThan(2)
  for (const { record } of covered) {
    const proof = (await proofOf(record.event_id)).json as Proof
    expect(proof.event).toEqual(record)
    const { source: _source, payload, payload_salt: salt, ...hashed } = proof.event
    const leaf = sha256(Buffer.from([0]), canonical(hashed))
    expect(leaf.toString('hex')).toBe(proof.leaf)
    expect(sha256(Buffer.from(salt!, 'hex'), JSON.stringify(payload)).toString('hex')).toBe(
      proof.event.payload_hash,
    )
    const { checkpoint } = proof
    expect(rootBy(proof, leaf).toString('hex')).toBe(checkpoint.root)
    const [text = '', line = ''] = checkpoint.note.split(/(?<=\n)\n/)
    const [origin, size, root] = text.split('\n')
    expect(origin).toBe(`gatehouse-audit/${stack().description.organization_id}`)
    expect([Number(size), root]).toEqual([
      checkpoint.org_seq,
      Buffer.from(checkpoint.root, 'hex').toString('base64'),
    ])
    const signature = Buffer.from(line.trim().split(' ')[2] ?? '', 'base64').subarray(4)
    const key = await publicKey(checkpoint.key_id)
    expect(verify(null, Buffer.from(text), key, signature)).toBe(true)
    expect(verify(null, Buffer.from(text.replace(size!, '99')), key, signature)).toBe(false)
  }
})

test('an event has no proof before a checkpoint covers it, and none for other organizations', async () => {
  await administer(createProject, { body: { name: 'Four' } })
  const events = await read<List<{ id: string }>>(listAuditEvents, { query: { limit: 1 } })
  const id = events.data[0]!.id
  const answer = await proofOf(id)
  // The next checkpoint is a minute away from the last, unless that minute has just ended.
  if (answer.status !== 200) {
    expect([answer.status, codeOf(answer)]).toEqual([409, 'proof_not_ready'])
  }
  const foreign = await createOrganization(stack().service, 'Foreign Ltd')
  const asked = { params: { event_id: id }, credential: foreign.admin_key }
  for (const refused of [
    await administer(readAuditProof, asked),
    await proofOf(randomUUID()),
    await proofOf('nothing'),
  ]) {
    expect([refused.status, codeOf(refused)]).toEqual([404, 'audit_event_not_found'])
  }
})
