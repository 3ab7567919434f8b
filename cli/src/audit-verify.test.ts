import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { afterAll, expect, test, vi } from 'vitest'

import { bareMachine } from './audit/testing/bare-machine.ts'
import {
  type BundleLine,
  bundleLines,
  bundleText,
  createLog,
  createRecord,
  createSigner,
  keysDocument,
  leafOf,
  type Members,
  signLog,
  wrappedLine,
} from './audit/testing/signed-log.ts'
import { run } from './run.ts'

// They compute for half a minute, and longer where others compute, too.
vi.setConfig({ testTimeout: 600_000 })

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-audit-'))
afterAll(() => rmSync(folder, { recursive: true }))

const signers = [createSigner(1), createSigner(2)]
const keysFile = join(folder, 'keys.json')
writeFileSync(keysFile, JSON.stringify(keysDocument(signers)))
const file = join(folder, 'bundle.ndjson')

const gatehouse = (...args: string[]) => run(['audit', 'verify', ...args], bareMachine)

type Answer = {
  verified: boolean
  message: string
  erased_payloads: number
  first_bad: {
    kind: string
    org_seq: number | null
    last_org_seq: number | null
    line: number | null
  }
}

async function verify(content: string | Buffer, path = file) {
  writeFileSync(path, content)
  const { exitCode, stdout, stderr } = await gatehouse(path, '--keys', keysFile, '--json')
  expect(stderr).toBe('')
  return { exitCode, ...(JSON.parse(stdout) as Answer) }
}

const small = createLog('org_a', [7, 16, 21], signers)

test('an untouched bundle verifies, from the start and from a checkpoint', async () => {
  expect(await verify(bundleText(bundleLines(small)))).toMatchObject({
    exitCode: 0,
    verified: true,
    from: 0,
    to: 21,
    records: 21,
    checkpoints: 3,
    erased_payloads: 2,
    keys_are_trusted: true,
    first_created_at: '2026-01-01T00:00:01.000Z',
    last_created_at: '2026-01-01T00:00:21.000Z',
  })
  const later = await verify(bundleText(bundleLines(small, 7)))
  expect(later).toMatchObject({ exitCode: 0, from: 7, to: 21, records: 14, checkpoints: 3 })
})

test('without trusted keys the output says what that proves, and shows the fingerprints', async () => {
  writeFileSync(file, bundleText(bundleLines(small)))
  const { exitCode, stdout } = await gatehouse(file)
  expect(exitCode).toBe(0)
  expect(stdout).toContain('Consistent: records 1 to 21 of organization org_a match')
  expect(stdout).not.toContain('Verified')
  expect(stdout).toMatch(/key 1 +SHA-256 [0-9a-f]{64}\n/)
  expect(stdout).toContain('This shows only that the bundle is consistent')
  const trusted = await gatehouse(file, '--keys', keysFile)
  expect(trusted.stdout).toContain('Verified: records 1 to 21 of organization org_a are complete')
  expect(trusted.stdout).not.toContain('consistent')
})

test('a changed record is named with its number, event and line', async () => {
  const lines = bundleLines(small)
  const at = lines.findIndex(({ kind, seq }) => kind === 'record' && seq === 9)
  const text = lines[at]!.text.replace('"actor":"key_1"', '"actor":"key_2"')
  writeFileSync(file, bundleText(lines.with(at, { ...lines[at]!, text })))
  expect(await gatehouse(file)).toEqual({
    exitCode: 1,
    stdout: '',
    stderr: `error: Record 9 (event ${String(small.records[8]!['event_id'])}, ${file} line ${at + 1}) has been changed: it does not match its leaf.\n`,
  })
})

test('a record that was changed with its leaf is in the range that the checkpoint gives', async () => {
  const records = small.records.with(18, { ...small.records[18], actor: 'key_2' })
  const forged = await verify(bundleText(bundleLines({ ...small, records })))
  // 21 = 16 + 4 + 1: the subtree of records 17 to 20 is the one that differs.
  expect(forged).toMatchObject({
    exitCode: 1,
    first_bad: { kind: 'record', org_seq: 17, last_org_seq: 20 },
  })
})

