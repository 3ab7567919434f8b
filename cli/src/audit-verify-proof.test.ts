import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, expect, test } from 'vitest'

import { hashLeaf, rootFrom } from './audit/merkle.ts'
import { bareMachine } from './audit/testing/bare-machine.ts'
import {
  createLog,
  createSigner,
  keysDocument,
  leafOf,
  type Log,
  type Members,
  treeHash,
} from './audit/testing/signed-log.ts'
import { run } from './run.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-proof-'))
afterAll(() => rmSync(folder, { recursive: true }))

const signers = [createSigner(1), createSigner(2)]
const keysFile = join(folder, 'keys.json')
writeFileSync(keysFile, JSON.stringify(keysDocument(signers)))
const file = join(folder, 'proof.json')

/** PATH of RFC 6962, section 2.1.1, as it is written there. */
function pathOf(index: number, leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length <= 1) return []
  let split = 1
  while (split * 2 < leaves.length) split *= 2
  return index < split
    ? [...pathOf(index, leaves.slice(0, split)), treeHash(leaves.slice(split))]
    : [...pathOf(index - split, leaves.slice(split)), treeHash(leaves.slice(0, split))]
}

/** What the service answers for record `seq`, with the first checkpoint that covers it. */
function proofOf({ records, checkpoints }: Log, seq: number) {
  const checkpoint = checkpoints.find((one) => (one['org_seq'] as number) >= seq) as Members
  const size = checkpoint['org_seq'] as number
  const leaves = records.slice(0, size).map(leafOf)
  return {
    event: records[seq - 1] as Members,
    org_seq: seq,
    leaf: leaves[seq - 1]?.toString('hex') ?? '',
    hashes: pathOf(seq - 1, leaves).map((hash) => hash.toString('hex')),
    checkpoint: {
      id: String(size),
      object: 'organization.audit_checkpoint',
      ...checkpoint,
    } as Members,
  }
}

const log = createLog('org_a', [1, 7, 21], signers)
type Proof = ReturnType<typeof proofOf>

async function verify(proof: object | string, ...flags: string[]) {
  writeFileSync(file, typeof proof === 'string' ? proof : JSON.stringify(proof))
  return run(['audit', 'verify', file, '--keys', keysFile, ...flags], bareMachine)
}

test('the path of every leaf leads to the root, in trees of all sizes up to 40', () => {
  const leaves = Array.from({ length: 40 }, (_, index) => hashLeaf(`leaf ${index}`))
  for (let size = 1; size <= leaves.length; size++) {
    const tree = leaves.slice(0, size)
    for (const [index, leaf] of tree.entries()) {
      const hashes = pathOf(index, tree)
      expect(rootFrom(leaf, { index, size }, hashes)).toEqual(treeHash(tree))
      expect(rootFrom(leaf, { index, size }, [...hashes, leaf])).toBeUndefined()
      if (hashes.length > 0)
        expect(rootFrom(leaf, { index, size }, hashes.slice(1))).not.toEqual(treeHash(tree))
    }
  }
})

test('every record of a log has a proof that verifies, in any layout and with an erased payload', async () => {
  for (let seq = 1; seq <= 21; seq++) {
    const { exitCode, stdout, stderr } = await verify(proofOf(log, seq), '--json')
    expect([seq, exitCode, stderr]).toEqual([seq, 0, ''])
    expect(JSON.parse(stdout)).toMatchObject({ verified: true, org_id: 'org_a', org_seq: seq })
  }
  const spaced = JSON.stringify(proofOf(log, 10), null, 4).replaceAll('ö', String.raw`\u00f6`)
  const { stdout } = await verify(spaced)
  expect(stdout).toContain(
    'Verified: record 10 of organization org_a is in the signed log, unchanged.',
  )
  expect(stdout).toMatch(/payload +erased/)
})

const changed = (change: (proof: Proof) => object) => change(structuredClone(proofOf(log, 5)))
const event = (members: Members) =>
  changed((proof) => ({ ...proof, event: { ...proof.event, ...members } }))
const checkpoint = (members: Members) =>
  changed((proof) => ({ ...proof, checkpoint: { ...proof.checkpoint, ...members } }))

