import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { checkModel, describeModel, loadModel, modelFile } from './load-model.ts'
import { encodeModel, heads } from './model.ts'

const bytes = readFileSync(modelFile)

test('the model that ships has the bytes that its manifest names, and is loaded once', () => {
  const model = loadModel()
  expect(model).toBe(loadModel())
  expect(encodeModel(model).equals(bytes)).toBe(true)
  expect(bytes.length).toBeLessThan(1.4 * 1024 * 1024)
  expect(model.terms.size).toBeGreaterThan(900)
  expect(model.scales).toHaveLength(heads.length)
})

test('one changed bit, a missing byte and a changed manifest are refused', () => {
  const manifest = describeModel(bytes)
  const changed = Buffer.from(bytes)
  changed.writeUInt8(changed.readUInt8(500_000) ^ 1, 500_000)
  expect(() => checkModel(changed, manifest)).toThrow('is not the one of this release')
  expect(() => checkModel(bytes.subarray(1), manifest)).toThrow('is not the one of this release')
  const other = { ...manifest, bytes: manifest.bytes + 1 }
  expect(() => checkModel(bytes, other)).toThrow('is not the one of this release')
})

test('bytes of another format are refused, also where the manifest fits', () => {
  for (const wrong of [Buffer.alloc(100), bytes.subarray(0, -1), Buffer.concat([bytes, bytes])]) {
    expect(() => checkModel(wrong, describeModel(wrong))).toThrow('another format')
  }
})
