import { hash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'

import { expect, onTestFinished, test } from 'vitest'

import { bareMachine } from './audit/testing/bare-machine.ts'
import {
  createLog,
  createRecord,
  createSigner,
  keysDocument,
  type Members,
} from './audit/testing/signed-log.ts'
import { run } from './run.ts'

const signers = [createSigner(1)]
const log = createLog('org_a', [7, 16, 21], signers)

const jsonLines = (records: readonly Members[]) =>
  records.map((one) => `${JSON.stringify(one)}\n`).join('')

/** A folder as a sink leaves it; what is not given has 24 records, of which 21 are covered. */
function createFolder(change: (files: Record<string, string>) => void = () => {}) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-folder-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const late = [22, 23, 24].map((seq) => createRecord('org_a', seq))
  const files: Record<string, string> = {
    'date=2026-01-01/part-1-9.jsonl.gz': jsonLines(log.records.slice(0, 9)),
    'date=2026-01-01/part-10-21.jsonl.gz': jsonLines(log.records.slice(9)),
    'date=2026-01-02/part-22-24.jsonl': jsonLines(late),
    'checkpoints/date=2026-01-01/checkpoint-7.jsonl.gz': jsonLines(log.checkpoints.slice(0, 1)),
    'checkpoints/date=2026-01-01/checkpoint-16-21.jsonl.gz': jsonLines(log.checkpoints.slice(1)),
  }
  change(files)
  writeFileSync(join(folder, 'keys.json'), JSON.stringify(keysDocument(signers)))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), name.endsWith('.gz') ? gzipSync(text) : text)
  }
  return folder
}

async function verify(folder: string, ...flags: string[]) {
  const args = ['audit', 'verify', folder, '--keys', join(folder, 'keys.json'), '--json', ...flags]
  const { exitCode, stdout, stderr } = await run(args, bareMachine)
  return { exitCode, stderr, ...(stdout === '' ? {} : (JSON.parse(stdout) as object)) }
}

test('files of a sink verify; what the last checkpoint does not cover is said', async () => {
  expect(await verify(createFolder())).toMatchObject({
    exitCode: 0,
    records: 21,
    checkpoints: 3,
    not_covered_before: null,
    not_covered_after: { first: 22, last: 24 },
  })
})

test('the order inside files does not matter, and copies may be there twice', async () => {
  const folder = createFolder((files) => {
    files['date=2026-01-01/part-10-21.jsonl.gz'] = jsonLines(log.records.slice(9).toReversed())
    files['a/part-5-12.ndjson'] = jsonLines(log.records.slice(4, 12))
    files['a/checkpoint.json'] = jsonLines(log.checkpoints.slice(0, 1))
  })
  expect(await verify(folder)).toMatchObject({ exitCode: 0, records: 21, duplicates: 9 })
})

test('a sink that began later is verified from the first checkpoint on', async () => {
  const folder = createFolder((files) => {
    files['date=2026-01-01/part-1-9.jsonl.gz'] = jsonLines(log.records.slice(4, 9))
  })
  expect(await verify(folder)).toMatchObject({
    exitCode: 0,
    from: 7,
    records: 14,
    not_covered_before: { first: 5, last: 7 },
  })
})

test('what was sent to try the sink is no part of the log', async () => {
  const folder = createFolder((files) => {
    const tried = { ...log.records[0], event_type: 'test', org_seq: 0 }
    files['date=2026-01-01/part-0-0.jsonl.gz'] = jsonLines([tried])
  })
  expect(await verify(folder)).toMatchObject({ exitCode: 0, records: 21 })
})

test('without a checkpoint nothing is verified', async () => {
  const folder = createFolder((files) => {
    for (const name of Object.keys(files)) if (name.startsWith('checkpoints')) delete files[name]
  })
  expect(await verify(folder)).toMatchObject({ exitCode: 1, first_bad: { kind: 'file' } })
})

test('a copy of a checkpoint that was changed is found', async () => {
  const folder = createFolder((files) => {
    files['z/checkpoint.json'] = jsonLines([{ ...log.checkpoints[0], root: 'ab'.repeat(32) }])
  })
  expect(await verify(folder)).toMatchObject({
    exitCode: 1,
    first_bad: { kind: 'checkpoint', org_seq: 7 },
  })
})

test('records as Elasticsearch and Splunk export them', async () => {
  const folder = createFolder((files) => {
    const wrap = (record: Members) => ({
      _source: { '@timestamp': record['created_at'], ...record },
    })
    files['date=2026-01-01/part-1-9.jsonl.gz'] = jsonLines(log.records.slice(0, 9).map(wrap))
    const raw = (record: Members) => ({
      preview: false,
      result: { _raw: JSON.stringify(record), host: 'a' },
    })
    files['date=2026-01-01/part-10-21.jsonl.gz'] = jsonLines(log.records.slice(9).map(raw))
  })
  expect(await verify(folder)).toMatchObject({ exitCode: 0, records: 21 })
})

