import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, onTestFinished, test, vi } from 'vitest'

import { createTree, rootOf } from './merkle.ts'
import {
  canonical,
  createRecord,
  createSigner,
  keysDocument,
  leafOf,
  createCheckpoint,
  wrappedLine,
} from './testing/signed-log.ts'
import { verifyCommand } from './verify-command.ts'

// They compute for half a minute, and longer where others compute, too.
vi.setConfig({ testTimeout: 600_000 })

const records = sizeOf({ usual: 100_000, long: 1_000_000, variable: 'AUDIT_STREAM_RECORDS' })
const signer = createSigner(1)

/** Lines are made when they are asked for: the test must not hold what the verifier may not hold. */
function* lines() {
  const keys = [{ id: 1, public_key: signer.publicKey.toString('base64') }]
  yield `${canonical({ format: 'gatehouse-audit-bundle/1', from: 0, frontier: [], keys, org_id: 'org_a', to: records })}\n`
  // The definition holds all leaves; merkle.test.ts compares this tree with it.
  const tree = createTree()
  let previous: string | null = null
  for (let seq = 1; seq <= records; seq++) {
    const record = createRecord('org_a', seq)
    const leaf = leafOf(record)
    tree.append(leaf)
    yield `${wrappedLine(record, leaf)}\n`
    if (seq % 4096 !== 0 && seq !== records) continue
    const state = { size: seq, root: rootOf(tree.frontier()), frontier: tree.frontier() }
    const checkpoint = createCheckpoint('org_a', state, { signer, previous })
    previous = String(checkpoint['note'])
    yield `${canonical(checkpoint)}\n`
  }
}

/** Objects and the bytes of buffers. */
function held(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

test(`a packed bundle of ${records} records is verified without being held`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-stream-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'bundle.ndjson.gz')
  const keys = join(folder, 'keys.json')
  writeFileSync(keys, JSON.stringify(keysDocument([signer])))
  await pipeline(Readable.from(lines()), createGzip({ level: 1 }), createWriteStream(path))
  let peak = 0
  const before = held()
  const timer = setInterval(() => (peak = Math.max(peak, held())), 20)
  const { exitCode, stdout } = await verifyCommand({
    path,
    keys,
    organization: undefined,
    json: true,
  })
  clearInterval(timer)
  expect([exitCode, JSON.parse(stdout)]).toMatchObject([0, { records }])
  expect(peak).toBeGreaterThan(0)
  // About 700 bytes a record: all of them would be 67 MiB at least.
  console.log(`held at most ${Math.round((peak - before) / 1024 / 1024)} MiB more`)
  expect(peak - before).toBeLessThan(50 * 1024 * 1024)
})