test.each([
  ['no file', [join(folder, 'none')], 'cannot be read'],
  ['no name', [], 'The name of a bundle, of a folder or of a proof is missing.'],
  ['an unknown flag', [file, '--kesy', 'x'], "There is no flag '--kesy'. Did you mean '--keys'?"],
])('%s is exit code 2', async (_, args, message) => {
  writeFileSync(file, bundleText(bundleLines(small)))
  const { exitCode, stderr } = await gatehouse(...args)
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)])
})

// Mutations. Each returns the changed bundle and what should be named.

type Expected = { kind?: string; seq?: number; within?: true }
type Mutant = { content: string | Buffer; expected: Expected }
type Random = (below: number) => number
type Bundle = {
  lines: BundleLine[]
  other: BundleLine[]
  forged: BundleLine[][]
  records: Members[]
  sizes: number[]
}

/** xorshift32, so that a seed repeats a failure. */
function randomFrom(seed: number): Random {
  let state = seed || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

const named = ({ kind, seq }: BundleLine): Expected => (kind === 'header' ? {} : { kind, seq })
/** The record that belongs at a place in the file, of which nothing can be read. */
const inBody = (lines: BundleLine[], random: Random) => 1 + random(lines.length - 1)

const mutations: Record<string, (bundle: Bundle, random: Random) => Mutant> = {
  flip({ lines }, random) {
    const bytes = Buffer.from(bundleText(lines))
    const at = random(bytes.length)
    bytes[at]! ^= 1 << random(8)
    let end = 0
    const hit = lines.find(({ text }) => at < (end += Buffer.byteLength(text) + 1))!
    return { content: bytes, expected: named(hit) }
  },
  drop({ lines }, random) {
    const at = random(lines.length)
    const { kind, seq } = lines[at]!
    const expected = kind === 'record' ? { kind, seq } : {}
    return { content: bundleText(lines.toSpliced(at, 1)), expected }
  },
  swap({ lines }, random) {
    const one = inBody(lines, random)
    let other = inBody(lines, random)
    if (other === one) other = one === 1 ? 2 : one - 1
    const first = lines[Math.min(one, other)]!
    const swapped = lines.with(one, lines[other]!).with(other, lines[one]!)
    const expected = first.kind === 'record' ? named(first) : {}
    return { content: bundleText(swapped), expected }
  },
  duplicate({ lines }, random) {
    const at = inBody(lines, random)
    const line = lines[at]!
    return { content: bundleText(lines.toSpliced(at, 0, line)), expected: named(line) }
  },
  truncate({ lines }, random) {
    const bytes = Buffer.from(bundleText(lines))
    const length = random(bytes.length)
    let end = 0
    const hit = lines.find(({ text }) => length < (end += Buffer.byteLength(text) + 1))!
    return { content: bytes.subarray(0, length), expected: hit.kind === 'record' ? named(hit) : {} }
  },
  truncateLines({ lines }, random) {
    const length = random(lines.length)
    const hit = lines[length]!
    return {
      content: bundleText(lines.slice(0, length)),
      expected: hit.kind === 'record' ? named(hit) : {},
    }
  },
  splice({ lines, other }, random) {
    const at = inBody(lines, random)
    const from = 1 + random(other.length - 1)
    const expected =
      lines[at]!.kind === 'record' && other[from]!.kind === 'record' ? named(lines[at]!) : {}
    return { content: bundleText(lines.with(at, other[from]!)), expected }
  },
  forgeWithOtherKeys({ forged, lines, sizes }, random) {
    const mutant = forged[random(forged.length)]!
    if (random(2) === 0) return { content: bundleText(mutant), expected: { kind: 'header' } }
    // The header has the trusted keys, but they have not signed.
    const expected = { kind: 'checkpoint', seq: sizes[0]! }
    return { content: bundleText(mutant.with(0, lines[0]!)), expected }
  },
  forgeLeaf({ lines, records }, random) {
    const at = random(records.length)
    const changed = { ...records[at], actor: 'nobody' }
    const index = lines.findIndex(({ kind, seq }) => kind === 'record' && seq === at + 1)
    const text = wrappedLine(changed)
    return {
      content: bundleText(lines.with(index, { ...lines[index]!, text })),
      expected: { kind: 'record', seq: at + 1, within: true },
    }
  },
  header({ lines }, random) {
    const header = JSON.parse(lines[0]!.text) as Members & { keys: Members[] }
    const changes: Members[] = [
      { from: 1 },
      { to: (header['to'] as number) + 1 },
      { to: (header['to'] as number) - 1 },
      { org_id: 'org_b' },
      { frontier: [leafOf({}).toString('hex')] },
      { keys: [] },
      { keys: header.keys.toReversed().concat(header.keys) },
      { keys: [{ ...header.keys[0], public_key: createSigner(1).publicKey.toString('base64') }] },
      { format: 'gatehouse-audit-bundle/2' },
      { extra: true },
    ]
    const changed = { ...header, ...changes[random(changes.length)] }
    const sorted = Object.fromEntries(
      Object.entries(changed).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    )
    return {
      content: bundleText(lines.with(0, { ...lines[0]!, text: JSON.stringify(sorted) })),
      expected: {},
    }
  },
}

function createBundle(random: Random): Bundle {
  const sizes = [2 + random(12)]
  while (random(3) > 0) sizes.push((sizes.at(-1) ?? 0) + 1 + random(15))
  if (sizes.at(-1)! < 20) sizes.push(20 + random(10))
  const log = createLog('org_a', sizes, signers)
  const other = bundleLines(createLog('org_b', sizes, signers))
  const forged = Array.from({ length: 5 }, () => forge(log.records, sizes, random))
  return { lines: bundleLines(log), other, forged, records: log.records, sizes }
}

/** A log with a changed record in which everything is right, but signed by somebody else. */
function forge(records: Members[], sizes: number[], random: Random): BundleLine[] {
  const at = random(records.length)
  const changed = records.with(at, { ...records[at], actor: 'nobody' })
  const forgers = signers.map(({ id }) => createSigner(id))
  return bundleLines(signLog(changed, sizes, forgers))
}

const count = sizeOf({ usual: 10_000, long: 100_000, variable: 'AUDIT_MUTATIONS' })

test(`${count} mutations of bundles are all found, and the first bad record is named`, async () => {
  const seed = Number(process.env['AUDIT_SEED'] ?? Date.now() % 2 ** 31)
  console.log(`AUDIT_SEED=${seed}`)
  const random = randomFrom(seed)
  const bundles = Array.from({ length: 20 }, () => createBundle(random))
  const names = Object.keys(mutations)
  const check = async (index: number) => {
    const bundle = bundles[random(bundles.length)]!
    const name = names[index % names.length]!
    const { content, expected } = mutations[name]!(bundle, random)
    const answer = await verify(content, join(folder, `mutant-${index % together}.ndjson`))
    expectNamed(
      answer,
      expected,
      `${name}, AUDIT_SEED=${seed}, mutation ${index}: ${answer.message}`,
    )
  }
  // Each waits for its file most of the time.
  for (let index = 0; index < count; index += together) {
    await Promise.all(Array.from({ length: together }, (_, offset) => check(index + offset)))
  }
})

const together = 20

function expectNamed(
  answer: Awaited<ReturnType<typeof verify>>,
  expected: Expected,
  about: string,
) {
  expect(answer.exitCode, about).toBe(1)
  const { kind, org_seq: first, last_org_seq: last } = answer.first_bad
  if (expected.kind !== undefined) expect(kind, about).toBe(expected.kind)
  if (expected.seq === undefined) return
  if (!expected.within) expect([first, last], about).toEqual([expected.seq, null])
  expect(first, about).toBeLessThanOrEqual(expected.seq)
  expect(last ?? first, about).toBeGreaterThanOrEqual(expected.seq)
}

test('an erased payload verifies; half an erasure does not', async () => {
  const erased = small.records.with(0, { ...small.records[0], payload: null, payload_salt: null })
  expect(await verify(bundleText(bundleLines({ ...small, records: erased })))).toMatchObject({
    exitCode: 0,
    erased_payloads: 3,
  })
  const half = small.records.with(0, { ...small.records[0], payload: null })
  expect(await verify(bundleText(bundleLines({ ...small, records: half })))).toMatchObject({
    exitCode: 1,
    first_bad: { kind: 'record', org_seq: 1 },
  })
  const changed = { ...createRecord('org_a', 1), payload_hash: small.records[1]!['payload_hash'] }
  const records = small.records.with(0, changed)
  const resigned = signLog(records, [7, 16, 21], signers)
  expect((await verify(bundleText(bundleLines(resigned)))).message).toContain(
    'its payload does not match payload_hash',
  )
})