const changed = (seq: number, change: object) =>
  log.records.map((record) => (record['org_seq'] === seq ? { ...record, ...change } : record))

test.each<[string, (files: Record<string, string>) => void, object]>([
  [
    'a missing record',
    (files) =>
      void (files['date=2026-01-01/part-10-21.jsonl.gz'] = jsonLines(log.records.slice(10))),
    { kind: 'record', org_seq: 10 },
  ],
  [
    'a changed payload',
    (files) =>
      void (files['date=2026-01-01/part-10-21.jsonl.gz'] = jsonLines(
        changed(12, { payload: {} }).slice(9),
      )),
    { kind: 'record', org_seq: 12, line: 3 },
  ],
  [
    'a changed member',
    (files) =>
      void (files['date=2026-01-01/part-10-21.jsonl.gz'] = jsonLines(
        changed(18, { actor: 'x' }).slice(9),
      )),
    { kind: 'record', org_seq: 17, last_org_seq: 20 },
  ],
  [
    'two different copies',
    (files) => void (files['copy.jsonl'] = jsonLines(changed(3, { actor: 'x' }).slice(2, 3))),
    { kind: 'record', org_seq: 3 },
  ],
  [
    'a missing checkpoint',
    (files) => void delete files['checkpoints/date=2026-01-01/checkpoint-7.jsonl.gz'],
    { kind: 'checkpoint', org_seq: 16 },
  ],
  [
    'a line that is no JSON',
    (files) => void (files['x.jsonl'] = '\n{"org_id"'),
    { kind: 'record', org_seq: null, line: 2 },
  ],
])('%s is found', async (_, change, firstBad) => {
  expect(await verify(createFolder(change))).toMatchObject({ exitCode: 1, first_bad: firstBad })
})

test('a packed file that is cut off is found', async () => {
  const folder = createFolder()
  const path = join(folder, 'date=2026-01-01/part-1-9.jsonl.gz')
  writeFileSync(path, readFileSync(path).subarray(0, -20))
  expect(await verify(folder)).toMatchObject({
    exitCode: 1,
    message: expect.stringContaining('cut off'),
  })
})

test('several organizations need --organization, and a folder needs --keys', async () => {
  const other = createLog('org_b', [3], signers)
  const folder = createFolder((files) => {
    files['b.jsonl'] = jsonLines([...other.records, ...other.checkpoints])
  })
  expect(await verify(folder)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--organization (org_a, org_b)'),
  })
  expect(await verify(folder, '--organization', 'org_b')).toMatchObject({ exitCode: 0, records: 3 })
  expect(await verify(folder, '--organization', 'org_c')).toMatchObject({ exitCode: 1 })
  const { exitCode, stderr } = await run(['audit', 'verify', folder], bareMachine)
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--keys is missing')])
})

/** Two digests over the files of a folder, with the prefix that the bucket has and the copy has not. */
function addDigests(folder: string) {
  const sha256 = (name: string) => hash('sha256', readFileSync(join(folder, name)), 'hex')
  let previous: object | null = null
  const parts = ['date=2026-01-01/part-1-9.jsonl.gz', 'date=2026-01-01/part-10-21.jsonl.gz']
  for (const [index, part] of parts.entries()) {
    const name = `digests/date=2026-01-01/digest-${index}.json`
    const objects = [{ key: `policy-gateway/${part}`, sha256: sha256(part) }]
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    const from = `2026-01-01T0${index}:00:00.000Z`
    writeFileSync(join(folder, name), JSON.stringify({ org_id: 'org_a', from, objects, previous }))
    previous = { key: `policy-gateway/${name}`, sha256: sha256(name) }
  }
}

test('digests: each object is there and unchanged, and each digest follows another', async () => {
  const folder = createFolder()
  addDigests(folder)
  expect(await verify(folder)).toMatchObject({ exitCode: 0, digests: 2 })
  const near = `./${relative(process.cwd(), folder)}`
  expect(await verify(near)).toMatchObject({ exitCode: 0, digests: 2 })

  const changedObject = createFolder()
  addDigests(changedObject)
  // The same records, packed otherwise.
  writeFileSync(
    join(changedObject, 'date=2026-01-01/part-1-9.jsonl.gz'),
    gzipSync(jsonLines(log.records.slice(0, 9)), { level: 1 }),
  )
  expect(await verify(changedObject)).toMatchObject({ exitCode: 1, first_bad: { kind: 'digest' } })

  const changedDigest = createFolder()
  addDigests(changedDigest)
  const first = join(changedDigest, 'digests/date=2026-01-01/digest-0.json')
  writeFileSync(first, `${readFileSync(first, 'utf8')}\n`)
  expect(await verify(changedDigest)).toMatchObject({ exitCode: 1, first_bad: { kind: 'digest' } })
})