test.each([
  ['an event with another actor', event({ actor: 'key_2' }), 'does not match its leaf'],
  ['another payload', event({ payload: { usage: {} } }), 'does not match payload_hash'],
  ['a member more', event({ decision: 'allow' }), 'does not match its leaf'],
  [
    'an event and its leaf changed together',
    changed((proof) => {
      const forged = { ...proof.event, actor: 'key_2' }
      return { ...proof, event: forged, leaf: leafOf(forged).toString('hex') }
    }),
    'the hashes do not lead to its root',
  ],
  [
    'the hashes in another order',
    changed((proof) => ({ ...proof, hashes: proof.hashes.toReversed() })),
    'the hashes do not lead to its root',
  ],
  ['a hash less', changed((proof) => ({ ...proof, hashes: proof.hashes.slice(1) })), 'its root'],
  ['no hashes', changed((proof) => ({ ...proof, hashes: 'none' })), 'has no list of hashes'],
  ['another number', changed((proof) => ({ ...proof, org_seq: 6 })), 'has another org_seq'],
  [
    'the event of another record',
    changed((proof) => ({ ...proof, event: log.records[5], org_seq: 6 })),
    'does not match its leaf',
  ],
  ['another root', checkpoint({ root: '0'.repeat(64) }), 'root is not what its note says'],
  ['another size', checkpoint({ org_seq: 8, id: '8' }), 'is not what its note says'],
  ['another id', checkpoint({ id: '8' }), 'its id or its object'],
  [
    'an earlier checkpoint',
    changed((proof) => ({ ...proof, checkpoint: proofOf(log, 1).checkpoint })),
    'the hashes do not lead to its root',
  ],
  ['a member of its own', changed((proof) => ({ ...proof, ok: true })), 'has other members'],
  ['no event', changed(({ event: _, ...rest }) => rest), 'has other members'],
  ['a list as event', changed((proof) => ({ ...proof, event: [] })), 'has no event'],
])('%s does not verify', async (_, proof, message) => {
  const { exitCode, stdout, stderr } = await verify(proof)
  expect([exitCode, stdout, stderr]).toEqual([1, '', expect.stringContaining(message)])
  const json = await verify(proof, '--json')
  expect([json.exitCode, JSON.parse(json.stdout)]).toMatchObject([1, { verified: false }])
})

test('a changed note, a key that is not trusted and a member that is there twice do not verify', async () => {
  const text = JSON.stringify(proofOf(log, 5))
  const note = await verify(text.replace(String.raw`\ntime 2026`, String.raw`\ntime 2027`))
  expect([note.exitCode, note.stderr]).toEqual([1, expect.stringContaining('checkpoint of size 7')])
  const twice = await verify(text.replace('{"event":', '{"event":{"org_seq":5},"event":'))
  expect([twice.exitCode, twice.stderr]).toEqual([1, expect.stringContaining('a member twice')])
  const strangers = join(folder, 'strangers.json')
  writeFileSync(strangers, JSON.stringify(keysDocument([createSigner(1), createSigner(2)])))
  writeFileSync(file, text)
  const foreign = await run(['audit', 'verify', file, '--keys', strangers], bareMachine)
  expect([foreign.exitCode, foreign.stderr]).toEqual([1, expect.stringContaining('another key')])
})

test('a proof that was cut off is called so', async () => {
  const { exitCode, stderr } = await verify(JSON.stringify(proofOf(log, 5)).slice(0, 400))
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('The proof (')])
  expect(stderr).toContain('is damaged or cut off')
})

test('a proof needs keys, and is about the organization that is asked for', async () => {
  const proof = proofOf(log, 5)
  const other = await verify(proof, '--organization', 'org_b')
  expect([other.exitCode, other.stderr]).toEqual([1, expect.stringContaining('not to org_b')])
  expect((await verify(proof, '--organization', 'org_a')).exitCode).toBe(0)
  const keyless = await run(['audit', 'verify', file], bareMachine)
  expect([keyless.exitCode, keyless.stderr]).toEqual([
    2,
    expect.stringContaining('--keys is missing'),
  ])
})
