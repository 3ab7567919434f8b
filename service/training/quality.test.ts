import { readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import { describeModel, loadModel, manifestFile } from '#moderation/local/load-model.ts'
import { createLocalScorer } from '#moderation/local/local-scorer.ts'

import { dataPath, openDataFolder, whyNoData } from './data-folder.ts'
import { readHeldOut } from './held-out.ts'
import { measureOverBlock, measureQuality } from './quality.ts'
import { trainModel } from './train.ts'
import { readTrainingRows, wordsOf } from './training-rows.ts'

/** The least average precision: 0.02 less than the table in docs/moderation-model-card.md#measured. */
const least: Record<string, number> = {
  'OpenAI S: sexual': 0.41,
  'OpenAI H: hate': 0.46,
  'OpenAI HR: harassment': 0.29,
  'OpenAI SH: self-harm': 0.29,
  'HateCheck: hate': 0.72,
  'StrongREJECT + SimpleSafetyTests, benign: illicit': 0.89,
  'StrongREJECT + SimpleSafetyTests, XSTest safe: illicit': 0.89,
  'SimpleSafetyTests, benign: self-harm': 0.78,
  'ConvAbuse test: harassment': 0.89,
  'XSTest unsafe, safe: any': 0.61,
}

const reason = whyNoData()

test('missing data are an error that names the folder and the variable', () => {
  expect(whyNoData('/nowhere')).toMatch(
    /^The labelled texts are not in \/nowhere\. Set MODERATION_DATA/,
  )
})

describe.skipIf(reason !== undefined)(
  `the model that ships${reason ? ` (skipped: ${reason})` : ''}`,
  () => {
    const data = openDataFolder(dataPath())
    const { scoreText } = createLocalScorer(loadModel())

    test('is as good as the model card says, in every row', () => {
      const rows = measureQuality(scoreText, readHeldOut(data))
      expect(rows.map(({ name }) => name).toSorted()).toEqual(Object.keys(least).toSorted())
      const tooLow = rows
        .filter(({ name, averagePrecision }) => !(averagePrecision >= (least[name] ?? 1)))
        .map(({ name, averagePrecision }) => `${name}: ${averagePrecision.toFixed(3)}`)
      expect(tooLow).toEqual([])
    })

    test('blocks less than 5 % of benign texts and less than 30 % of safe texts that look unsafe', () => {
      const { benign, safeLookingUnsafe } = readHeldOut(data)
      expect([benign.length, safeLookingUnsafe.length]).toEqual([957, 249])
      expect(measureOverBlock(scoreText, benign)).toBeLessThan(0.05)
      expect(measureOverBlock(scoreText, safeLookingUnsafe)).toBeLessThan(0.3)
    })

    test('was trained on no text that measures it', () => {
      const trained = new Set(readTrainingRows(data).map(({ text }) => wordsOf(text)))
      const { everyText } = readHeldOut(data)
      expect([trained.size, everyText.length].every((count) => count > 5_000)).toBe(true)
      expect(everyText.filter((text) => trained.has(wordsOf(text)))).toHaveLength(0)
    })

    test.skipIf(process.env['LONG_TESTS'] !== '1')('is what the data give (--long)', () => {
      const manifest: unknown = JSON.parse(readFileSync(manifestFile, 'utf8'))
      expect(describeModel(trainModel(data))).toEqual(manifest)
    })
  },
)
